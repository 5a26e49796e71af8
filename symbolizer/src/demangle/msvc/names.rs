//! Qualified names: the innermost part first, each ended by `@`, all of them by one more.

use super::operators::Special;
use super::{MAX_REFERENCES, Reader};

impl Reader<'_> {
    /// The name of a symbol, and whether it is a conversion whose type is not known yet.
    pub(super) fn symbol_name(&mut self) -> Option<(String, bool)> {
        let (name, special) = if self.eat("?$") {
            self.template(false)?
        } else if self.eat("?") {
            self.operator()?
        } else {
            (self.simple_name()?, Special::None)
        };
        let scopes = self.scopes()?;
        let class = scopes.first().map_or("", String::as_str);
        // With template arguments of its own after the place of its name.
        let name = match special {
            Special::Constructor => format!("{class}{name}"),
            Special::Destructor => format!("~{class}{name}"),
            _ => name,
        };
        Some((self.join(name, &scopes)?, special == Special::Conversion))
    }

    /// The name of a type, or of a base class.
    pub(super) fn qualified_name(&mut self) -> Option<String> {
        self.nested(|reader| {
            let name = reader.scope()?;
            let scopes = reader.scopes()?;
            reader.join(name, &scopes)
        })
    }

    /// Puts the outermost scope first.
    fn join(&mut self, name: String, scopes: &[String]) -> Option<String> {
        let mut text = String::new();
        for scope in scopes.iter().rev() {
            text.push_str(scope);
            text.push_str("::");
        }
        text.push_str(&name);
        self.made(text)
    }

    /// All scopes up to the end of the name, the innermost first.
    fn scopes(&mut self) -> Option<Vec<String>> {
        let mut scopes = Vec::new();
        while !self.eat("@") {
            scopes.push(self.scope()?);
        }
        Some(scopes)
    }

    /// A namespace, a class, or a function that something is local to.
    fn scope(&mut self) -> Option<String> {
        if self.eat("?$") {
            return Some(self.template(true)?.0);
        }
        if self.eat("?A") {
            // What follows tells the file.
            let (_, rest) = self.left.split_once('@')?;
            self.left = rest;
            return self.remember("`anonymous namespace'".to_owned());
        }
        if self.eat("?") {
            // Which of the scopes in the function.
            let number = self.number()?;
            self.expect("?")?;
            let function = self.symbol()?;
            return self.made(format!("`{function}'::`{number}'"));
        }
        self.simple_name()
    }

    /// A name as it is written, or a digit that stands for an earlier one.
    pub(super) fn simple_name(&mut self) -> Option<String> {
        if let Some(digit) = self.peek().and_then(|letter| letter.to_digit(10)) {
            self.next();
            let name = self.names.get(digit as usize)?.clone();
            return self.made(name);
        }
        let name = self.written_name()?;
        self.remember(name)
    }

    /// A name up to `@`.
    pub(super) fn written_name(&mut self) -> Option<String> {
        let (name, rest) = self.left.split_once('@')?;
        if name.is_empty() || name.contains('?') {
            return None;
        }
        self.left = rest;
        self.made(name.to_owned())
    }

    /// Keeps a name for digits to stand for.
    fn remember(&mut self, name: String) -> Option<String> {
        if self.names.len() < MAX_REFERENCES && !self.names.contains(&name) {
            let kept = self.made(name.clone())?;
            self.names.push(kept);
        }
        Some(name)
    }

    /// A template with its arguments, after `?$`. Digits in it stand for what is in it. Names of scopes and types can be
    /// referred to from outside.
    fn template(&mut self, is_scope: bool) -> Option<(String, Special)> {
        let outer = (std::mem::take(&mut self.names), std::mem::take(&mut self.types));
        let inner = self.nested(|reader| {
            let (name, special) =
                if reader.eat("?") { reader.operator()? } else { (reader.simple_name()?, Special::None) };
            let arguments = reader.template_arguments()?;
            Some((reader.made(format!("{name}<{arguments}>"))?, special))
        });
        (self.names, self.types) = outer;
        let (name, special) = inner?;
        let name = if is_scope { self.remember(name)? } else { name };
        Some((name, special))
    }

    /// Up to `@`.
    fn template_arguments(&mut self) -> Option<String> {
        let mut text = String::new();
        while !self.eat("@") {
            // An empty pack, and what separates packs.
            if ["$$$V", "$$V", "$$Z", "$S"].iter().any(|empty| self.eat(empty)) {
                continue;
            }
            let argument = self.template_argument()?;
            if !text.is_empty() {
                text.push_str(", ");
            }
            text.push_str(&argument);
            text = self.made(text)?;
        }
        Some(text)
    }

    fn template_argument(&mut self) -> Option<String> {
        // Of type `auto`: the type comes first.
        if self.eat("$M") {
            self.a_type()?;
            return self.nested(Self::value);
        }
        if self.eat("$$Y") {
            return self.qualified_name();
        }
        if self.left.starts_with('$') && !self.left.starts_with("$$") {
            self.next();
            return self.nested(Self::value);
        }
        let argument = self.a_type()?;
        self.made(argument.before + &argument.after)
    }

    /// An argument that is a value, after its `$`: a number, the address of a symbol or a symbol itself.
    fn value(&mut self) -> Option<String> {
        match self.next()? {
            '0' => Some(self.number()?.to_string()),
            '1' if self.eat("@") => Some("nullptr".to_owned()),
            '1' => Some(format!("&{}", self.symbol()?)),
            'E' => self.symbol(),
            _ => None,
        }
    }
}
