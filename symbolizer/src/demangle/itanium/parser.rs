//! The reader of mangled names: its state, and what a name as a whole can be.
//!
//! The grammar is that of the Itanium C++ ABI, section 5.1 (<https://itanium-cxx-abi.github.io/cxx-abi/abi.html>), with
//! the extensions of GCC and LLVM. Each method reads one part and gives its node; `None` where the name is not of the
//! grammar or is past a limit.

use super::node::{Id, List, Node, Qualifiers, Span, Tree};
use super::{MAX_DEPTH, MAX_NODES};

/// What is known about the name of a function before its parameters are read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NameFacts {
    /// Qualifiers of a method.
    pub(super) qualifiers: Qualifiers,
    /// The name ends with template arguments.
    pub(super) is_template: bool,
    /// Constructors, destructors and conversions have no return type.
    pub(super) has_no_result: bool,
}

#[derive(Debug)]
pub(super) struct Parser<'a> {
    pub(super) input: &'a [u8],
    pub(super) at: usize,
    pub(super) tree: Tree,
    /// Parts that `S_`, `S0_`, … refer to.
    pub(super) substitutions: Vec<Id>,
    /// Nodes of a list that is being read, and of lists around it.
    pub(super) pending: Vec<Id>,
    /// Whether what is read is the type that names a conversion operator.
    pub(super) in_conversion: bool,
    depth: u32,
}

impl<'a> Parser<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Parser {
            input,
            at: 0,
            tree: Tree { nodes: Vec::with_capacity(64), lists: Vec::with_capacity(32) },
            substitutions: Vec::with_capacity(32),
            pending: Vec::with_capacity(16),
            in_conversion: false,
            depth: 0,
        }
    }

    // Characters.

    pub(super) fn peek(&self) -> u8 {
        self.peek_at(0)
    }

    /// A character further on; 0 at the end.
    pub(super) fn peek_at(&self, ahead: usize) -> u8 {
        self.input.get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(super) fn eat(&mut self, character: u8) -> bool {
        let found = self.peek() == character && self.at < self.input.len();
        self.at += usize::from(found);
        found
    }

    pub(super) fn eat_text(&mut self, text: &[u8]) -> bool {
        let found = self.input[self.at..].starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    pub(super) fn expect(&mut self, character: u8) -> Option<()> {
        self.eat(character).then_some(())
    }

    /// A decimal number without a sign.
    pub(super) fn number(&mut self) -> Option<u32> {
        let start = self.at;
        let mut number = 0u32;
        while self.peek().is_ascii_digit() {
            number = number.checked_mul(10)?.checked_add(u32::from(self.peek() - b'0'))?;
            self.at += 1;
        }
        (self.at > start).then_some(number)
    }

    /// A number of which only the digits are wanted, with a sign before it if it is negative.
    pub(super) fn signed_number(&mut self) -> Option<Span> {
        self.eat(b'n');
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        (self.at > start).then(|| self.span(start))
    }

    /// `_` is 0, `0_` is 1, `1_` is 2, …
    pub(super) fn index(&mut self) -> Option<u32> {
        if self.eat(b'_') {
            return Some(0);
        }
        let number = self.number()?;
        self.expect(b'_')?;
        number.checked_add(1)
    }

    pub(super) fn span(&self, start: usize) -> Span {
        Span { start: start as u32, end: self.at as u32 }
    }

    // Nodes.

    pub(super) fn add(&mut self, node: Node) -> Option<Id> {
        if self.tree.nodes.len() >= MAX_NODES {
            return None;
        }
        self.tree.nodes.push(node);
        Some(self.tree.nodes.len() as u32 - 1)
    }

    /// Adds a node that later parts of the name can refer to.
    pub(super) fn add_substitution(&mut self, node: Node) -> Option<Id> {
        let id = self.add(node)?;
        self.substitutions.push(id);
        Some(id)
    }

    /// Makes a list of the nodes that have become pending since there were `since`.
    pub(super) fn list_since(&mut self, since: usize) -> List {
        let start = self.tree.lists.len() as u32;
        self.tree.lists.extend(self.pending.drain(since..));
        List { start, length: self.tree.lists.len() as u32 - start }
    }

    /// A list of what `item` reads, up to and with an `E`.
    pub(super) fn list(&mut self, mut item: impl FnMut(&mut Self) -> Option<Id>) -> Option<List> {
        let since = self.pending.len();
        while !self.eat(b'E') {
            let id = item(self)?;
            self.pending.push(id);
        }
        Some(self.list_since(since))
    }

    /// Runs `inner` one level deeper.
    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    // Whole names.

    /// What follows `_Z`: a function with its parameters, a variable, or something special.
    pub(super) fn encoding(&mut self) -> Option<Id> {
        self.nested(|parser| match parser.peek() {
            b'T' | b'G' => parser.special(),
            _ => parser.function(),
        })
    }

    fn function(&mut self) -> Option<Id> {
        let saved = std::mem::replace(&mut self.in_conversion, false);
        let mut facts = NameFacts::default();
        let name = self.name(Some(&mut facts))?;
        let id = if self.at_end_of_encoding() {
            Some(name)
        } else {
            let result = if facts.is_template && !facts.has_no_result { Some(self.type_()?) } else { None };
            let parameters = self.parameters()?;
            self.add(Node::Function { name, result, parameters, qualifiers: facts.qualifiers })
        };
        self.in_conversion = saved;
        id
    }

    fn at_end_of_encoding(&self) -> bool {
        matches!(self.peek(), 0 | b'E' | b'.')
    }

    /// The types of a function's parameters, up to the end of the encoding.
    fn parameters(&mut self) -> Option<List> {
        let since = self.pending.len();
        if self.peek() == b'v' {
            self.at += 1;
        } else {
            loop {
                let id = self.type_()?;
                self.pending.push(id);
                if self.at_end_of_encoding() || self.peek() == b'Q' {
                    break;
                }
            }
        }
        if self.eat(b'Q') {
            let constraint = self.expression()?;
            let id = self.add(Node::Constraint { of: None, constraint })?;
            self.pending.push(id);
        }
        Some(self.list_since(since))
    }

    fn special(&mut self) -> Option<Id> {
        let code = [self.peek(), self.peek_at(1)];
        self.at += 2;
        let of_type = |prefix| (prefix, Self::type_ as fn(&mut Self) -> Option<Id>);
        let of_name = |prefix| (prefix, (|parser| parser.name(None)) as fn(&mut Self) -> Option<Id>);
        let (prefix, read) = match &code {
            b"TV" => of_type("vtable for "),
            b"TT" => of_type("VTT for "),
            b"TI" => of_type("typeinfo for "),
            b"TS" => of_type("typeinfo name for "),
            b"TF" => of_type("typeinfo fn for "),
            b"TJ" => of_type("java Class for "),
            b"TH" => of_name("TLS init function for "),
            b"TW" => of_name("TLS wrapper function for "),
            b"TA" => ("template parameter object for ", Self::template_argument as fn(&mut Self) -> Option<Id>),
            b"GV" => of_name("guard variable for "),
            b"GA" => ("hidden alias for ", Self::encoding as fn(&mut Self) -> Option<Id>),
            b"GI" => ("initializer for module ", Self::module_name as fn(&mut Self) -> Option<Id>),
            b"GT" if self.eat(b'n') => ("non-transaction clone for ", Self::encoding as fn(&mut Self) -> Option<Id>),
            b"GT" => {
                self.at += 1;
                ("transaction clone for ", Self::encoding as fn(&mut Self) -> Option<Id>)
            }
            b"GR" => {
                let of = self.name(None)?;
                let number = self.sequence_number()?;
                return self.add(Node::ReferenceTemporary { of, number });
            }
            b"TC" => {
                let of = self.type_()?;
                self.signed_number()?;
                self.expect(b'_')?;
                let within = self.type_()?;
                return self.add(Node::ConstructionVtable { of: within, within: of });
            }
            b"Th" | b"Tv" => {
                self.at -= 1;
                let prefix = if code[1] == b'h' { "non-virtual thunk to " } else { "virtual thunk to " };
                self.call_offset()?;
                (prefix, Self::encoding as fn(&mut Self) -> Option<Id>)
            }
            b"Tc" => {
                self.call_offset()?;
                self.call_offset()?;
                ("covariant return thunk to ", Self::encoding as fn(&mut Self) -> Option<Id>)
            }
            _ => return None,
        };
        let of = read(self)?;
        self.add(Node::Special { prefix, of })
    }

    /// By how much a thunk moves its pointer.
    fn call_offset(&mut self) -> Option<()> {
        let is_virtual = self.eat(b'v');
        if !is_virtual {
            self.expect(b'h')?;
        }
        self.signed_number()?;
        self.expect(b'_')?;
        if is_virtual {
            self.signed_number()?;
            self.expect(b'_')?;
        }
        Some(())
    }
}
