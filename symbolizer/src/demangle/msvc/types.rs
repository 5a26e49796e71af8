//! Types.

use super::{MAX_REFERENCES, Reader, Type};

/// The type of a function.
pub(super) struct Signature {
    /// Constructors and destructors return none.
    pub(super) returned: Option<Type>,
    /// As they are written, without parentheses.
    pub(super) parameters: String,
    /// `noexcept`, if it is known to be that.
    is_noexcept: bool,
}

const ONE: [(char, &str); 13] = [
    ('X', "void"),
    ('C', "signed char"),
    ('D', "char"),
    ('E', "unsigned char"),
    ('F', "short"),
    ('G', "unsigned short"),
    ('H', "int"),
    ('I', "unsigned int"),
    ('J', "long"),
    ('K', "unsigned long"),
    ('M', "float"),
    ('N', "double"),
    ('O', "long double"),
];

/// After `_`.
const TWO: [(char, &str); 10] = [
    ('J', "__int64"),
    ('K', "unsigned __int64"),
    ('L', "__int128"),
    ('M', "unsigned __int128"),
    ('N', "bool"),
    ('Q', "char8_t"),
    ('S', "char16_t"),
    ('U', "char32_t"),
    ('W', "wchar_t"),
    ('P', "auto"),
];

impl Reader<'_> {
    /// A type without qualifiers of its own, or with them after `?` or `$$C`.
    pub(super) fn a_type(&mut self) -> Option<Type> {
        self.nested(|reader| {
            let qualifiers = if reader.eat("$$C") || reader.eat("?") { reader.qualifiers()?.0 } else { "" };
            let read = reader.bare_type()?;
            reader.qualified(read, qualifiers)
        })
    }

    fn bare_type(&mut self) -> Option<Type> {
        for (start, text) in [("$$Q", "&&"), ("$$R", "&&"), ("A", "&"), ("B", "&")] {
            if self.eat(start) {
                return self.pointer(text, if matches!(start, "B" | "$$R") { " volatile" } else { "" });
            }
        }
        if self.eat("$$T") {
            return Some(named("std::nullptr_t"));
        }
        if self.eat("$$A6") {
            return self.function_type(String::new());
        }
        if self.eat("$$A8@@") {
            let this = self.this()?;
            return self.function_type(this);
        }
        if self.eat("$$B") {
            return self.a_type();
        }
        if self.eat("_") {
            let code = self.next()?;
            return TWO.iter().find(|(known, _)| *known == code).map(|(_, name)| named(name));
        }
        match self.next()? {
            'P' => self.pointer("*", ""),
            'Q' => self.pointer("*", " const"),
            'R' => self.pointer("*", " volatile"),
            'S' => self.pointer("*", " const volatile"),
            // Union, struct, class.
            'T' | 'U' | 'V' => Some(named(&self.qualified_name()?)),
            'W' => {
                // The size of an enumeration.
                self.next().filter(char::is_ascii_digit)?;
                Some(named(&self.qualified_name()?))
            }
            'Y' => self.array(),
            // One with a name of its own, such as `<auto>`.
            '?' => {
                let name = self.simple_name()?;
                self.expect("@")?;
                Some(named(&name))
            }
            code => ONE.iter().find(|(known, _)| *known == code).map(|(_, name)| named(name)),
        }
    }

    /// What a pointer or reference points to, and for members of which class.
    fn pointer(&mut self, sign: &str, own: &str) -> Option<Type> {
        if self.eat("6") {
            let function = self.function_type(String::new())?;
            return self.point(&function, sign, own);
        }
        if self.eat("8") {
            let class = self.qualified_name()?;
            let this = self.this()?;
            let function = self.function_type(this)?;
            return self.point(&function, &format!("{class}::{sign}"), own);
        }
        self.extensions();
        let (qualifiers, is_member) = self.qualifiers()?;
        let sign = if is_member { format!("{}::{sign}", self.qualified_name()?) } else { sign.to_owned() };
        let pointee = self.a_type()?;
        let pointee = self.qualified(pointee, qualifiers)?;
        self.point(&pointee, &sign, own)
    }

    fn point(&mut self, pointee: &Type, sign: &str, own: &str) -> Option<Type> {
        let mut before = pointee.before.clone();
        if pointee.wraps {
            before.push_str(" (");
        } else if !before.ends_with(['*', '&', '(']) {
            before.push(' ');
        }
        before.push_str(sign);
        before.push_str(own.trim_start());
        let after = if pointee.wraps { format!("){}", pointee.after) } else { pointee.after.clone() };
        Some(Type { before: self.made(before)?, after: self.made(after)?, wraps: false })
    }

    /// Number of dimensions, each of them, the elements.
    fn array(&mut self) -> Option<Type> {
        const MAX_DIMENSIONS: i128 = 32;
        let rank = self.number().filter(|rank| (1..=MAX_DIMENSIONS).contains(rank))?;
        let mut sizes = String::new();
        for _ in 0..rank {
            sizes.push_str(&format!("[{}]", self.number()?));
        }
        let element = self.a_type()?;
        let after = self.made(sizes + &element.after)?;
        Some(Type { before: element.before, after, wraps: true })
    }

    fn function_type(&mut self, this: String) -> Option<Type> {
        let signature = self.nested(Self::signature)?;
        let before = signature.returned.map_or_else(String::new, |returned| returned.before + &returned.after);
        let noexcept = if signature.is_noexcept { " noexcept" } else { "" };
        let after = self.made(format!("({}){this}{noexcept}", signature.parameters))?;
        Some(Type { before: self.made(before)?, after, wraps: true })
    }

    fn qualified(&mut self, of: Type, qualifiers: &str) -> Option<Type> {
        if qualifiers.is_empty() || of.wraps && of.after.starts_with('(') {
            return Some(of);
        }
        // A constant pointer may be told twice, by its own letter and as what is pointed to.
        if of.before.rsplit(['*', '&']).next().is_some_and(|own| own == qualifiers.trim_start()) {
            return Some(of);
        }
        let space = if of.before.ends_with(['*', '&']) { "" } else { " " };
        let before = self.made(format!("{}{space}{}", of.before, qualifiers.trim_start()))?;
        Some(Type { before, ..of })
    }

    /// `const` and `volatile`, and whether it is those of a member.
    pub(super) fn qualifiers(&mut self) -> Option<(&'static str, bool)> {
        self.extensions();
        let code = self.next()?;
        let qualifiers = match code {
            'A' | 'Q' => "",
            'B' | 'R' => " const",
            'C' | 'S' => " volatile",
            'D' | 'T' => " const volatile",
            _ => return None,
        };
        Some((qualifiers, matches!(code, 'Q'..='T')))
    }

    /// 64 bits, `__restrict`, `__unaligned`: not shown.
    fn extensions(&mut self) {
        while ["E", "I", "F"].iter().any(|extension| self.eat(extension)) {}
    }

    /// What `this` must be, as it is written after a function.
    pub(super) fn this(&mut self) -> Option<String> {
        let mut reference = "";
        loop {
            match self.peek()? {
                'E' | 'I' | 'F' => {}
                'G' => reference = " &",
                'H' => reference = " &&",
                _ => break,
            }
            self.next();
        }
        let (qualifiers, _) = self.qualifiers()?;
        Some(format!("{qualifiers}{reference}"))
    }

    /// Calling convention, type returned, parameters, exceptions.
    pub(super) fn signature(&mut self) -> Option<Signature> {
        self.next().filter(char::is_ascii_uppercase)?;
        let returned = if self.eat("@") { None } else { Some(self.a_type()?) };
        let parameters = self.parameters()?;
        let is_noexcept = self.eat("_E");
        if !is_noexcept {
            self.expect("Z")?;
        }
        Some(Signature { returned, parameters, is_noexcept })
    }

    /// Types up to `@`, or to `Z` if more may follow them. A digit stands for an earlier one that took more than a
    /// letter to write.
    fn parameters(&mut self) -> Option<String> {
        if self.eat("X") {
            return Some("void".to_owned());
        }
        let mut text = String::new();
        loop {
            if self.eat("@") {
                return Some(text);
            }
            if !text.is_empty() {
                text.push_str(", ");
            }
            if self.eat("Z") {
                text.push_str("...");
                return Some(text);
            }
            let parameter = match self.peek()?.to_digit(10) {
                Some(digit) => {
                    self.next();
                    self.types.get(digit as usize)?.clone()
                }
                None => {
                    let before = self.left.len();
                    let parameter = self.a_type()?;
                    if before - self.left.len() > 1 && self.types.len() < MAX_REFERENCES {
                        self.types.push(parameter.clone());
                    }
                    parameter
                }
            };
            text.push_str(&parameter.before);
            text.push_str(&parameter.after);
            text = self.made(text)?;
        }
    }
}

fn named(name: &str) -> Type {
    Type { before: name.to_owned(), after: String::new(), wraps: false }
}
