//! Prints a parsed name: the printer's state, and names.

use super::super::arguments::{close_template, is_inline_namespace};
use super::node::{Id, List, Node, Qualifiers, Span, Tree};
use super::operators;
use super::{MAX_DEPTH, MAX_LENGTH, MAX_PRINT_DEPTH, MAX_STEPS};

/// Prints the name that `root` is, in full or in the normal style; `None` past a limit.
pub(super) fn print(tree: &Tree, text: &str, root: Id, in_full: bool) -> Option<String> {
    let out = String::with_capacity(text.len() * 2);
    let context = Context { function: None, pack: None, in_lambda: false };
    let functions = Vec::new();
    let mut printer = Printer {
        tree,
        text,
        out,
        in_full,
        context,
        functions,
        left_out_at: usize::MAX,
        printed: Vec::new(),
        remembered: Vec::new(),
        resolved: 0,
        steps: 0,
        depth: 0,
    };
    printer.print(root)?;
    Some(printer.out)
}

/// What parameters of templates stand for at some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    /// The function whose arguments they stand for, in [`Printer::functions`].
    pub(super) function: Option<usize>,
    /// Which item of a pack of arguments is meant, within what is repeated for each.
    pub(super) pack: Option<usize>,
    /// Whether they are the `auto`s of a generic lambda.
    pub(super) in_lambda: bool,
}

pub(super) struct Printer<'a> {
    pub(super) tree: &'a Tree,
    /// The mangled name, without `_Z`.
    pub(super) text: &'a str,
    pub(super) out: String,
    /// Whether everything is printed, or only what is of the normal style.
    pub(super) in_full: bool,
    pub(super) context: Context,
    /// The functions that are being printed: template arguments, and which function each is printed within.
    pub(super) functions: Vec<(List, Option<usize>)>,
    /// How long the text was when an empty item of a list was last left out.
    left_out_at: usize,
    /// Where the text of each node is in `out`, if it has been printed and is the same everywhere.
    printed: Vec<(u32, u32)>,
    /// The nodes of `printed` that have a text, in the order of its ends.
    remembered: Vec<usize>,
    /// How often the context has been asked what a parameter of a template stands for.
    pub(super) resolved: u32,
    steps: u32,
    depth: u32,
}

impl Printer<'_> {
    pub(super) fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Counts a visit to a node.
    pub(super) fn step(&mut self) -> Option<()> {
        self.steps += 1;
        (self.steps <= MAX_STEPS && self.out.len() <= MAX_LENGTH).then_some(())
    }

    /// Prints a name, a type or an expression.
    pub(super) fn print(&mut self, id: Id) -> Option<()> {
        match self.tree.get(id)? {
            Node::Word(word) => self.push(word),
            Node::Identifier(span) => self.push_span(span)?,
            node if node.is_declarator() => {
                self.left(id)?;
                self.right(id)?;
            }
            _ => self.left(id)?,
        }
        Some(())
    }

    /// Prints a node that has nothing to its right. Most of a long name are repetitions: what was printed before, and
    /// does not depend on the context, is copied.
    pub(super) fn whole(&mut self, id: Id, node: Node) -> Option<()> {
        let index = id as usize;
        match self.printed.get(index) {
            Some(&(start, end)) if end > 0 => {
                self.out.extend_from_within(start as usize..end as usize);
                return Some(());
            }
            _ => {}
        }
        let (start, resolved) = (self.out.len() as u32, self.resolved);
        self.left_of(node)?;
        if self.resolved == resolved
            && matches!(node, Node::Template { .. } | Node::Nested { .. } | Node::Local { .. } | Node::Standard { .. })
        {
            self.remember(index, start);
        }
        Some(())
    }

    fn remember(&mut self, index: usize, start: u32) {
        if self.printed.is_empty() {
            self.printed.resize(self.tree.nodes.len(), (0, 0));
        }
        if let Some(place) = self.printed.get_mut(index) {
            *place = (start, self.out.len() as u32);
            self.remembered.push(index);
        }
    }

    /// Forgets where things were printed that have been cut off.
    fn forget_from(&mut self, end: usize) {
        while let Some(&index) = self.remembered.last() {
            match self.printed.get_mut(index) {
                Some(place) if place.1 as usize > end => *place = (0, 0),
                _ => return,
            }
            self.remembered.pop();
        }
    }

    /// Runs `inner` one level deeper.
    pub(super) fn nested(&mut self, inner: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.step()?;
        if self.depth >= MAX_PRINT_DEPTH {
            return None;
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    pub(super) fn span(&self, span: Span) -> Option<&str> {
        self.text.get(span.start as usize..span.end as usize)
    }

    pub(super) fn push_span(&mut self, span: Span) -> Option<()> {
        self.out.push_str(self.text.get(span.start as usize..span.end as usize)?);
        Some(())
    }

    /// Prints the items of a list with `, ` between those that are not empty, as packs can be.
    pub(super) fn list(&mut self, list: List) -> Option<()> {
        let tree = self.tree;
        let items = tree.list(list);
        let mut is_first = true;
        for &item in items {
            let end = self.out.len();
            if !is_first {
                self.push(", ");
            }
            let start = self.out.len();
            self.print(item)?;
            if self.out.len() == start {
                self.out.truncate(end);
                self.left_out_at = if is_first { usize::MAX } else { end };
            } else {
                is_first = false;
            }
        }
        Some(())
    }

    /// Prints template arguments with their brackets.
    pub(super) fn template_arguments(&mut self, list: List) -> Option<()> {
        if self.out.ends_with('<') {
            self.push(" ");
        }
        let open = self.out.len();
        self.push("<");
        if self.in_full {
            self.list(list)?;
            // Behind an argument that is empty, binutils forgets the space.
            self.push(if self.out.ends_with('>') && self.left_out_at != self.out.len() { " >" } else { ">" });
            return Some(());
        }
        let mut starts = Vec::new();
        let tree = self.tree;
        for &item in tree.list(list) {
            self.normal_argument(item, &mut starts, 0)?;
        }
        let kept = close_template(&mut self.out, open, &starts);
        self.forget_from(kept);
        Some(())
    }

    /// Prints an argument, or each of those that a pack consists of.
    fn normal_argument(&mut self, item: Id, starts: &mut Vec<usize>, depth: u32) -> Option<()> {
        self.step()?;
        if let Some(Node::Pack(items)) = self.tree.get(item)
            && depth < MAX_DEPTH
        {
            let tree = self.tree;
            for &item in tree.list(items) {
                self.normal_argument(item, starts, depth + 1)?;
            }
            return Some(());
        }
        let end = self.out.len();
        if !starts.is_empty() {
            self.push(", ");
        }
        let start = self.out.len();
        self.print(item)?;
        if self.out.len() == start {
            self.out.truncate(end);
        } else {
            starts.push(start);
        }
        Some(())
    }

    /// Prints a name, if `node` is one or something else that no type is built around.
    pub(super) fn name(&mut self, node: Node) -> Option<()> {
        match node {
            Node::Word(word) => self.push(word),
            Node::Standard { full, normal, .. } => self.push(if self.in_full { full } else { normal }),
            Node::Identifier(span) => self.push_span(span)?,
            Node::Anonymous => self.push("(anonymous namespace)"),
            Node::Nested { scope, name } => self.nested_name(scope, name)?,
            Node::Global(name) => {
                self.push("::");
                self.print(name)?;
            }
            Node::Tagged { name, tag } => {
                self.print(name)?;
                if self.in_full {
                    self.push("[abi:");
                    self.push_span(tag)?;
                    self.push("]");
                }
            }
            Node::Template { name, arguments } => {
                self.print(name)?;
                self.template_arguments(arguments)?;
            }
            Node::Local { function, entity } => self.local(function, entity)?,
            Node::StringLiteral => self.push("string literal"),
            Node::Constructor(class) => self.print(class)?,
            Node::Destructor(class) => {
                self.push("~");
                self.print(class)?;
            }
            Node::Operator(operator) => self.operator_name(operator),
            Node::Conversion(to) => {
                self.push("operator ");
                self.print(to)?;
            }
            Node::LiteralOperator(name) => {
                self.push("operator\"\" ");
                self.print(name)?;
            }
            Node::VendorOperator(name) => {
                self.push("operator ");
                self.print(name)?;
            }
            Node::Function { name, result, parameters, qualifiers } => {
                self.function(name, result, parameters, qualifiers)?;
            }
            _ => self.rare_name(node)?,
        }
        Some(())
    }

    /// Apart from the common ones, whose recursion so takes little stack.
    #[inline(never)]
    fn rare_name(&mut self, node: Node) -> Option<()> {
        match node {
            Node::Lambda { parameters, number, templates } => {
                self.push("{lambda");
                if templates.length > 0 {
                    self.template_arguments(templates)?;
                }
                self.push("(");
                let saved = std::mem::replace(&mut self.context.in_lambda, true);
                self.list(parameters)?;
                self.context.in_lambda = saved;
                self.push(&format!(")#{number}}}"));
            }
            Node::Unnamed(number) => self.push(&format!("{{unnamed type#{number}}}")),
            Node::DefaultArgument { number, entity } => {
                self.push(&format!("{{default arg#{number}}}::"));
                self.print(entity)?;
            }
            Node::StructuredBinding(items) => {
                self.push("[");
                self.list(items)?;
                self.push("]");
            }
            Node::InModule { name, module } => {
                self.print(name)?;
                if self.in_full {
                    self.push("@");
                    self.print(module)?;
                }
            }
            Node::Module { parent, name, is_partition } => {
                if let Some(parent) = parent {
                    self.print(parent)?;
                }
                match (is_partition, parent) {
                    (true, _) => self.push(":"),
                    (false, Some(_)) => self.push("."),
                    _ => {}
                }
                self.print(name)?;
            }
            Node::Friend(name) => {
                if self.in_full {
                    self.push("[friend]");
                }
                self.print(name)?;
            }
            Node::Special { prefix, of } => {
                self.push(prefix);
                self.print(of)?;
            }
            Node::ConstructionVtable { of, within } => {
                self.push("construction vtable for ");
                self.print(of)?;
                self.push("-in-");
                self.print(within)?;
            }
            Node::ReferenceTemporary { of, number } => {
                self.push(&format!("reference temporary #{number} for "));
                self.print(of)?;
            }
            _ => self.expression(node)?,
        }
        Some(())
    }

    fn nested_name(&mut self, scope: Id, name: Id) -> Option<()> {
        if !self.in_full
            && let Some(Node::Nested { scope: outer, name: inner }) = self.tree.get(scope)
            && self.is_inline_namespace(inner)
        {
            return self.nested(|printer| printer.nested_name(outer, name));
        }
        self.print(scope)?;
        self.push("::");
        self.print(name)
    }

    fn is_inline_namespace(&self, id: Id) -> bool {
        match self.tree.get(id) {
            Some(Node::Identifier(span)) => self.span(span).is_some_and(is_inline_namespace),
            _ => false,
        }
    }

    /// What is in a function: the function without its return type, then the name.
    fn local(&mut self, function: Id, entity: Id) -> Option<()> {
        match self.tree.get(function)? {
            Node::Function { name, parameters, qualifiers, .. } => {
                self.nested(|printer| printer.function(name, None, parameters, qualifiers))?;
            }
            _ => self.print(function)?,
        }
        self.push("::");
        self.print(entity)
    }

    fn function(&mut self, name: Id, result: Option<Id>, parameters: List, qualifiers: Qualifiers) -> Option<()> {
        let saved = self.context;
        let count = self.functions.len();
        let arguments = self.arguments_of(name)?;
        self.functions.push((arguments, saved.function));
        self.context = Context { function: Some(count), pack: None, in_lambda: false };
        let printed =
            if self.in_full { self.whole_function(name, result, parameters, qualifiers) } else { self.print(name) };
        self.functions.truncate(count);
        self.context = saved;
        printed
    }

    fn whole_function(&mut self, name: Id, result: Option<Id>, parameters: List, qualifiers: Qualifiers) -> Option<()> {
        if let Some(result) = result {
            self.left(result)?;
            if !self.has_right(result)? {
                self.push(" ");
            }
        }
        self.print(name)?;
        self.push("(");
        self.list(parameters)?;
        self.push(")");
        self.qualifiers(qualifiers);
        match result {
            Some(result) => self.right(result),
            None => Some(()),
        }
    }

    /// The template arguments of a function by its name; of its class if it has none.
    fn arguments_of(&mut self, mut name: Id) -> Option<List> {
        let mut scope = None;
        loop {
            self.step()?;
            name = match self.tree.get(name)? {
                Node::Template { arguments, .. } => return Some(arguments),
                Node::Nested { scope: outer, name } => {
                    scope = Some(outer);
                    name
                }
                Node::Tagged { name, .. } | Node::Friend(name) | Node::InModule { name, .. } => name,
                Node::Local { entity, .. } | Node::DefaultArgument { entity, .. } => entity,
                _ => match scope.take() {
                    Some(scope) => scope,
                    None => return Some(List::default()),
                },
            };
        }
    }

    pub(super) fn qualifiers(&mut self, qualifiers: Qualifiers) {
        for (qualifier, text) in [
            (Qualifiers::CONST, " const"),
            (Qualifiers::VOLATILE, " volatile"),
            (Qualifiers::RESTRICT, " restrict"),
            (Qualifiers::LVALUE, " &"),
            (Qualifiers::RVALUE, " &&"),
        ] {
            if qualifiers.has(qualifier) {
                self.push(text);
            }
        }
    }

    pub(super) fn operator_name(&mut self, operator: u8) {
        let sign = operators::get(operator).sign.trim_end();
        self.push("operator");
        if sign.starts_with(|first: char| first.is_ascii_lowercase()) {
            self.push(" ");
        }
        self.push(sign);
    }
}
