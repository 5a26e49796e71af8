//! Prints types. As C++ declares things, a type has a part to the left of what it is the type of, and one to the right:
//! `void (*` and `)(int)` for a pointer to a function.

use super::node::{Id, List, Node};
use super::print::{Context, Printer};

impl Printer<'_> {
    /// Follows references to template arguments, to the argument and the item of a pack that is meant.
    ///
    /// Gives the node, and the context that it is to be printed in.
    pub(super) fn resolve(&mut self, mut id: Id, mut context: Context) -> Option<(Id, Node, Context)> {
        self.step()?;
        loop {
            let node = self.tree.get(id)?;
            let Node::Argument(index) = node else { return Some((id, node, context)) };
            self.step()?;
            self.resolved += 1;
            if context.in_lambda {
                return Some((id, node, context));
            }
            let (arguments, outer) = *self.functions.get(context.function?)?;
            id = *self.tree.list(arguments).get(index as usize)?;
            if let (Some(index), Some(Node::Pack(items))) = (context.pack, self.tree.get(id)) {
                match self.tree.list(items).get(index) {
                    Some(&item) => id = item,
                    None => return Some((id, Node::Word(""), context)),
                }
            }
            // An argument is not part of the function that it is given to.
            context = Context { function: outer, pack: None, in_lambda: false };
        }
    }

    /// Prints what stands before the thing whose type this is; all of it for names and expressions.
    pub(super) fn left(&mut self, id: Id) -> Option<()> {
        self.nested(|printer| {
            let (id, node, context) = printer.resolve(id, printer.context)?;
            printer.in_context(context, |printer| {
                if node.is_declarator() { printer.left_of(node) } else { printer.whole(id, node) }
            })
        })
    }

    /// Prints what stands behind the thing whose type this is.
    pub(super) fn right(&mut self, id: Id) -> Option<()> {
        self.nested(|printer| {
            let (_, node, context) = printer.resolve(id, printer.context)?;
            if !node.is_declarator() {
                return Some(());
            }
            printer.in_context(context, |printer| printer.right_of(node))
        })
    }

    fn in_context(&mut self, context: Context, inner: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        let saved = std::mem::replace(&mut self.context, context);
        let result = inner(self);
        self.context = saved;
        result
    }

    pub(super) fn left_of(&mut self, node: Node) -> Option<()> {
        match node {
            Node::Pointer(to) => self.left_of_pointer(to, "*"),
            Node::LvalueReference(to) => self.left_of_reference(to, true),
            Node::RvalueReference(to) => self.left_of_reference(to, false),
            Node::Qualified { base, qualifiers } => {
                self.left(base)?;
                // A `const` argument of a `const` parameter is `const` once.
                let (_, inner, _) = self.resolve(base, self.context)?;
                match inner {
                    Node::Qualified { qualifiers: inner, .. } => self.qualifiers(qualifiers.without(inner)),
                    _ => self.qualifiers(qualifiers),
                }
                Some(())
            }
            Node::FunctionType { result, .. } => {
                self.left(result)?;
                if !self.has_right(result)? {
                    self.push(" ");
                }
                Some(())
            }
            Node::Array { element, .. } => self.left(element),
            Node::MemberPointer { class, member } => {
                self.left(member)?;
                if self.needs_parentheses(member)? {
                    self.open_parenthesis(member)?;
                } else {
                    self.push(" ");
                }
                self.print(class)?;
                self.push("::*");
                Some(())
            }
            Node::Vector { dimension, element } => {
                self.left(element)?;
                self.push(" __vector(");
                self.print(dimension)?;
                self.push(")");
                Some(())
            }
            Node::Complex { base, word } => {
                self.left(base)?;
                self.push(word);
                Some(())
            }
            Node::Suffixed { base, word } => {
                self.left(base)?;
                self.push(" ");
                self.print(word)
            }
            Node::Pack(items) => self.list(items),
            Node::Expansion(pattern) => self.expansion(pattern),
            // Of a generic lambda: others have been resolved.
            Node::Argument(index) => {
                self.push(&format!("auto:{}", u64::from(index) + 1));
                Some(())
            }
            Node::BitInt { width, is_signed } => {
                self.push(if is_signed { "_BitInt(" } else { "unsigned _BitInt(" });
                self.print(width)?;
                self.push(")");
                Some(())
            }
            Node::Float { span } => {
                self.push("_Float");
                self.push_span(span)
            }
            Node::Decltype(expression) => {
                self.push("decltype (");
                self.print(expression)?;
                self.push(")");
                Some(())
            }
            Node::Constrained { concept, word } => {
                self.print(concept)?;
                self.push(word);
                Some(())
            }
            Node::Elaborated { word, name } => {
                self.push(word);
                self.print(name)
            }
            _ => self.name(node),
        }
    }

    fn right_of(&mut self, node: Node) -> Option<()> {
        match node {
            Node::Pointer(to) => self.right_of_pointer(to),
            Node::LvalueReference(to) | Node::RvalueReference(to) => self.right_of_reference(to),
            Node::Qualified { base, .. }
            | Node::Complex { base, .. }
            | Node::Suffixed { base, .. }
            | Node::Vector { element: base, .. } => self.right(base),
            Node::MemberPointer { member, .. } => self.right_of_pointer(member),
            Node::FunctionType { result, parameters, qualifiers, exceptions } => {
                self.push("(");
                self.list(parameters)?;
                self.push(")");
                self.qualifiers(qualifiers);
                if let Some(exceptions) = exceptions {
                    self.exceptions(exceptions)?;
                }
                self.right(result)
            }
            Node::Array { dimension, element } => {
                if !self.out.ends_with(']') {
                    self.push(" ");
                }
                self.push("[");
                if let Some(dimension) = dimension {
                    self.print(dimension)?;
                }
                self.push("]");
                self.right(element)
            }
            _ => Some(()),
        }
    }

    fn exceptions(&mut self, id: Id) -> Option<()> {
        match self.tree.get(id)? {
            Node::Noexcept(condition) => {
                self.push(" noexcept");
                if let Some(condition) = condition {
                    self.push("(");
                    self.print(condition)?;
                    self.push(")");
                }
            }
            Node::Throw(types) => {
                self.push(" throw(");
                self.list(types)?;
                self.push(")");
            }
            _ => {}
        }
        Some(())
    }

    fn left_of_pointer(&mut self, to: Id, sign: &str) -> Option<()> {
        self.left(to)?;
        if self.needs_parentheses(to)? {
            self.open_parenthesis(to)?;
        }
        self.push(sign);
        Some(())
    }

    fn right_of_pointer(&mut self, to: Id) -> Option<()> {
        if self.needs_parentheses(to)? {
            self.push(")");
        }
        self.right(to)
    }

    /// References to references are one reference: `&&` only if all are `&&`.
    ///
    /// Gives what is referred to, in which context, and whether by `&`.
    fn collapse(&mut self, mut to: Id, mut is_lvalue: bool) -> Option<(Id, Context, bool)> {
        let mut context = self.context;
        loop {
            let (_, node, inner_context) = self.resolve(to, context)?;
            match node {
                Node::LvalueReference(inner) => (to, is_lvalue) = (inner, true),
                Node::RvalueReference(inner) => to = inner,
                _ => return Some((to, context, is_lvalue)),
            }
            context = inner_context;
        }
    }

    fn left_of_reference(&mut self, to: Id, is_lvalue: bool) -> Option<()> {
        let (to, context, is_lvalue) = self.collapse(to, is_lvalue)?;
        self.in_context(context, |printer| printer.left_of_pointer(to, if is_lvalue { "&" } else { "&&" }))
    }

    fn right_of_reference(&mut self, to: Id) -> Option<()> {
        let (to, context, _) = self.collapse(to, true)?;
        self.in_context(context, |printer| printer.right_of_pointer(to))
    }

    /// Whether a pointer to this is written in parentheses: to functions and arrays.
    fn needs_parentheses(&mut self, mut id: Id) -> Option<bool> {
        let mut context = self.context;
        loop {
            let (_, node, inner_context) = self.resolve(id, context)?;
            match node {
                Node::FunctionType { .. } | Node::Array { .. } => return Some(true),
                Node::Qualified { base, .. } => id = base,
                _ => return Some(false),
            }
            context = inner_context;
        }
    }

    fn open_parenthesis(&mut self, to: Id) -> Option<()> {
        let (_, node, _) = self.resolve(to, self.context)?;
        let is_function = matches!(node, Node::FunctionType { .. });
        if !(self.out.ends_with(' ') || is_function && self.out.ends_with(['(', '*'])) {
            self.push(" ");
        }
        self.push("(");
        Some(())
    }

    /// Whether there is anything to print behind the thing whose type this is.
    pub(super) fn has_right(&mut self, mut id: Id) -> Option<bool> {
        let mut context = self.context;
        loop {
            let (_, node, inner_context) = self.resolve(id, context)?;
            id = match node {
                Node::FunctionType { .. } | Node::Array { .. } => return Some(true),
                Node::Pointer(to) | Node::LvalueReference(to) | Node::RvalueReference(to) => to,
                Node::Qualified { base, .. } | Node::Complex { base, .. } | Node::Suffixed { base, .. } => base,
                Node::MemberPointer { member, .. } => member,
                _ => return Some(false),
            };
            context = inner_context;
        }
    }

    /// Prints a pattern for each item of the pack in it; with dots if there is no such pack.
    fn expansion(&mut self, pattern: Id) -> Option<()> {
        let Some(count) = self.pack_length(pattern)? else {
            if self.is_simple(pattern)? {
                self.print(pattern)?;
            } else {
                self.push("(");
                self.print(pattern)?;
                self.push(")");
            }
            self.push("...");
            return Some(());
        };
        let saved = self.context.pack;
        let mut result = Some(());
        let mut is_first = true;
        for index in 0..count {
            let end = self.out.len();
            if !is_first {
                self.push(", ");
            }
            let start = self.out.len();
            self.context.pack = Some(index);
            result = self.print(pattern);
            if result.is_none() {
                break;
            }
            if self.out.len() == start {
                self.out.truncate(end);
            } else {
                is_first = false;
            }
        }
        self.context.pack = saved;
        result
    }

    /// How many items the first pack has that a pattern refers to.
    fn pack_length(&mut self, pattern: Id) -> Option<Option<usize>> {
        let mut stack = vec![pattern];
        while let Some(id) = stack.pop() {
            self.step()?;
            let node = self.tree.get(id)?;
            if let Node::Argument(index) = node {
                if let Some(items) = self.pack_of(index) {
                    return Some(Some(items.length as usize));
                }
                continue;
            }
            let before = stack.len();
            node.for_each_part(self.tree, |part| stack.push(part));
            stack[before..].reverse();
        }
        Some(None)
    }

    /// The pack that a parameter of the function at hand stands for.
    pub(super) fn pack_of(&mut self, index: u32) -> Option<List> {
        self.resolved += 1;
        if self.context.in_lambda {
            return None;
        }
        let (arguments, _) = *self.functions.get(self.context.function?)?;
        match self.tree.get(*self.tree.list(arguments).get(index as usize)?)? {
            Node::Pack(items) => Some(items),
            _ => None,
        }
    }
}
