//! The names that Visual C++, and clang in its place, give functions for the linker: `?` and what follows.
//!
//! What is shown is the name and the parameters: `ns::Box::outer(int)`. The name also tells the access, the calling
//! convention, the type returned, and of each type whether it is a `class` or a `struct`; all that is left out, as the
//! names of functions in a PDB have it. What a local name is local to is put in front in quotes: `` `f(int)'::`2'::g ``.
//!
//! - `mod` reads a whole symbol, `names` qualified names and their back references, `operators` the names of operators
//!   and of what compilers make, `types` types.
//!
//! The mangling nests, so reading it does: to a limited depth. What has been read once may be referred to again and
//! again, so a short name can stand for a very long one: the sum of all texts made is limited.

mod names;
mod operators;
mod types;

/// Deepest nesting of types, template arguments and symbols that is followed. Names of real programs stay below 30.
const MAX_DEPTH: u32 = 100;

/// The most bytes of text made for one name, all its parts taken together.
const MAX_WORK: usize = 4 << 20;

/// What can be referred to by one digit.
const MAX_REFERENCES: usize = 10;

/// The name as people write it; `None` if it is not one of these, or none of a function or a variable.
pub(super) fn demangle(name: &str) -> Option<String> {
    let mut reader = Reader { left: name, names: Vec::new(), types: Vec::new(), depth: 0, work: 0 };
    let text = reader.symbol()?;
    reader.left.is_empty().then_some(text)
}

/// Reads a mangled name from its front.
struct Reader<'n> {
    left: &'n str,
    /// Names and parameters that a digit can stand for.
    names: Vec<String>,
    types: Vec<Type>,
    depth: u32,
    work: usize,
}

/// A type: the text before and after what has it, as in `int (*` and `)[3]`.
#[derive(Clone, Debug, Default)]
struct Type {
    before: String,
    after: String,
    /// A function or an array: a pointer to it is put in parentheses.
    wraps: bool,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let mut rest = self.left.chars();
        let next = rest.next()?;
        self.left = rest.as_str();
        Some(next)
    }

    fn peek(&self) -> Option<char> {
        self.left.chars().next()
    }

    /// Goes past `text` if it is next.
    fn eat(&mut self, text: &str) -> bool {
        match self.left.strip_prefix(text) {
            Some(rest) => {
                self.left = rest;
                true
            }
            None => false,
        }
    }

    /// Goes past `text`, which must be next.
    fn expect(&mut self, text: &str) -> Option<()> {
        self.eat(text).then_some(())
    }

    /// Pays for text that was made.
    fn made(&mut self, text: String) -> Option<String> {
        self.work = self.work.saturating_add(text.len() + 1);
        (self.work <= MAX_WORK).then_some(text)
    }

    /// Reads something that may contain more of its kind.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// A number: one digit for 1 to 10, else digits of base 16 written `A` to `P`, and `@`. `?` before a negative one.
    fn number(&mut self) -> Option<i128> {
        let is_negative = self.eat("?");
        let mut number: i128 = 0;
        match self.next()? {
            digit @ '0'..='9' => number = i128::from(digit as u32 - '0' as u32) + 1,
            mut letter => {
                while letter != '@' {
                    let digit = ('A'..='P').contains(&letter).then(|| letter as u32 - 'A' as u32)?;
                    number = number.checked_mul(16)?.checked_add(digit.into())?;
                    letter = self.next()?;
                }
            }
        }
        Some(if is_negative { -number } else { number })
    }

    /// A whole symbol.
    fn symbol(&mut self) -> Option<String> {
        self.nested(|reader| {
            reader.expect("?")?;
            for (start, what) in [("?__E", "initializer"), ("?__F", "atexit destructor")] {
                if reader.eat(start) {
                    return reader.dynamic(what);
                }
            }
            let (name, is_conversion) = reader.symbol_name()?;
            reader.rest(name, is_conversion)
        })
    }

    /// A function that initializes or destroys a variable, which is named as a symbol or only by its name.
    fn dynamic(&mut self, what: &str) -> Option<String> {
        let variable = if self.peek() == Some('?') {
            let variable = self.symbol()?;
            self.expect("@")?;
            // In some names one more is there.
            self.eat("@");
            variable
        } else {
            self.symbol_name()?.0
        };
        self.rest(format!("`dynamic {what} for '{variable}''"), false)
    }

    /// What follows the name: the kind, and the type. A conversion is called by the type it returns.
    fn rest(&mut self, name: String, is_conversion: bool) -> Option<String> {
        let kind = self.next()?;
        let text = match kind {
            // Static members, global and local variables: type, and whether it is constant.
            '0'..='4' => {
                self.a_type()?;
                self.qualifiers()?;
                name
            }
            // Static guard; number.
            '5' => {
                self.number()?;
                name
            }
            // Tables of virtual functions and base classes: whether constant, and for which base.
            '6' | '7' => {
                self.qualifiers()?;
                let mut text = name;
                while !self.left.is_empty() && !self.eat("@") {
                    text += &format!("{{for `{}'}}", self.qualified_name()?);
                }
                text
            }
            // A C function.
            '9' => name,
            'A'..='Z' | '$' => return self.function(kind, name, is_conversion),
            _ => return None,
        };
        self.made(text)
    }

    /// Access and kind have been read. Adjustments of `this`, for what kind of `this`, the function's type.
    fn function(&mut self, kind: char, name: String, is_conversion: bool) -> Option<String> {
        let mut adjusted = String::new();
        let mut has_this = true;
        match kind {
            'Y' | 'Z' | 'C' | 'D' | 'K' | 'L' | 'S' | 'T' => has_this = false,
            'G' | 'H' | 'O' | 'P' | 'W' | 'X' => adjusted = format!("`adjustor{{{}}}'", self.number()?),
            // Calls through a table of virtual functions.
            '$' if self.eat("B") => {
                let slot = self.number()?;
                self.expect("A")?;
                self.next()?;
                return self.made(format!("[thunk]: {name}{{{slot}, {{flat}}}}"));
            }
            // The place of a base class is told at run time.
            '$' => {
                let numbers = if self.eat("R") { 4 } else { 2 };
                self.next().filter(|access| ('0'..='5').contains(access))?;
                // Of 32 bits, negative ones written as large ones.
                let number = |reader: &mut Self| reader.number().map(|number| (number as i32).to_string());
                let numbers: Vec<String> = (0..numbers).map(|_| number(self)).collect::<Option<_>>()?;
                let kind = if numbers.len() == 4 { "vtordispex" } else { "vtordisp" };
                adjusted = format!("`{kind}{{{}}}'", numbers.join(", "));
            }
            _ => {}
        }
        let this = if has_this { self.this()? } else { String::new() };
        let signature = self.signature()?;
        let prefix = if adjusted.is_empty() { "" } else { "[thunk]: " };
        // `operator` has been read; what it converts to is the type returned.
        let converted =
            if is_conversion { signature.returned.clone().map(|t| t.before + &t.after)? } else { String::new() };
        let name = name.replacen(operators::CONVERSION, &converted, usize::from(is_conversion));
        self.made(format!("{prefix}{name}{adjusted}({}){this}", signature.parameters))
    }
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        assert_eq!(demangle(raw).as_deref(), Some(expected), "{raw}");
    }

    #[test]
    fn functions_and_parameters() {
        check("?outer@Box@ns@@QEAAHH@Z", "ns::Box::outer(int)");
        check("?f@@YAXXZ", "f(void)");
        check("?f@@YAXPEBDZZ", "f(char const *, ...)");
        check("?f@@YAXPEAPEAHAEBHQEAH@Z", "f(int **, int const &, int *const)");
        check("?f@@YAXP6AHH@Z0@Z", "f(int (*)(int), int (*)(int))");
        check("?f@@YAXAEAY02H@Z", "f(int (&)[3])");
        check("?f@@YAXP8Box@@EBAHH@Z@Z", "f(int (Box::*)(int) const)");
        check("?f@@YAXPEQBox@@H@Z", "f(int Box::*)");
        check("?size@Box@ns@@QEBA_KXZ", "ns::Box::size(void) const");
        check("?take@Box@@QEHAAXXZ", "Box::take(void) &&");
    }

    #[test]
    fn templates_and_back_references() {
        check("??$conv@_J@Box@ns@@QEAA_J_J@Z", "ns::Box::conv<__int64>(__int64)");
        check("?f@?$A@H@@QEAAXV1@@Z", "A<int>::f(A<int>)");
        check("??$f@$04$0?0@@YAXXZ", "f<5, -1>(void)");
        check("??$f@$$V@@YAXXZ", "f<>(void)");
        check("??$f@$1?g@@YAXXZ@@YAXXZ", "f<&g(void)>(void)");
        check(
            "?push_back@?$vector@HV?$allocator@H@std@@@std@@QEAAX$$QEAH@Z",
            "std::vector<int, std::allocator<int>>::push_back(int &&)",
        );
    }

    #[test]
    fn operators_constructors_and_what_compilers_make() {
        check("??0Box@ns@@QEAA@H@Z", "ns::Box::Box(int)");
        check("??1?$A@H@@UEAA@XZ", "A<int>::~A<int>(void)");
        check("??BBox@@QEBAHXZ", "Box::operator int(void) const");
        check("??RBox@@QEBAHH@Z", "Box::operator()(int) const");
        check("??_U@YAPEAX_K@Z", "operator new[](unsigned __int64)");
        check("??_GBox@@UEAAPEAXI@Z", "Box::`scalar deleting dtor'(unsigned int)");
        check("??_7Box@@6B@", "Box::`vftable'");
        check("??__Ex@@YAXXZ", "`dynamic initializer for 'x''(void)");
        check("??__E?x@Box@@0HA@@YAXXZ", "`dynamic initializer for 'Box::x''(void)");
        check("?f@Box@@W7EAAXXZ", "[thunk]: Box::f`adjustor{8}'(void)");
    }

    #[test]
    fn names_without_names() {
        check("?apart@?A0x1b2c3d4e@@YAHH@Z", "`anonymous namespace'::apart(int)");
        check("?x@?1??f@@YAHH@Z@4HA", "`f(int)'::`2'::x");
        check("??R<lambda_0>@?0??f@@YAXXZ@QEBA@XZ", "`f(void)'::`1'::<lambda_0>::operator()(void) const");
    }

    #[test]
    fn broken_and_endless_names() {
        for raw in ["?", "??", "?f", "?f@@", "?f@@Y", "?f@@YAX", "f", "?f@@YAX0@Z", "??_C@_0A@", "?9@@YAXXZ", "?é@@Y"]
        {
            assert_eq!(demangle(raw), None, "{raw}");
        }
        assert_eq!(demangle(&format!("?f@@YAX{}H@Z", "PEA".repeat(10_000))), None);
        assert_eq!(demangle(&format!("{}f@@YAXXZ", "?".repeat(10_000))), None);
        assert_eq!(demangle(&format!("?f@@YAX{}@Z", "V?$A@".repeat(5_000))), None);
        // Each parameter is a template of the one before, twice.
        let mut raw = "?f@@YAXP6AXPEAH0@Z".to_owned();
        for digit in 1..9 {
            raw += &format!("P6AX{digit}{digit}{digit}{digit}{digit}{digit}{digit}{digit}@Z");
        }
        assert!(demangle(&(raw + "@Z")).is_none_or(|text| text.len() <= super::MAX_WORK));
        // Cut anywhere, also within a letter of several bytes.
        let raw = "?push_back@?$vector@HV?$allocator@H@std@@@std@@QEAAX$$QEAH@Z";
        for end in 0..raw.len() {
            assert_eq!(demangle(&raw[..end]), None);
        }
    }
}
