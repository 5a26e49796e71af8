//! Reads expressions: in array bounds, template arguments, `decltype` and constraints.

use super::node::{Fold, Id, List, Node};
use super::operators::{self, Form};
use super::parser::Parser;

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Option<Id> {
        self.nested(Self::any_expression)
    }

    fn any_expression(&mut self) -> Option<Id> {
        match (self.peek(), self.peek_at(1)) {
            (b'L', _) => return self.literal(),
            (b'T', _) => return self.template_parameter(),
            (b'0'..=b'9', _) => return self.simple_name(),
            (b'f', b'p') | (b'f', b'L') if self.is_function_parameter() => return self.function_parameter(),
            (b'f', b'l' | b'r' | b'L' | b'R') => return self.fold(),
            (b'u', _) => {
                self.at += 1;
                let name = self.source_name()?;
                let arguments = self.list(|parser| parser.nested(Self::template_argument))?;
                return self.add(Node::Vendor { name, arguments });
            }
            (b'r', b'q' | b'Q') => return self.requires(),
            _ => {}
        }
        if self.eat_text(b"gs") {
            let inner = self.expression()?;
            return self.add(Node::Global(inner));
        }
        let code = [self.peek(), self.peek_at(1)];
        self.at += 2;
        match &code {
            b"sr" => self.scoped_name(),
            b"on" => {
                let name = self.operator_name()?;
                self.with_expression_arguments(name)
            }
            b"dn" => self.destructor_name(),
            b"cv" => self.cast(),
            b"tl" => {
                let of = Some(self.type_()?);
                let items = self.list(Self::braced)?;
                self.add(Node::Braces { of, items })
            }
            b"il" => {
                let items = self.list(Self::braced)?;
                self.add(Node::Braces { of: None, items })
            }
            b"sp" => {
                let pattern = self.expression()?;
                self.add(Node::Expansion(pattern))
            }
            b"sZ" => {
                let pack = self.expression()?;
                self.add(Node::SizeofPack(pack))
            }
            b"sP" => {
                let arguments = self.list(|parser| parser.nested(Self::template_argument))?;
                self.add(Node::SizeofArguments(arguments))
            }
            b"tr" => self.add(Node::Word("throw")),
            b"cp" => self.call(),
            b"mc" => {
                // A pointer to a member of a base class; shown as what it points to.
                self.type_()?;
                let id = self.expression()?;
                self.signed_number();
                self.expect(b'E')?;
                Some(id)
            }
            _ => self.operation(operators::find(&code)?),
        }
    }

    /// An operator with its operands.
    fn operation(&mut self, operator: u8) -> Option<Id> {
        let node = match operators::get(operator).form {
            Form::Prefix | Form::OfExpression => Node::Unary { operator, operand: self.expression()? },
            Form::Step if self.eat(b'_') => Node::Unary { operator, operand: self.expression()? },
            Form::Step => Node::Postfix { operator, operand: self.expression()? },
            Form::OfType => Node::Unary { operator, operand: self.type_()? },
            Form::Infix | Form::Member | Form::Subscript => {
                let left = self.expression()?;
                let right = self.expression()?;
                Node::Binary { operator, left, right }
            }
            Form::Conditional => {
                let condition = self.expression()?;
                let yes = self.expression()?;
                let no = self.expression()?;
                Node::Conditional { condition, yes, no }
            }
            Form::Call => return self.call(),
            Form::NamedCast => {
                let to = self.type_()?;
                let operand = self.expression()?;
                Node::NamedCast { operator, to, operand }
            }
            Form::New => return self.new_expression(operators::get(operator).code == *b"na"),
            Form::Delete => {
                let is_array = operators::get(operator).code == *b"da";
                Node::Delete { is_array, operand: self.expression()? }
            }
        };
        self.add(node)
    }

    fn call(&mut self) -> Option<Id> {
        let callee = self.expression()?;
        let arguments = self.list(Self::expression)?;
        self.add(Node::Call { callee, arguments })
    }

    fn cast(&mut self) -> Option<Id> {
        let to = self.type_()?;
        if self.eat(b'_') {
            let arguments = self.list(Self::expression)?;
            return self.add(Node::Cast { to, arguments, is_list: true });
        }
        let operand = self.expression()?;
        let since = self.pending.len();
        self.pending.push(operand);
        let arguments = self.list_since(since);
        self.add(Node::Cast { to, arguments, is_list: false })
    }

    fn new_expression(&mut self, is_array: bool) -> Option<Id> {
        let since = self.pending.len();
        while !self.eat(b'_') {
            let id = self.expression()?;
            self.pending.push(id);
        }
        let placement = self.list_since(since);
        let of = self.type_()?;
        let initializer = if self.eat(b'E') {
            None
        } else if self.eat_text(b"pi") {
            Some(self.list(Self::expression)?)
        } else {
            let id = self.expression()?;
            let since = self.pending.len();
            self.pending.push(id);
            Some(self.list_since(since))
        };
        self.add(Node::New { is_array, placement, of, initializer })
    }

    /// An item of a list in braces, perhaps with a designator.
    fn braced(&mut self) -> Option<Id> {
        match (self.peek(), self.peek_at(1)) {
            (b'd', b'i') => {
                self.at += 2;
                let designator = self.source_name()?;
                let value = self.nested(Self::braced)?;
                self.add(Node::Designated { designator, value, is_field: true })
            }
            (b'd', b'x') => {
                self.at += 2;
                let designator = self.expression()?;
                let value = self.nested(Self::braced)?;
                self.add(Node::Designated { designator, value, is_field: false })
            }
            (b'd', b'X') => {
                self.at += 2;
                let first = self.expression()?;
                let last = self.expression()?;
                let value = self.nested(Self::braced)?;
                self.add(Node::DesignatedRange { first, last, value })
            }
            _ => self.expression(),
        }
    }

    /// `fL` is a function's parameter if a number and `p` follow, and a fold expression otherwise.
    fn is_function_parameter(&self) -> bool {
        self.peek_at(1) == b'p' || self.peek_at(2).is_ascii_digit()
    }

    fn function_parameter(&mut self) -> Option<Id> {
        self.at += 2;
        if self.input.get(self.at - 1) == Some(&b'L') {
            self.number()?;
            self.expect(b'p')?;
        } else if self.eat(b'T') {
            return self.add(Node::Parameter(0));
        }
        self.cv_qualifiers();
        let number = self.index()?.checked_add(1)?;
        self.add(Node::Parameter(number))
    }

    fn fold(&mut self) -> Option<Id> {
        let kind = self.peek_at(1);
        self.at += 2;
        let operator = operators::find(self.input.get(self.at..self.at + 2)?)?;
        self.at += 2;
        let left = self.expression()?;
        let right = if matches!(kind, b'L' | b'R') { Some(self.expression()?) } else { None };
        let fold = match kind {
            b'l' => Fold::Left,
            b'r' => Fold::Right,
            _ => Fold::Both,
        };
        self.add(Node::Folded { operator, fold, left, right })
    }

    /// An identifier with template arguments, as the source has it.
    fn simple_name(&mut self) -> Option<Id> {
        let name = self.source_name()?;
        self.with_expression_arguments(name)
    }

    fn with_expression_arguments(&mut self, name: Id) -> Option<Id> {
        if self.peek() != b'I' {
            return Some(name);
        }
        let arguments = self.template_arguments()?;
        self.add(Node::Template { name, arguments })
    }

    /// What follows `dn`: a type or an identifier.
    fn destructor_name(&mut self) -> Option<Id> {
        let class = if self.peek().is_ascii_digit() { self.simple_name()? } else { self.type_()? };
        self.add(Node::Destructor(class))
    }

    /// What follows `sr`: a name in a scope that depends on template parameters.
    fn scoped_name(&mut self) -> Option<Id> {
        // A scope of several parts (`N` … `E`) is read as a type is: so GCC counts its parts among the substitutions.
        let scope = match self.namespaces()? {
            Some(scope) => scope,
            None => self.type_()?,
        };
        if self.eat_text(b"dn") {
            let name = self.destructor_name()?;
            return self.add(Node::Nested { scope, name });
        }
        self.eat_text(b"on");
        let name = if self.peek().is_ascii_digit() { self.source_name()? } else { self.operator_name()? };
        let name = self.add(Node::Nested { scope, name })?;
        self.with_expression_arguments(name)
    }

    /// A scope that is a list of identifiers with an `E` at its end. GCC has the name of a type instead, without such an
    /// end: then nothing is read.
    fn namespaces(&mut self) -> Option<Option<Id>> {
        let before = (self.at, self.substitutions.len());
        let mut scope = None;
        while self.peek().is_ascii_digit() {
            let name = self.simple_name()?;
            scope = Some(match scope {
                Some(scope) => self.add(Node::Nested { scope, name })?,
                None => name,
            });
        }
        let has_end = scope.is_some() && self.eat(b'E');
        let goes_on = self.peek().is_ascii_digit() || matches!(&[self.peek(), self.peek_at(1)], b"on" | b"dn");
        if has_end && goes_on {
            return Some(scope);
        }
        self.at = before.0;
        self.substitutions.truncate(before.1);
        Some(None)
    }

    /// `L` … `E`
    pub(super) fn literal(&mut self) -> Option<Id> {
        self.expect(b'L')?;
        if self.eat_text(b"_Z") || self.peek() == b'Z' {
            self.eat(b'Z');
            let id = self.encoding()?;
            self.expect(b'E')?;
            return Some(id);
        }
        let of = self.type_()?;
        if matches!(self.tree.get(of), Some(Node::Word("decltype(nullptr)"))) && self.eat(b'E') {
            return Some(of);
        }
        let is_negative = self.eat(b'n');
        let start = self.at;
        while !matches!(self.peek(), b'E' | 0) {
            self.at += 1;
        }
        let value = self.span(start);
        self.expect(b'E')?;
        self.add(Node::Literal { of, value, is_negative })
    }

    fn requires(&mut self) -> Option<Id> {
        let has_parameters = self.peek_at(1) == b'Q';
        self.at += 2;
        let mut parameters = List::default();
        if has_parameters {
            let since = self.pending.len();
            while !self.eat(b'_') {
                let id = self.type_()?;
                self.pending.push(id);
            }
            parameters = self.list_since(since);
        }
        let requirements = self.list(Self::requirement)?;
        self.add(Node::Requires { parameters, requirements })
    }

    fn requirement(&mut self) -> Option<Id> {
        if self.eat(b'X') {
            let expression = self.expression()?;
            let is_noexcept = self.eat(b'N');
            let constraint = if self.eat(b'R') { Some(self.name(None)?) } else { None };
            return self.add(Node::Requirement { expression, is_noexcept, constraint });
        }
        if self.eat(b'T') {
            let of = self.type_()?;
            return self.add(Node::TypeRequirement(of));
        }
        self.expect(b'Q')?;
        let constraint = self.expression()?;
        self.add(Node::NestedRequirement(constraint))
    }
}
