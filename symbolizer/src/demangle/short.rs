//! The short style: type and function, without the path to them.

use super::path::{Segment, segments};
use super::walk::{Step, Walk, is_word};

/// Namespaces that no class can be mistaken for. What else stands before a function of C++ may be its class: names do
/// not tell.
const CPP_NAMESPACES: [&str; 7] =
    ["std", "__gnu_cxx", "__cxxabiv1", "boost", "absl", "(anonymous namespace)", "`anonymous namespace'"];

/// A C++ path in the normal style, made short.
pub(super) fn cpp(path: &str) -> String {
    let parts: Vec<&str> = segments(path).into_iter().map(|segment: Segment<'_>| segment.name).collect();
    shorten(&parts, |parent| !CPP_NAMESPACES.contains(&parent))
}

/// A Rust path in the normal style, made short. Modules have small letters, types have capitals.
pub(super) fn rust(path: &str) -> String {
    let parts: Vec<String> =
        segments(path).iter().enumerate().map(|(index, segment)| rust_part(segment.name, index == 0)).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    let is_module = |name: &str| name.chars().all(is_word) && name.starts_with(|c: char| c.is_lowercase() || c == '_');
    let is_type = |parent: &str| PRIMITIVES.contains(&parent) || !is_module(parent);
    shorten(&parts, is_type)
}

/// The last parts of a path that say which function it is: from the type on if there is one, and for what has no name
/// of its own (closures, lambdas) from the function around it.
fn shorten(parts: &[&str], keeps: impl Fn(&str) -> bool) -> String {
    let Some(mut first) = parts.iter().rposition(|part| !is_nameless(part)) else { return parts.join("::") };
    let mut last = parts.len() - 1;
    if last > 0 && parts[last] == "operator()" && is_nameless(parts[last - 1]) {
        // What a lambda does when called is the lambda.
        last -= 1;
        first = parts[..last].iter().rposition(|part| !is_nameless(part)).unwrap_or(0);
    }
    while first > 0 && is_nameless(parts[first - 1]) {
        first -= 1;
        if !is_nameless(parts[first.saturating_sub(1)]) {
            first = first.saturating_sub(1);
            break;
        }
    }
    if first > 0 && keeps(parts[first - 1]) {
        first -= 1;
    }
    parts[first..=last].join("::")
}

/// Closures, lambdas, unnamed types, numbered impl blocks, shims.
fn is_nameless(part: &str) -> bool {
    part.starts_with(['{', '\''])
}

const PRIMITIVES: [&str; 17] = [
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8", "u16", "u32", "u64", "u128",
    "usize",
];

/// A part of a Rust path without its arguments. `<T as Trait>` and `<impl Trait for T>` become T's own name.
fn rust_part(name: &str, is_first: bool) -> String {
    let Some(inside) = name.strip_prefix('<').and_then(|name| name.strip_suffix('>')) else { return name.to_owned() };
    match inside.strip_prefix("impl ") {
        Some(inside) => rust_type(split_at_word(inside, " for ").map_or(inside, |(_, implementor)| implementor)),
        None if is_first => rust_type(split_at_word(inside, " as ").map_or(inside, |(implementor, _)| implementor)),
        // The arguments of the part before: `f::<u32>`.
        None => String::new(),
    }
}

/// Splits at a word that is not within brackets.
fn split_at_word<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let mut walk = Walk::new(text);
    loop {
        let at = walk.at();
        let step = walk.step()?;
        if walk.depth() == 0 && step == Step::Character && text[at..].starts_with(word) {
            return Some((&text[..at], &text[at + word.len()..]));
        }
    }
}

/// A Rust type by its own name: no references, no path, no arguments; slices, tuples and the like keep their form.
fn rust_type(mut text: &str) -> String {
    loop {
        let before = text.len();
        text = text.trim_start_matches(['&', ' ']);
        if let Some(rest) = text.strip_prefix('\'') {
            text = rest.trim_start_matches(is_word);
        }
        for word in ["mut ", "*const ", "*mut ", "dyn ", "impl ", "for"] {
            if let Some(rest) = text.strip_prefix(word).filter(|rest| word != "for" || rest.starts_with('<')) {
                text = if word == "for" { rest.split_once("> ").map_or("", |(_, rest)| rest) } else { rest };
            }
        }
        if text.len() == before {
            break;
        }
    }
    let text = split_at_word(text, " + ").map_or(text, |(first, _)| first);
    if let Some(inside) = text.strip_prefix('<') {
        // A projection: `<A as B>::C`.
        return inside.rfind(">::").map_or_else(|| text.to_owned(), |at| own_name(&inside[at + 3..]));
    }
    own_name(text)
}

/// All paths in a text by their last part, without arguments.
fn own_name(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut walk = Walk::new(text);
    let mut angles = 0usize;
    loop {
        let at = walk.at();
        let Some(step) = walk.step() else { return out };
        match step {
            Step::Open(b'<') => angles += 1,
            Step::Close(b'>') => angles = angles.saturating_sub(1),
            _ if angles > 0 => {}
            Step::Scope => {
                let start = out.trim_end_matches(is_word).len();
                out.truncate(start);
            }
            _ => out.push_str(&text[at..walk.at()]),
        }
    }
}
