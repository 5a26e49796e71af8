//! Reads types.

use super::node::{Id, Node, Qualifiers, Span};
use super::parser::Parser;

/// The type that a letter stands for.
pub(super) const fn builtin(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'v' => "void",
        b'w' => "wchar_t",
        b'b' => "bool",
        b'c' => "char",
        b'a' => "signed char",
        b'h' => "unsigned char",
        b's' => "short",
        b't' => "unsigned short",
        b'i' => "int",
        b'j' => "unsigned int",
        b'l' => "long",
        b'm' => "unsigned long",
        b'x' => "long long",
        b'y' => "unsigned long long",
        b'n' => "__int128",
        b'o' => "unsigned __int128",
        b'f' => "float",
        b'd' => "double",
        b'e' => "long double",
        b'g' => "__float128",
        b'z' => "...",
        _ => return None,
    })
}

/// The type that a letter after `D` stands for.
const fn builtin_d(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'a' => "auto",
        b'c' => "decltype(auto)",
        b'd' => "decimal64",
        b'e' => "decimal128",
        b'f' => "decimal32",
        b'h' => "half",
        b'i' => "char32_t",
        b's' => "char16_t",
        b'u' => "char8_t",
        b'n' => "decltype(nullptr)",
        _ => return None,
    })
}

impl Parser<'_> {
    /// Any type.
    pub(super) fn type_(&mut self) -> Option<Id> {
        if let Some(name) = builtin(self.peek()) {
            self.at += 1;
            return self.add(Node::Word(name));
        }
        self.nested(Self::compound_type)
    }

    fn compound_type(&mut self) -> Option<Id> {
        match self.peek() {
            b'r' | b'V' | b'K' => self.qualified_type(),
            b'P' => self.modified(Node::Pointer),
            b'R' => self.modified(Node::LvalueReference),
            b'O' => self.modified(Node::RvalueReference),
            b'F' => self.function_type(Qualifiers::default(), None),
            b'A' => self.array_type(),
            b'M' => {
                self.at += 1;
                let class = self.type_()?;
                let member = self.type_()?;
                self.add_substitution(Node::MemberPointer { class, member })
            }
            b'C' => self.modified(|base| Node::Complex { base, word: " _Complex" }),
            b'G' => self.modified(|base| Node::Complex { base, word: " _Imaginary" }),
            b'T' => self.type_t(),
            b'S' if self.peek_at(1) != b't' => {
                let id = self.substitution()?;
                match self.peek() {
                    b'I' => self.with_arguments(id),
                    _ if matches!(self.tree.get(id), Some(Node::Module { .. })) => {
                        let name = self.unqualified(Some(id), None)?;
                        self.substitutions.push(name);
                        Some(name)
                    }
                    _ => Some(id),
                }
            }
            b'D' => self.type_d(),
            b'u' => {
                self.at += 1;
                let name = self.source_name()?;
                if self.eat(b'I') {
                    let arguments = self.list(Self::template_argument)?;
                    return self.add_substitution(Node::Vendor { name, arguments });
                }
                self.substitutions.push(name);
                Some(name)
            }
            b'U' if !matches!(self.peek_at(1), b'l' | b't') => self.vendor_qualified(),
            _ => {
                let id = self.name(None)?;
                self.substitutions.push(id);
                Some(id)
            }
        }
    }

    fn modified(&mut self, make: impl FnOnce(Id) -> Node) -> Option<Id> {
        self.at += 1;
        let inner = self.type_()?;
        self.add_substitution(make(inner))
    }

    fn with_arguments(&mut self, name: Id) -> Option<Id> {
        if self.peek() != b'I' {
            return Some(name);
        }
        let arguments = self.template_arguments()?;
        self.add_substitution(Node::Template { name, arguments })
    }

    pub(super) fn cv_qualifiers(&mut self) -> Qualifiers {
        let mut qualifiers = Qualifiers::default();
        loop {
            qualifiers.insert(match self.peek() {
                b'r' => Qualifiers::RESTRICT,
                b'V' => Qualifiers::VOLATILE,
                b'K' => Qualifiers::CONST,
                _ => return qualifiers,
            });
            self.at += 1;
        }
    }

    fn qualified_type(&mut self) -> Option<Id> {
        let qualifiers = self.cv_qualifiers();
        match (self.peek(), self.peek_at(1)) {
            (b'F', _) => return self.function_type(qualifiers, None),
            (b'D', b'o' | b'O' | b'w' | b'x') => return self.function_with_exceptions(qualifiers),
            _ => {}
        }
        let base = self.type_()?;
        self.add_substitution(Node::Qualified { base, qualifiers })
    }

    fn function_with_exceptions(&mut self, qualifiers: Qualifiers) -> Option<Id> {
        let mut exceptions = None;
        if self.eat_text(b"Do") {
            exceptions = Some(self.add(Node::Noexcept(None))?);
        } else if self.eat_text(b"DO") {
            let condition = self.expression()?;
            self.expect(b'E')?;
            exceptions = Some(self.add(Node::Noexcept(Some(condition)))?);
        } else if self.eat_text(b"Dw") {
            let types = self.list(Self::type_)?;
            exceptions = Some(self.add(Node::Throw(types))?);
        }
        self.eat_text(b"Dx");
        self.function_type(qualifiers, exceptions)
    }

    fn function_type(&mut self, mut qualifiers: Qualifiers, exceptions: Option<Id>) -> Option<Id> {
        self.expect(b'F')?;
        // `extern "C"`, which is not printed.
        self.eat(b'Y');
        let result = self.type_()?;
        let since = self.pending.len();
        if self.peek() == b'v' {
            self.at += 1;
        }
        loop {
            match (self.peek(), self.peek_at(1)) {
                (b'E', _) => break,
                (b'R', b'E') => qualifiers.insert(Qualifiers::LVALUE),
                (b'O', b'E') => qualifiers.insert(Qualifiers::RVALUE),
                _ => {
                    let id = self.type_()?;
                    self.pending.push(id);
                    continue;
                }
            }
            self.at += 1;
        }
        self.expect(b'E')?;
        let parameters = self.list_since(since);
        self.add_substitution(Node::FunctionType { result, parameters, qualifiers, exceptions })
    }

    fn array_type(&mut self) -> Option<Id> {
        self.expect(b'A')?;
        let dimension = match self.peek() {
            b'_' => None,
            b'0'..=b'9' => Some(self.digits()?),
            _ => Some(self.expression()?),
        };
        self.expect(b'_')?;
        let element = self.type_()?;
        self.add_substitution(Node::Array { dimension, element })
    }

    /// A number, kept as it is written.
    fn digits(&mut self) -> Option<Id> {
        let span = self.signed_number()?;
        self.add(Node::Identifier(span))
    }

    /// What starts with `T`: a template parameter, perhaps with arguments of its own, or `struct` and the like.
    fn type_t(&mut self) -> Option<Id> {
        let word = match self.peek_at(1) {
            b's' => "struct ",
            b'u' => "union ",
            b'e' => "enum ",
            _ => {
                let id = self.template_parameter()?;
                self.substitutions.push(id);
                // After a conversion's `T_` stand the arguments of the conversion itself.
                return if self.in_conversion { Some(id) } else { self.with_arguments(id) };
            }
        };
        self.at += 2;
        let name = self.name(None)?;
        self.add_substitution(Node::Elaborated { word, name })
    }

    /// `DT` expression `E`
    pub(super) fn type_d_expression(&mut self) -> Option<Id> {
        self.at += 2;
        let expression = self.expression()?;
        self.expect(b'E')?;
        self.add(Node::Decltype(expression))
    }

    /// What starts with `D`.
    fn type_d(&mut self) -> Option<Id> {
        let letter = self.peek_at(1);
        match letter {
            b't' | b'T' => {
                let id = self.type_d_expression()?;
                self.substitutions.push(id);
                Some(id)
            }
            b'p' => {
                self.at += 2;
                let pattern = self.type_()?;
                self.add_substitution(Node::Expansion(pattern))
            }
            b'o' | b'O' | b'w' | b'x' => self.function_with_exceptions(Qualifiers::default()),
            b'v' => {
                self.at += 2;
                let dimension = if self.eat(b'_') { self.expression()? } else { self.digits()? };
                self.expect(b'_')?;
                let element = self.type_()?;
                self.add_substitution(Node::Vector { dimension, element })
            }
            b'F' => self.float_type(),
            b'B' | b'U' => {
                self.at += 2;
                let width = if self.peek().is_ascii_digit() { self.digits()? } else { self.expression()? };
                self.expect(b'_')?;
                self.add_substitution(Node::BitInt { width, is_signed: letter == b'B' })
            }
            b'k' | b'K' => {
                self.at += 2;
                let concept = self.name(None)?;
                let word = if letter == b'k' { " auto" } else { " decltype(auto)" };
                self.add(Node::Constrained { concept, word })
            }
            _ => {
                let name = builtin_d(letter)?;
                self.at += 2;
                if letter == b'a' || letter == b'c' {
                    return self.add(Node::Word(name));
                }
                self.add(Node::Word(name))
            }
        }
    }

    /// `DF16_`, `DF16b`, `DF32x`
    fn float_type(&mut self) -> Option<Id> {
        self.at += 2;
        let start = self.at;
        self.number()?;
        let span = self.span(start);
        match self.peek() {
            b'_' => {
                self.at += 1;
                self.add(Node::Float { span })
            }
            b'b' => {
                self.at += 1;
                self.add(Node::Word("std::bfloat16_t"))
            }
            b'x' => {
                self.at += 1;
                let span = Span { start: span.start, end: self.at as u32 };
                self.add(Node::Float { span })
            }
            _ => None,
        }
    }

    /// `U` name type: the name of a qualifier of some compiler.
    fn vendor_qualified(&mut self) -> Option<Id> {
        self.at += 1;
        let mut word = self.source_name()?;
        if self.peek() == b'I' {
            let arguments = self.template_arguments()?;
            word = self.add(Node::Template { name: word, arguments })?;
        }
        let base = self.type_()?;
        self.add_substitution(Node::Suffixed { base, word })
    }
}
