//! Prints expressions, with the parentheses that binutils puts around nearly every operand.

use super::node::{Fold, Id, Node};
use super::operators::{self, Form};
use super::print::Printer;

impl Printer<'_> {
    /// Whether an operand stands without parentheses.
    pub(super) fn is_simple(&mut self, id: Id) -> Option<bool> {
        let node = self.tree.get(id)?;
        Some(matches!(
            node,
            Node::Identifier(_) | Node::Nested { .. } | Node::Braces { of: None, .. } | Node::Parameter(_)
        ))
    }

    /// An operand, in parentheses if need be.
    fn operand(&mut self, id: Id) -> Option<()> {
        if self.is_simple(id)? {
            return self.print(id);
        }
        self.push("(");
        self.print(id)?;
        self.push(")");
        Some(())
    }

    pub(super) fn expression(&mut self, node: Node) -> Option<()> {
        match node {
            Node::Unary { operator, operand } => self.unary(operator, operand)?,
            Node::Postfix { operator, operand } => {
                self.operand(operand)?;
                self.push(operators::get(operator).sign);
            }
            Node::Binary { operator, left, right } => self.binary(operator, left, right)?,
            Node::Conditional { condition, yes, no } => {
                self.operand(condition)?;
                self.push("?");
                self.operand(yes)?;
                self.push(" : ");
                self.operand(no)?;
            }
            Node::Call { callee, arguments } => {
                match self.tree.get(callee)? {
                    Node::Function { name, .. } => self.operand(name)?,
                    _ => self.operand(callee)?,
                }
                self.push("(");
                self.list(arguments)?;
                self.push(")");
            }
            Node::Cast { to, arguments, is_list } => {
                self.push("(");
                self.print(to)?;
                self.push(")");
                match self.tree.list(arguments) {
                    &[only] if !is_list => self.operand(only)?,
                    _ => {
                        self.push("(");
                        self.list(arguments)?;
                        self.push(")");
                    }
                }
            }
            Node::NamedCast { operator, to, operand } => {
                self.push(operators::get(operator).sign);
                self.push("<");
                self.print(to)?;
                self.push(">(");
                self.print(operand)?;
                self.push(")");
            }
            Node::Braces { of, items } => {
                if let Some(of) = of {
                    self.print(of)?;
                }
                self.push("{");
                self.list(items)?;
                self.push("}");
            }
            Node::Parameter(0) => self.push("this"),
            Node::Parameter(number) => self.push(&format!("{{parm#{number}}}")),
            Node::SizeofPack(pack) => self.sizeof_pack(pack)?,
            Node::SizeofArguments(arguments) => {
                let count = self.tree.list(arguments).len();
                self.push(&count.to_string());
            }
            Node::New { is_array, placement, of, initializer } => {
                self.push(if is_array { "new[] " } else { "new " });
                if placement.length > 0 {
                    self.push("(");
                    self.list(placement)?;
                    self.push(") ");
                }
                self.print(of)?;
                if let Some(initializer) = initializer {
                    match self.tree.list(initializer) {
                        &[only] if matches!(self.tree.get(only), Some(Node::Braces { .. })) => self.print(only)?,
                        _ => {
                            self.push("(");
                            self.list(initializer)?;
                            self.push(")");
                        }
                    }
                }
            }
            Node::Delete { is_array, operand } => {
                self.push(if is_array { "delete[] " } else { "delete " });
                self.operand(operand)?;
            }
            Node::Folded { operator, fold, left, right } => self.fold(operator, fold, left, right)?,
            Node::Literal { of, value, is_negative } => self.literal(of, value, is_negative)?,
            _ => self.rare_expression(node)?,
        }
        Some(())
    }

    fn unary(&mut self, operator: u8, operand: Id) -> Option<()> {
        let sign = operators::get(operator).sign;
        self.push(sign);
        if sign == "&"
            && let Some(Node::Function { name, qualifiers, .. }) = self.tree.get(operand)
            && qualifiers.is_empty()
            && matches!(self.tree.get(name), Some(Node::Nested { .. }))
        {
            // The address of a method is told by its name alone.
            return self.print(name);
        }
        self.operand(operand)
    }

    fn binary(&mut self, operator: u8, left: Id, right: Id) -> Option<()> {
        let operator = operators::get(operator);
        if operator.form == Form::Subscript {
            self.operand(left)?;
            self.push("[");
            self.print(right)?;
            self.push("]");
            return Some(());
        }
        // A `>` outside of parentheses would end template arguments.
        let is_greater = operator.sign == ">";
        if is_greater {
            self.push("(");
        }
        self.operand(left)?;
        self.push(operator.sign);
        self.operand(right)?;
        if is_greater {
            self.push(")");
        }
        Some(())
    }

    fn fold(&mut self, operator: u8, fold: Fold, left: Id, right: Option<Id>) -> Option<()> {
        let sign = operators::get(operator).sign;
        // All of a pack is one operand.
        let saved = self.context.pack.take();
        self.push("(");
        if fold == Fold::Left {
            self.push("...");
            self.push(sign);
        }
        self.operand(left)?;
        match (fold, right) {
            (Fold::Right, _) => {
                self.push(sign);
                self.push("...");
            }
            (Fold::Both, Some(right)) => {
                self.push(sign);
                self.push("...");
                self.push(sign);
                self.operand(right)?;
            }
            _ => {}
        }
        self.push(")");
        self.context.pack = saved;
        Some(())
    }

    fn sizeof_pack(&mut self, pack: Id) -> Option<()> {
        if let Some(Node::Argument(index)) = self.tree.get(pack)
            && let Some(items) = self.pack_of(index)
        {
            self.push(&items.length.to_string());
            return Some(());
        }
        self.push("sizeof...(");
        self.print(pack)?;
        self.push(")");
        Some(())
    }

    fn literal(&mut self, of: Id, value: super::node::Span, is_negative: bool) -> Option<()> {
        let suffix = match self.tree.get(of)? {
            Node::Word("int") => Some(""),
            Node::Word("unsigned int") => Some("u"),
            Node::Word("long") => Some("l"),
            Node::Word("unsigned long") => Some("ul"),
            Node::Word("long long") => Some("ll"),
            Node::Word("unsigned long long") => Some("ull"),
            Node::Word("bool") if !is_negative && matches!(self.span(value)?, "0" | "1") => {
                self.push(if self.span(value)? == "0" { "false" } else { "true" });
                return Some(());
            }
            _ => None,
        };
        if suffix.is_none() {
            self.push("(");
            self.print(of)?;
            self.push(")");
        }
        if is_negative {
            self.push("-");
        }
        let is_float = matches!(self.tree.get(of)?, Node::Word("float" | "double" | "long double" | "__float128"));
        if is_float {
            self.push("[");
        }
        self.push_span(value)?;
        self.push(if is_float { "]" } else { suffix.unwrap_or("") });
        Some(())
    }

    fn rare_expression(&mut self, node: Node) -> Option<()> {
        match node {
            Node::Designated { designator, value, is_field } => {
                self.push(if is_field { "." } else { "[" });
                self.print(designator)?;
                self.push(if is_field { "" } else { "]" });
                self.designated_value(value)?;
            }
            Node::DesignatedRange { first, last, value } => {
                self.push("[");
                self.print(first)?;
                self.push(" ... ");
                self.print(last)?;
                self.push("]");
                self.designated_value(value)?;
            }
            Node::Vendor { name, arguments } => {
                self.print(name)?;
                self.push("(");
                self.list(arguments)?;
                self.push(")");
            }
            Node::Requires { parameters, requirements } => {
                self.push("requires");
                if parameters.length > 0 {
                    self.push(" (");
                    self.list(parameters)?;
                    self.push(")");
                }
                self.push(" {");
                let tree = self.tree;
                for &requirement in tree.list(requirements) {
                    self.push(" ");
                    self.print(requirement)?;
                    self.push(";");
                }
                self.push(" }");
            }
            Node::Requirement { expression, is_noexcept, constraint } => {
                if !is_noexcept && constraint.is_none() {
                    return self.print(expression);
                }
                self.push("{");
                self.print(expression)?;
                self.push(if is_noexcept { "} noexcept" } else { "}" });
                if let Some(constraint) = constraint {
                    self.push(" -> ");
                    self.print(constraint)?;
                }
            }
            Node::TypeRequirement(of) => {
                self.push("typename ");
                self.print(of)?;
            }
            Node::NestedRequirement(of) | Node::Constraint { constraint: of, .. } => {
                self.push("requires ");
                self.print(of)?;
            }
            Node::TypeParameter(number) => self.push(&format!("typename $T{}", ordinal(number))),
            Node::ValueParameter { of, number } => {
                self.print(of)?;
                self.push(&format!(" $N{}", ordinal(number)));
            }
            Node::TemplateParameter { parameters, number } => {
                self.push("template");
                self.template_arguments(parameters)?;
                self.push(&format!(" typename $TT{}", ordinal(number)));
            }
            Node::PackParameter(inner) => {
                self.push("...");
                self.print(inner)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn designated_value(&mut self, value: Id) -> Option<()> {
        if !matches!(self.tree.get(value)?, Node::Designated { .. } | Node::DesignatedRange { .. }) {
            self.push("=");
        }
        self.print(value)
    }
}

/// Nothing for the first, then `0`, `1`, …
fn ordinal(number: u32) -> String {
    number.checked_sub(1).map_or_else(String::new, |number| number.to_string())
}
