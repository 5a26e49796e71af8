//! What a mangled name consists of, once parsed.

/// A node, by its place in [`Tree::nodes`].
pub(super) type Id = u32;

/// Nodes in a row, in [`Tree::lists`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    pub(super) start: u32,
    pub(super) length: u32,
}

/// A part of the mangled name: an identifier or a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// `const` and the like behind a type or a function's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Qualifiers(u8);

impl Qualifiers {
    pub(super) const CONST: Self = Qualifiers(1);
    pub(super) const VOLATILE: Self = Qualifiers(2);
    pub(super) const RESTRICT: Self = Qualifiers(4);
    /// `&` after a function's parameters.
    pub(super) const LVALUE: Self = Qualifiers(8);
    /// `&&` after a function's parameters.
    pub(super) const RVALUE: Self = Qualifiers(16);

    pub(super) fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn without(self, other: Self) -> Self {
        Qualifiers(self.0 & !other.0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// How two operands of a fold expression stand to the dots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    /// `(...+x)`
    Left,
    /// `(x+...)`
    Right,
    /// `(x+...+y)`, either way round.
    Both,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    // Names.
    /// A text that is always the same: a builtin type, `std`.
    Word(&'static str),
    /// An abbreviation of the standard library: its full form, that without defaults, and the class's own name.
    Standard {
        full: &'static str,
        normal: &'static str,
        class: &'static str,
    },
    Identifier(Span),
    Anonymous,
    /// `scope::name`
    Nested {
        scope: Id,
        name: Id,
    },
    /// `::name`
    Global(Id),
    /// `name[abi:tag]`
    Tagged {
        name: Id,
        tag: Span,
    },
    /// `name<arguments>`
    Template {
        name: Id,
        arguments: List,
    },
    /// Something in a function.
    Local {
        function: Id,
        entity: Id,
    },
    StringLiteral,
    /// What a function has in the default of its parameter: `{default arg#1}::name`.
    DefaultArgument {
        number: u32,
        entity: Id,
    },
    /// The class's own name.
    Constructor(Id),
    Destructor(Id),
    /// An operator by its place in the table.
    Operator(u8),
    /// `operator type`
    Conversion(Id),
    /// `operator"" name`
    LiteralOperator(Id),
    /// `operator name`
    VendorOperator(Id),
    Lambda {
        parameters: List,
        number: u32,
        templates: List,
    },
    /// A class without a name.
    Unnamed(u32),
    /// `[a, b]`
    StructuredBinding(List),
    /// `name@module`, the module being a list of names.
    InModule {
        name: Id,
        module: Id,
    },
    /// A part of a module's name, after the parts before it if there are any.
    Module {
        parent: Option<Id>,
        name: Id,
        is_partition: bool,
    },
    /// A friend defined in a class.
    Friend(Id),

    // What a whole mangled name can stand for.
    Function {
        name: Id,
        result: Option<Id>,
        parameters: List,
        qualifiers: Qualifiers,
    },
    /// `prefix` and a name or a type.
    Special {
        prefix: &'static str,
        of: Id,
    },
    ConstructionVtable {
        of: Id,
        within: Id,
    },
    ReferenceTemporary {
        of: Id,
        number: Id,
    },

    // Types.
    Qualified {
        base: Id,
        qualifiers: Qualifiers,
    },
    Pointer(Id),
    LvalueReference(Id),
    RvalueReference(Id),
    FunctionType {
        result: Id,
        parameters: List,
        qualifiers: Qualifiers,
        exceptions: Option<Id>,
    },
    Array {
        dimension: Option<Id>,
        element: Id,
    },
    MemberPointer {
        class: Id,
        member: Id,
    },
    Vector {
        dimension: Id,
        element: Id,
    },
    /// A type with a word behind it: `double _Complex`, vendors' qualifiers.
    Suffixed {
        base: Id,
        word: Id,
    },
    Complex {
        base: Id,
        word: &'static str,
    },
    BitInt {
        width: Id,
        is_signed: bool,
    },
    Float {
        span: Span,
    },
    Decltype(Id),
    Noexcept(Option<Id>),
    Throw(List),
    /// Arguments for one parameter that takes many.
    Pack(List),
    /// `pattern...`
    Expansion(Id),
    /// A parameter of a template, from 0: stands for an argument of the function that it is printed as part of, or for
    /// an `auto` of the generic lambda.
    Argument(u32),
    /// A constrained `auto` and the like: the text before, and what follows.
    Constrained {
        concept: Id,
        word: &'static str,
    },
    /// `struct name` and the like where the source says so.
    Elaborated {
        word: &'static str,
        name: Id,
    },

    // Expressions.
    Unary {
        operator: u8,
        operand: Id,
    },
    /// `x++`
    Postfix {
        operator: u8,
        operand: Id,
    },
    Binary {
        operator: u8,
        left: Id,
        right: Id,
    },
    Conditional {
        condition: Id,
        yes: Id,
        no: Id,
    },
    Call {
        callee: Id,
        arguments: List,
    },
    /// `(type)x`, `type(x, y)`
    Cast {
        to: Id,
        arguments: List,
        is_list: bool,
    },
    /// `static_cast<type>(x)`
    NamedCast {
        operator: u8,
        to: Id,
        operand: Id,
    },
    /// `type{x, y}`
    Braces {
        of: Option<Id>,
        items: List,
    },
    /// A parameter of the function: 0 is `this`.
    Parameter(u32),
    SizeofPack(Id),
    SizeofArguments(List),
    New {
        is_array: bool,
        placement: List,
        of: Id,
        initializer: Option<List>,
    },
    Delete {
        is_array: bool,
        operand: Id,
    },
    Folded {
        operator: u8,
        fold: Fold,
        left: Id,
        right: Option<Id>,
    },
    /// A number of some type.
    Literal {
        of: Id,
        value: Span,
        is_negative: bool,
    },
    /// `.name = value`, `[index] = value`
    Designated {
        designator: Id,
        value: Id,
        is_field: bool,
    },
    DesignatedRange {
        first: Id,
        last: Id,
        value: Id,
    },
    /// A vendor's own expression.
    Vendor {
        name: Id,
        arguments: List,
    },
    Requires {
        parameters: List,
        requirements: List,
    },
    Requirement {
        expression: Id,
        is_noexcept: bool,
        constraint: Option<Id>,
    },
    TypeRequirement(Id),
    NestedRequirement(Id),
    /// `name requires constraint`, as part of a list of template parameters or behind parameters.
    Constraint {
        of: Option<Id>,
        constraint: Id,
    },
    /// What declares a parameter of a template in a lambda: `typename $T`.
    TypeParameter(u32),
    ValueParameter {
        of: Id,
        number: u32,
    },
    TemplateParameter {
        parameters: List,
        number: u32,
    },
    PackParameter(Id),
}

/// A parsed name.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) lists: Vec<Id>,
}

impl Tree {
    pub(super) fn get(&self, id: Id) -> Option<Node> {
        self.nodes.get(id as usize).copied()
    }

    /// The nodes of a list.
    pub(super) fn list(&self, list: List) -> &[Id] {
        let start = list.start as usize;
        self.lists.get(start..start + list.length as usize).unwrap_or_default()
    }
}

impl Node {
    /// Whether part of this may have to be printed to the right of what it is the type of.
    pub(super) fn is_declarator(self) -> bool {
        matches!(
            self,
            Node::Pointer(_)
                | Node::LvalueReference(_)
                | Node::RvalueReference(_)
                | Node::Qualified { .. }
                | Node::Complex { .. }
                | Node::Suffixed { .. }
                | Node::Vector { .. }
                | Node::MemberPointer { .. }
                | Node::FunctionType { .. }
                | Node::Array { .. }
                | Node::Argument(_)
        )
    }

    /// Calls `visit` with each node that this one is made of.
    pub(super) fn for_each_part(self, tree: &Tree, mut visit: impl FnMut(Id)) {
        let (parts, lists): ([Option<Id>; 3], [List; 2]) = match self {
            Node::Word(_)
            | Node::Standard { .. }
            | Node::Identifier(_)
            | Node::Anonymous
            | Node::StringLiteral
            | Node::Operator(_)
            | Node::Unnamed(_)
            | Node::Float { .. }
            | Node::Argument(_)
            | Node::Parameter(_)
            | Node::TypeParameter(_) => return,
            Node::Nested { scope: a, name: b }
            | Node::Local { function: a, entity: b }
            | Node::InModule { name: a, module: b }
            | Node::ConstructionVtable { of: a, within: b }
            | Node::MemberPointer { class: a, member: b }
            | Node::Vector { dimension: a, element: b }
            | Node::Suffixed { base: a, word: b }
            | Node::Binary { left: a, right: b, .. }
            | Node::NamedCast { to: a, operand: b, .. }
            | Node::Designated { designator: a, value: b, .. } => ([Some(a), Some(b), None], Default::default()),
            Node::Global(a)
            | Node::Tagged { name: a, .. }
            | Node::DefaultArgument { entity: a, .. }
            | Node::Constructor(a)
            | Node::Destructor(a)
            | Node::Conversion(a)
            | Node::LiteralOperator(a)
            | Node::VendorOperator(a)
            | Node::Friend(a)
            | Node::Special { of: a, .. }
            | Node::ReferenceTemporary { of: a, .. }
            | Node::Qualified { base: a, .. }
            | Node::Pointer(a)
            | Node::LvalueReference(a)
            | Node::RvalueReference(a)
            | Node::Complex { base: a, .. }
            | Node::BitInt { width: a, .. }
            | Node::Decltype(a)
            | Node::Expansion(a)
            | Node::Constrained { concept: a, .. }
            | Node::Elaborated { name: a, .. }
            | Node::Unary { operand: a, .. }
            | Node::Postfix { operand: a, .. }
            | Node::SizeofPack(a)
            | Node::Delete { operand: a, .. }
            | Node::Literal { of: a, .. }
            | Node::TypeRequirement(a)
            | Node::NestedRequirement(a)
            | Node::ValueParameter { of: a, .. }
            | Node::PackParameter(a) => ([Some(a), None, None], Default::default()),
            Node::Template { name: a, arguments } | Node::Vendor { name: a, arguments } => {
                ([Some(a), None, None], [arguments, List::default()])
            }
            Node::Call { callee: a, arguments } | Node::Cast { to: a, arguments, .. } => {
                ([Some(a), None, None], [arguments, List::default()])
            }
            Node::Lambda { parameters: list, .. }
            | Node::StructuredBinding(list)
            | Node::Throw(list)
            | Node::Pack(list)
            | Node::SizeofArguments(list)
            | Node::TemplateParameter { parameters: list, .. } => ([None; 3], [list, List::default()]),
            Node::Module { parent, name, .. } => ([parent, Some(name), None], Default::default()),
            Node::Function { name, result, parameters, .. } => {
                ([Some(name), result, None], [parameters, List::default()])
            }
            Node::FunctionType { result, parameters, exceptions, .. } => {
                ([Some(result), exceptions, None], [parameters, List::default()])
            }
            Node::Array { dimension, element } => ([dimension, Some(element), None], Default::default()),
            Node::Noexcept(condition) => ([condition, None, None], Default::default()),
            Node::Conditional { condition, yes, no } => ([Some(condition), Some(yes), Some(no)], Default::default()),
            Node::Braces { of, items } => ([of, None, None], [items, List::default()]),
            Node::New { placement, of, initializer, .. } => {
                ([Some(of), None, None], [placement, initializer.unwrap_or_default()])
            }
            Node::Folded { left, right, .. } => ([Some(left), right, None], Default::default()),
            Node::DesignatedRange { first, last, value } => {
                ([Some(first), Some(last), Some(value)], Default::default())
            }
            Node::Requires { parameters, requirements } => ([None; 3], [parameters, requirements]),
            Node::Requirement { expression, constraint, .. } => {
                ([Some(expression), constraint, None], Default::default())
            }
            Node::Constraint { of, constraint } => ([of, Some(constraint), None], Default::default()),
        };
        parts.into_iter().flatten().for_each(&mut visit);
        for list in lists {
            tree.list(list).iter().copied().for_each(&mut visit);
        }
    }
}
