//! Reads names: nested, local, abbreviated, unnamed ones, and template arguments.

use super::node::{Id, List, Node, Qualifiers};
use super::operators;
use super::parser::{NameFacts, Parser};

/// The abbreviations of the standard library: letter, full form, form without defaults, the class's own name.
const STANDARD: [(u8, &str, &str, &str); 6] = [
    (b'a', "std::allocator", "std::allocator", "allocator"),
    (b'b', "std::basic_string", "std::basic_string", "basic_string"),
    (b's', "std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string", "basic_string"),
    (b'i', "std::basic_istream<char, std::char_traits<char> >", "std::istream", "basic_istream"),
    (b'o', "std::basic_ostream<char, std::char_traits<char> >", "std::ostream", "basic_ostream"),
    (b'd', "std::basic_iostream<char, std::char_traits<char> >", "std::iostream", "basic_iostream"),
];

impl Parser<'_> {
    /// A name; `facts` is given where it is that of a function, and filled in.
    pub(super) fn name(&mut self, mut facts: Option<&mut NameFacts>) -> Option<Id> {
        match self.peek() {
            b'N' => return self.nested(|parser| parser.nested_name(facts)),
            b'Z' => return self.nested(|parser| parser.local_name(facts)),
            _ => {}
        }
        let name = if self.peek() == b'S' && self.peek_at(1) != b't' {
            let name = self.substitution()?;
            if self.peek() != b'I' {
                // Only a module's name may stand before a name without `N` and `E`.
                return self.unqualified(Some(name), facts.as_deref_mut());
            }
            name
        } else {
            let scope = if self.eat_text(b"St") { Some(self.add(Node::Word("std"))?) } else { None };
            let name = self.unqualified(scope, facts.as_deref_mut())?;
            if self.peek() != b'I' {
                return Some(name);
            }
            self.substitutions.push(name);
            name
        };
        let arguments = self.template_arguments()?;
        if let Some(facts) = facts {
            facts.is_template = true;
        }
        self.add(Node::Template { name, arguments })
    }

    /// `N` … `E`
    fn nested_name(&mut self, mut facts: Option<&mut NameFacts>) -> Option<Id> {
        self.expect(b'N')?;
        // An explicit object parameter (`this auto&&`) is printed among the parameters only.
        self.eat(b'H');
        let mut qualifiers = self.cv_qualifiers();
        if self.eat(b'R') {
            qualifiers.insert(Qualifiers::LVALUE);
        } else if self.eat(b'O') {
            qualifiers.insert(Qualifiers::RVALUE);
        }
        if let Some(facts) = facts.as_deref_mut() {
            facts.qualifiers = qualifiers;
        }
        let mut name: Option<Id> = None;
        // Whether the name so far is listed among the substitutions.
        let mut is_listed = true;
        while !self.eat(b'E') {
            if let (Some(name), false) = (name, is_listed) {
                self.substitutions.push(name);
            }
            is_listed = false;
            if let Some(facts) = facts.as_deref_mut() {
                facts.is_template = false;
            }
            name = Some(match (self.peek(), self.peek_at(1), name) {
                (b'S', b't', None) => {
                    self.at += 2;
                    is_listed = true;
                    self.add(Node::Word("std"))?
                }
                (b'S', _, _) => {
                    let part = self.substitution()?;
                    is_listed = true;
                    match name {
                        None => part,
                        // A module between the parts of a name.
                        Some(scope) => {
                            is_listed = false;
                            let inner = self.unqualified(Some(part), facts.as_deref_mut())?;
                            self.add(Node::Nested { scope, name: inner })?
                        }
                    }
                }
                (b'T', _, None) => self.template_parameter()?,
                (b'D', b't' | b'T', None) => self.type_d_expression()?,
                (b'I', _, Some(name)) => {
                    let arguments = self.template_arguments()?;
                    if let Some(facts) = facts.as_deref_mut() {
                        facts.is_template = true;
                    }
                    self.add(Node::Template { name, arguments })?
                }
                (b'M', _, Some(name)) => {
                    // The lambda that follows is in the initializer of this variable.
                    self.at += 1;
                    is_listed = true;
                    name
                }
                (_, _, scope) => self.unqualified(scope, facts.as_deref_mut())?,
            });
        }
        name
    }

    /// `Z` function `E` entity
    fn local_name(&mut self, facts: Option<&mut NameFacts>) -> Option<Id> {
        self.expect(b'Z')?;
        let function = self.encoding()?;
        self.expect(b'E')?;
        let entity = if self.eat(b's') {
            self.discriminator();
            self.add(Node::StringLiteral)?
        } else if self.eat(b'd') {
            let number = if self.eat(b'_') {
                1
            } else {
                let number = self.number()?.checked_add(2)?;
                self.expect(b'_')?;
                number
            };
            let entity = self.name(facts)?;
            self.add(Node::DefaultArgument { number, entity })?
        } else {
            let entity = self.name(facts)?;
            self.discriminator();
            entity
        };
        self.add(Node::Local { function, entity })
    }

    /// `_3`, `__12_`: tells local things of one name apart; not printed.
    fn discriminator(&mut self) {
        let start = self.at;
        let is_right = self.eat(b'_')
            && if self.eat(b'_') {
                self.number().is_some() && self.eat(b'_')
            } else {
                self.peek().is_ascii_digit() && {
                    self.at += 1;
                    true
                }
            };
        if !is_right {
            self.at = start;
        }
    }

    /// A name without scope, within `scope` if there is one.
    pub(super) fn unqualified(&mut self, mut scope: Option<Id>, facts: Option<&mut NameFacts>) -> Option<Id> {
        let mut module = match scope {
            Some(id) if matches!(self.tree.get(id), Some(Node::Module { .. })) => scope.take(),
            _ => None,
        };
        while self.peek() == b'W' {
            module = Some(self.module_part(module)?);
        }
        let is_friend = self.eat(b'F');
        while self.eat(b'L') {}
        let mut has_no_result = false;
        let mut name = match self.peek() {
            b'C' | b'D' if self.peek() == b'C' || self.peek_at(1).is_ascii_digit() => {
                has_no_result = true;
                self.constructor(scope?)?
            }
            b'D' if self.eat_text(b"DC") => {
                let items = self.list(Self::source_name)?;
                self.add(Node::StructuredBinding(items))?
            }
            b'U' => self.unnamed()?,
            b'0'..=b'9' => self.source_name()?,
            _ => {
                let operator = self.operator_name()?;
                has_no_result = matches!(self.tree.get(operator), Some(Node::Conversion(_)));
                operator
            }
        };
        if let Some(facts) = facts {
            facts.has_no_result = has_no_result;
        }
        if let Some(module) = module {
            name = self.add(Node::InModule { name, module })?;
        }
        while self.eat(b'B') {
            let tag = self.identifier()?;
            name = self.add(Node::Tagged { name, tag })?;
        }
        if is_friend {
            name = self.add(Node::Friend(name))?;
        }
        match scope {
            Some(scope) => self.add(Node::Nested { scope, name }),
            None => Some(name),
        }
    }

    /// The name of a module, up to its end.
    pub(super) fn module_name(&mut self) -> Option<Id> {
        let mut module = None;
        while self.peek() == b'W' || (self.peek() == b'S' && module.is_none()) {
            module = Some(if self.peek() == b'S' { self.substitution()? } else { self.module_part(module)? });
        }
        module
    }

    fn module_part(&mut self, parent: Option<Id>) -> Option<Id> {
        self.expect(b'W')?;
        let is_partition = self.eat(b'P');
        let name = self.source_name()?;
        self.add_substitution(Node::Module { parent, name, is_partition })
    }

    /// A constructor or destructor of the class that `scope` is.
    fn constructor(&mut self, scope: Id) -> Option<Id> {
        let mut class = self.class_name(scope)?;
        if self.eat(b'D') {
            self.at += 1;
            return self.add(Node::Destructor(class));
        }
        self.expect(b'C')?;
        let is_inherited = self.eat(b'I');
        if !matches!(self.peek(), b'1'..=b'9') {
            return None;
        }
        self.at += 1;
        if is_inherited {
            // The class that the constructor comes from.
            let base = self.type_()?;
            class = self.class_name(base)?;
        }
        self.add(Node::Constructor(class))
    }

    /// A class's own name, without its scope and arguments.
    fn class_name(&mut self, mut id: Id) -> Option<Id> {
        loop {
            id = match self.tree.get(id)? {
                Node::Nested { name, .. } | Node::Template { name, .. } | Node::Tagged { name, .. } => name,
                Node::InModule { name, .. } => name,
                Node::Local { entity, .. } | Node::DefaultArgument { entity, .. } => entity,
                Node::Standard { class, .. } => return self.add(Node::Word(class)),
                _ => return Some(id),
            };
        }
    }

    /// A length and an identifier of that length.
    fn identifier(&mut self) -> Option<super::node::Span> {
        let length = self.number()? as usize;
        let start = self.at;
        if length == 0 || length > self.input.len() - start {
            return None;
        }
        self.at += length;
        Some(self.span(start))
    }

    pub(super) fn source_name(&mut self) -> Option<Id> {
        let span = self.identifier()?;
        let text = &self.input[span.start as usize..span.end as usize];
        let is_anonymous =
            matches!(text, [b'_', b'G', b'L', b'O', b'B', b'A', b'L', b'_', b'_' | b'.' | b'$', b'N', ..]);
        self.add(if is_anonymous { Node::Anonymous } else { Node::Identifier(span) })
    }

    /// `Ul` … `E` and `Ut`: what has no name.
    fn unnamed(&mut self) -> Option<Id> {
        if self.eat_text(b"Ut") {
            let number = self.index()?.checked_add(1)?;
            let id = self.add(Node::Unnamed(number))?;
            return Some(id);
        }
        if !self.eat_text(b"Ul") {
            return None;
        }
        let saved = std::mem::replace(&mut self.in_conversion, false);
        let since = self.pending.len();
        while self.peek() == b'T' && matches!(self.peek_at(1), b'y' | b'n' | b't' | b'p') {
            let declaration = self.template_declaration(self.pending.len() - since)?;
            self.pending.push(declaration);
        }
        let templates = self.list_since(since);
        if self.eat(b'Q') {
            self.expression()?;
        }
        let since = self.pending.len();
        if self.eat(b'v') {
            self.expect(b'E')?;
        } else {
            while !self.eat(b'E') {
                if self.eat(b'Q') {
                    self.expression()?;
                    continue;
                }
                let id = self.type_()?;
                self.pending.push(id);
            }
        }
        let parameters = self.list_since(since);
        self.in_conversion = saved;
        let number = self.index()?.checked_add(1)?;
        self.add(Node::Lambda { parameters, number, templates })
    }

    /// The declaration of a template's parameter: `Ty`, `Tn` type, `Tt` … `E`, `Tp` declaration.
    pub(super) fn template_declaration(&mut self, index: usize) -> Option<Id> {
        let number = u32::try_from(index).ok()?;
        self.nested(|parser| {
            parser.expect(b'T')?;
            let kind = parser.peek();
            parser.at += 1;
            match kind {
                b'y' => parser.add(Node::TypeParameter(number)),
                b'n' => {
                    let of = parser.type_()?;
                    parser.add(Node::ValueParameter { of, number })
                }
                b't' => {
                    let mut inner = 0;
                    let parameters = parser.list(|parser| {
                        inner += 1;
                        parser.template_declaration(inner - 1)
                    })?;
                    parser.add(Node::TemplateParameter { parameters, number })
                }
                b'p' => {
                    let inner = parser.template_declaration(index)?;
                    parser.add(Node::PackParameter(inner))
                }
                _ => None,
            }
        })
    }

    /// The name of an operator function.
    pub(super) fn operator_name(&mut self) -> Option<Id> {
        if self.eat_text(b"cv") {
            let saved = std::mem::replace(&mut self.in_conversion, true);
            let to = self.type_()?;
            self.in_conversion = saved;
            return self.add(Node::Conversion(to));
        }
        if self.eat_text(b"li") {
            let name = self.source_name()?;
            return self.add(Node::LiteralOperator(name));
        }
        if self.peek() == b'v' && self.peek_at(1).is_ascii_digit() {
            self.at += 2;
            let name = self.source_name()?;
            return self.add(Node::VendorOperator(name));
        }
        let operator = operators::find(self.input.get(self.at..self.at + 2)?)?;
        self.at += 2;
        self.add(Node::Operator(operator))
    }

    /// `S_`, `S0_`, … and the abbreviations of the standard library.
    pub(super) fn substitution(&mut self) -> Option<Id> {
        self.expect(b'S')?;
        let letter = self.peek();
        if letter == b'_' || letter.is_ascii_digit() || letter.is_ascii_uppercase() {
            let index = self.sequence_number()?;
            return self.substitutions.get(index as usize).copied();
        }
        let &(_, full, normal, class) = STANDARD.iter().find(|(own, ..)| *own == letter)?;
        self.at += 1;
        let mut id = self.add(Node::Standard { full, normal, class })?;
        while self.eat(b'B') {
            let tag = self.identifier()?;
            id = self.add_substitution(Node::Tagged { name: id, tag })?;
        }
        Some(id)
    }

    /// `_` is 0, `0_` is 1, …, `Z_` is 36, `10_` is 37, …
    pub(super) fn sequence_number(&mut self) -> Option<u32> {
        if self.eat(b'_') {
            return Some(0);
        }
        let mut number = 0u32;
        while !self.eat(b'_') {
            let digit = match self.peek() {
                digit @ b'0'..=b'9' => digit - b'0',
                digit @ b'A'..=b'Z' => digit - b'A' + 10,
                _ => return None,
            };
            number = number.checked_mul(36)?.checked_add(u32::from(digit))?;
            self.at += 1;
        }
        number.checked_add(1)
    }

    /// `T_`, `T0_`, …: a template parameter.
    pub(super) fn template_parameter(&mut self) -> Option<Id> {
        self.expect(b'T')?;
        if self.eat(b'L') {
            // Parameters of templates around this one; a lambda's are the only ones that are not arguments by now.
            self.index()?;
        }
        let index = self.index()?;
        self.add(Node::Argument(index))
    }

    /// `I` … `E`
    pub(super) fn template_arguments(&mut self) -> Option<List> {
        self.expect(b'I')?;
        let saved = std::mem::replace(&mut self.in_conversion, false);
        let since = self.pending.len();
        while !self.eat(b'E') {
            if self.eat(b'Q') {
                self.expression()?;
                continue;
            }
            let argument = self.nested(Self::template_argument)?;
            self.pending.push(argument);
        }
        self.in_conversion = saved;
        Some(self.list_since(since))
    }

    pub(super) fn template_argument(&mut self) -> Option<Id> {
        match self.peek() {
            b'X' => {
                self.at += 1;
                let id = self.expression()?;
                self.expect(b'E')?;
                Some(id)
            }
            b'L' => self.literal(),
            b'J' | b'I' => {
                self.at += 1;
                let items = self.list(|parser| parser.nested(Self::template_argument))?;
                self.add(Node::Pack(items))
            }
            b'T' if matches!(self.peek_at(1), b'y' | b'n' | b't' | b'p' | b'k') => {
                // What the parameter is declared as: told where overloads differ in it alone.
                if self.peek_at(1) == b'k' {
                    self.at += 2;
                    self.name(None)?;
                } else {
                    self.template_declaration(0)?;
                }
                self.template_argument()
            }
            _ => self.type_(),
        }
    }
}
