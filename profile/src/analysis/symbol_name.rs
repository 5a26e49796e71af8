//! The parts of a demangled function name: what is the path of the function, and what is return type, template
//! arguments and parameters around it.
//!
//! Knows the spellings of binutils, LLVM and the `cpp_demangle` and `rustc-demangle` crates. It is a scanner, not a
//! parser: for a name it does not understand it gives back the whole name, never an error.

/// A function name taken apart. All parts borrow from the full name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolName<'a> {
    /// The qualified name: `ns::Class<int>::method` out of `void ns::Class<int>::method(int) const`.
    pub path: &'a str,
    /// A parameter list follows, as in C++ names; Rust and C names have none.
    pub has_parameters: bool,
}

impl<'a> SymbolName<'a> {
    /// Takes a demangled name apart.
    pub fn parse(full: &'a str) -> Self {
        Scanner { text: full, at: 0, start: 0, depth: 0 }.run()
    }

    /// The path without template arguments and Rust's hashes: `ns::Class::method`. Allocates only when there are some.
    ///
    /// `<T as Trait>::method` becomes `T::method`; crate disambiguators (`std[1f2e]::`) and `::h0123456789abcdef` go.
    pub fn short(&self) -> String {
        let path = without_legacy_hash(self.path);
        match split_impl(path) {
            Some((self_type, _, rest)) => format!("{}{}", strip_arguments(peel(self_type)), strip_arguments(rest)),
            None => strip_arguments(path),
        }
    }
}

/// Splits `<S as T>::rest` into `S`, `Some(T)`, `::rest`, and `<S>::rest` into `S`, `None`, `::rest`.
pub fn split_impl(path: &str) -> Option<(&str, Option<&str>, &str)> {
    if !path.starts_with('<') {
        return None;
    }
    let mut depth = 0usize;
    let mut separator = None;
    for (index, byte) in path.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' if index > 0 && path.as_bytes()[index - 1] == b'-' => {}
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b' ' if depth == 1 && separator.is_none() && path[index..].starts_with(" as ") => separator = Some(index),
            _ => {}
        }
        if depth == 0 {
            let (inside, rest) = (1..index, &path[index + 1..]);
            return Some(match separator {
                Some(at) => (&path[1..at], Some(&path[at + 4..index]), rest),
                None => (&path[inside], None, rest),
            });
        }
    }
    None
}

/// The crate (or outermost namespace) of a type: `alloc` of `&mut [alloc::vec::Vec<T>]`. `None` for primitives and type
/// parameters, which have no path.
pub fn root_of_type(text: &str) -> Option<&str> {
    first_segment(peel(text))
}

/// The first segment of a path with at least two, without Rust's crate disambiguator: `std` of `std[1f2e]::vec::Vec`.
pub fn first_segment(path: &str) -> Option<&str> {
    let end = path.find(|character: char| !is_word(character)).unwrap_or(path.len());
    let (segment, mut rest) = path.split_at(end);
    if let Some(bracketed) = rest.strip_prefix('[') {
        let hash = bracketed.find(']')?;
        if !bracketed[..hash].bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        rest = &bracketed[hash + 1..];
    }
    (end > 0 && rest.starts_with("::")).then_some(segment)
}

/// Takes references, pointers, slices, tuples and nested projections off a Rust type.
fn peel(mut text: &str) -> &str {
    loop {
        let before = text.len();
        text = text.trim_start_matches(['&', '[', '(', '<', ' ']);
        if let Some(rest) = text.strip_prefix('\'') {
            text = rest.trim_start_matches(is_word);
        }
        for word in ["mut ", "*const ", "*mut ", "dyn ", "impl "] {
            text = text.strip_prefix(word).unwrap_or(text);
        }
        if text.len() == before {
            return text;
        }
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

/// Without the `::h` and 16 hex digits that Rust's legacy mangling appends.
fn without_legacy_hash(path: &str) -> &str {
    match path.rsplit_once("::h") {
        Some((rest, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => rest,
        _ => path,
    }
}

/// Removes `<…>` and `[…]`, except that `operator<` and the like keep their sign.
fn strip_arguments(path: &str) -> String {
    let mut short = String::with_capacity(path.len());
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(character) = path[at..].chars().next() {
        let operator = if depth == 0 { operator_length(path, at) } else { 0 };
        if operator > 0 {
            short.push_str(&path[at..at + operator]);
            at += operator;
            continue;
        }
        match character {
            '<' | '[' => depth += 1,
            '>' if path[..at].ends_with('-') => {}
            '>' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => short.push(character),
            _ => {}
        }
        at += character.len_utf8();
    }
    // `Vec<T>::push` in Rust's v0 spelling is `Vec::<T>::push`.
    short.truncate(short.trim_end().len());
    while short.contains("::::") {
        short = short.replace("::::", "::");
    }
    if short.ends_with("::") {
        short.truncate(short.len() - 2);
    }
    short
}

/// The length of the C++ operator name that starts at `at`, with its sign; 0 when there is none.
fn operator_length(text: &str, at: usize) -> usize {
    const WORD: &str = "operator";
    const SIGNS: [&str; 13] = ["()", "[]", "<<=", ">>=", "<=>", "->*", "->", "<<", ">>", "<=", ">=", "<", ">"];
    let Some(rest) = text[at..].strip_prefix(WORD) else { return 0 };
    if text[..at].ends_with(is_word) || rest.starts_with(is_word) {
        return 0;
    }
    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).map_or(0, |sign| sign.len());
    WORD.len() + sign
}

/// Between the parameters of a method and what is local to it.
const CONST: &str = " const";

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Where the path begins, as far as is known.
    start: usize,
    depth: usize,
}

impl<'a> Scanner<'a> {
    fn run(mut self) -> SymbolName<'a> {
        let bytes = self.text.as_bytes();
        // After `operator` at the outermost level, spaces belong to the name: `operator new`, `operator int const*`.
        let mut in_operator = false;
        while self.at < bytes.len() {
            let operator = operator_length_if_word(self.text, self.at);
            if operator > 0 {
                in_operator |= self.depth == 0;
                self.at += operator;
                continue;
            }
            match bytes[self.at] {
                b'(' if self.depth == 0 => {
                    let close = self.closing_parenthesis();
                    if self.starts_parameters(close) {
                        return SymbolName { path: &self.text[self.start..self.at], has_parameters: true };
                    }
                    self.at = close + self.text[close..].strip_prefix(CONST).map_or(0, |_| CONST.len());
                    continue;
                }
                b'<' | b'(' | b'[' | b'{' => self.depth += 1,
                b'>' if self.at > 0 && bytes[self.at - 1] == b'-' => {}
                b'>' | b')' | b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                b' ' if self.depth == 0 && !in_operator => self.start = self.at + 1,
                _ => {}
            }
            self.at += 1;
        }
        let path = &self.text[self.start..];
        SymbolName { path: if path.is_empty() { self.text } else { path }, has_parameters: false }
    }

    /// Just past the `)` for the `(` at the present place, or the end.
    fn closing_parenthesis(&self) -> usize {
        let mut depth = 0usize;
        for (index, byte) in self.text.bytes().enumerate().skip(self.at) {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return index + 1;
            }
        }
        self.text.len()
    }

    /// Whether the parentheses at the present place hold the parameters of the function that is named, as opposed to
    /// `(anonymous namespace)`, `decltype(…)`, and the parameters of an enclosing function (`f(int)::{lambda()#1}`).
    fn starts_parameters(&self, close: usize) -> bool {
        let before = &self.text[self.start..self.at];
        let after = &self.text[close..];
        let named = !before.is_empty() && !before.ends_with("::") && before != "decltype";
        named && !after.strip_prefix(CONST).unwrap_or(after).starts_with("::")
    }
}

/// As [`operator_length`], with a quick look first: this is asked at every byte.
fn operator_length_if_word(text: &str, at: usize) -> usize {
    if text.as_bytes()[at] == b'o' { operator_length(text, at) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_out_of_full_names() {
        for (full, path, has_parameters) in [
            ("main", "main", false),
            ("foo(int, char const*)", "foo", true),
            ("void ns::f<std::string>(std::string)", "ns::f<std::string>", true),
            (
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
                "std::vector<int, std::allocator<int> >::push_back",
                true,
            ),
            ("std::enable_if<(1>0), int>::type ns::g<int>(int)", "ns::g<int>", true),
            ("operator new(unsigned long)", "operator new", true),
            ("void* operator new[](unsigned long)", "operator new[]", true),
            ("ns::A::operator<<(int)", "ns::A::operator<<", true),
            ("bool ns::operator< <int>(ns::A<int>, int)", "ns::operator< <int>", true),
            ("ns::A::operator()(int) const", "ns::A::operator()", true),
            ("ns::A::operator std::string() const", "ns::A::operator std::string", true),
            ("ns::A::operator->() const", "ns::A::operator->", true),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f", true),
            ("ns::(anonymous namespace)::f(int) [clone .cold]", "ns::(anonymous namespace)::f", true),
            ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()", true),
            ("ns::f(int)::{lambda()#2}::operator()() const", "ns::f(int)::{lambda()#2}::operator()", true),
            (
                "ns::A::f(int) const::{lambda()#2}::operator()() const",
                "ns::A::f(int) const::{lambda()#2}::operator()",
                true,
            ),
            ("decltype(auto) ns::h<int>(int)", "ns::h<int>", true),
            ("my_operator(int)", "my_operator", true),
            (
                "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
                "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
                false,
            ),
            (
                "<fn(A) -> B as core::ops::FnOnce<(A,)>>::call_once",
                "<fn(A) -> B as core::ops::FnOnce<(A,)>>::call_once",
                false,
            ),
            ("app::main::{{closure}}", "app::main::{{closure}}", false),
            ("", "", false),
            (" ", " ", false),
            ("f(", "f", true),
        ] {
            assert_eq!(SymbolName::parse(full), SymbolName { path, has_parameters }, "{full}");
        }
    }

    #[test]
    fn short_names() {
        for (full, short) in [
            ("std::vector<int, std::allocator<int> >::push_back(int const&)", "std::vector::push_back"),
            ("<alloc::vec::Vec<T,A> as core::clone::Clone>::clone::h0123456789abcdef", "alloc::vec::Vec::clone"),
            ("<app[8d3c]::Foo<[u8; 4]>>::new::<u32>", "app::Foo::new"),
            ("<&mut app::Foo as app::Bar>::baz", "app::Foo::baz"),
            ("bool ns::operator< <int>(ns::A<int>, int)", "ns::operator<"),
            ("malloc", "malloc"),
        ] {
            assert_eq!(SymbolName::parse(full).short(), short, "{full}");
        }
    }

    #[test]
    fn roots_of_types() {
        for (text, root) in [
            ("alloc::vec::Vec<app::X>", Some("alloc")),
            ("&'a mut [app::X]", Some("app")),
            ("dyn app::Trait", Some("app")),
            ("<app::X as core::ops::Deref>::Target", Some("app")),
            ("(app::X, u8)", Some("app")),
            ("std[1f2e3d]::io::Error", Some("std")),
            ("*const u8", None),
            ("T", None),
            ("", None),
        ] {
            assert_eq!(root_of_type(text), root, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_taken_apart(full in "[ a-z<>(){}\\[\\]:&'*,#ü-]{0,40}|(operator|new|::|<|>|\\(|\\)| |as|é){0,20}") {
            let name = SymbolName::parse(&full);
            prop_assert!(full.contains(name.path));
            name.short();
            root_of_type(&full);
            split_impl(&full);
        }
    }
}
