//! The normal style, made from the text of a full name.

use super::arguments::{close_template, is_inline_namespace};
use super::path::{segments, without_qualifiers};
use super::walk::{Step, Walk, is_word};

/// A C++ path without parameters, tags, inline namespaces and default template arguments.
pub(super) fn cpp_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let segments = segments(path);
    for (index, segment) in segments.iter().enumerate() {
        if is_inline_namespace(segment.name) && index > 0 && index + 1 < segments.len() {
            continue;
        }
        if !out.is_empty() {
            out.push_str("::");
        }
        simplify(&mut out, segment.name);
        if segment.name.ends_with('<') && !segment.arguments.is_empty() {
            // `operator< <int>`
            out.push(' ');
        }
        simplify(&mut out, segment.arguments);
    }
    if out.is_empty() { path.to_owned() } else { out }
}

/// Appends a text with its template argument lists made short: no defaults, no inline namespaces, no tags, no hashes.
pub(super) fn simplify(out: &mut String, text: &str) {
    /// A template argument list that is open, and the brackets around it.
    struct List {
        open: usize,
        arguments: Vec<usize>,
        depth: usize,
    }
    let mut lists: Vec<List> = Vec::new();
    // Where parentheses that may hold parameters start in `out`, and how deep they are.
    let mut parentheses: Vec<(usize, usize)> = Vec::new();
    let mut is_after_operator = false;
    let mut walk = Walk::new(text);
    loop {
        let at = walk.at();
        let Some(step) = walk.step() else { break };
        let was_operator = is_after_operator;
        let is_after_name = was_operator || out.ends_with(is_word) || out.ends_with('>');
        is_after_operator = step == Step::Operator;
        match step {
            Step::Open(b'(') if is_after_name => {
                parentheses.push((out.len(), walk.depth()));
                out.push('(');
            }
            Step::Close(b')') if parentheses.last().is_some_and(|(_, depth)| *depth == walk.depth() + 1) => {
                out.push(')');
                let after = without_qualifiers(&text[walk.at()..]);
                if let Some((start, _)) = parentheses.pop()
                    && after.starts_with("::")
                {
                    // The parameters of a function that has something in it.
                    out.truncate(start);
                    walk.skip_to(text.len() - after.len());
                }
            }
            Step::Open(b'<') if was_operator || is_template(out) => {
                out.push('<');
                lists.push(List { open: out.len() - 1, arguments: vec![out.len()], depth: walk.depth() });
            }
            Step::Close(b'>') if lists.last().is_some_and(|list| list.depth == walk.depth() + 1) => {
                if let Some(list) = lists.pop() {
                    close_template(out, list.open, &list.arguments);
                }
            }
            Step::Open(b'[') if out.ends_with(is_word) && tag_length(&text[at..]) > 0 => {
                walk.skip_over_level(at + tag_length(&text[at..]));
            }
            Step::Character if text.as_bytes()[at] == b',' => {
                out.push(',');
                if let Some(list) = lists.last_mut().filter(|list| list.depth == walk.depth()) {
                    // Microsoft's names have no space here.
                    out.push(' ');
                    list.arguments.push(out.len());
                    let rest = &text[walk.at()..];
                    walk.skip_to(text.len() - rest.trim_start_matches(' ').len());
                }
            }
            Step::Scope => {
                out.push_str("::");
                let rest = &text[walk.at()..];
                let word = &rest[..rest.find(|character| !is_word(character)).unwrap_or(rest.len())];
                if is_inline_namespace(word) && rest[word.len()..].starts_with("::") {
                    walk.skip_to(walk.at() + word.len() + 2);
                }
            }
            _ => out.push_str(&text[at..walk.at()]),
        }
    }
}

/// Whether `<` after this text opens template arguments; in Rust it also stands before a type (`<T as Trait>`).
fn is_template(out: &str) -> bool {
    out.ends_with(is_word) || out.ends_with("::") || out.ends_with(' ') || out.ends_with(['}', ')', '<', '>'])
}

/// The length of a tag at the start of a text: `[abi:cxx11]`, or a Rust crate's hash (`[1f2e3d]`).
fn tag_length(text: &str) -> usize {
    let Some(end) = text.find(']') else { return 0 };
    let inside = &text[1..end];
    let is_hash = !inside.is_empty() && inside.bytes().all(|byte| byte.is_ascii_hexdigit());
    if inside.starts_with("abi:") || is_hash { end + 1 } else { 0 }
}
