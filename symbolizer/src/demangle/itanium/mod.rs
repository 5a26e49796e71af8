//! C++ names as GCC, Clang and everybody who follows the Itanium C++ ABI mangle them.
//!
//! A name is read into a tree ([`parser`], [`names`], [`types`], [`expressions`]), then printed ([`print`] and the files
//! beside it): as binutils' `c++filt` does, or in the normal style. Both go down the tree by recursion with a fixed
//! limit. Limits on nodes, steps and length hold for names of any kind: a few bytes can stand for a name of any length,
//! by referring to earlier parts again and again.

mod expressions;
mod names;
mod node;
mod operators;
mod parser;
mod print;
mod print_expressions;
mod print_types;
mod types;

/// Deepest nesting that is followed. Real names stay below 40; each level costs some 500 bytes of stack.
const MAX_DEPTH: u32 = 256;

/// Most nodes of a name. Each takes at least a byte of the mangled name, save for a few.
const MAX_NODES: usize = 128 << 10;

/// Most nodes that are visited to print a name; a node counts as often as it is printed.
const MAX_STEPS: u32 = 1 << 20;

/// Longest name that is printed, in bytes.
const MAX_LENGTH: usize = 64 << 10;

/// The name that `mangled` stands for: in full as `c++filt` prints it, or in the normal style. `None` if it is not a
/// name of this kind or past a limit.
pub(super) fn demangle(mangled: &str, in_full: bool) -> Option<String> {
    let text = mangled.strip_prefix("__Z").or_else(|| mangled.strip_prefix("_Z"));
    let Some(text) = text else { return global(mangled, in_full) };
    let mut parser = parser::Parser::new(text.as_bytes());
    let root = parser.encoding()?;
    let mut out = print::print(&parser.tree, text, root, in_full)?;
    clones(text.get(parser.at..)?, in_full, &mut out)?;
    Some(out)
}

/// `_GLOBAL__I_name`, `_GLOBAL__D_name`: what runs before and after `main`.
fn global(mangled: &str, in_full: bool) -> Option<String> {
    let rest = mangled.strip_prefix("_GLOBAL_")?.strip_prefix(['_', '.', '$'])?;
    let (what, rest) = match rest.split_at_checked(2)? {
        ("I_", rest) => ("constructors", rest),
        ("D_", rest) => ("destructors", rest),
        _ => return None,
    };
    let inner = if rest.starts_with("_Z") { demangle(rest, in_full)? } else { rest.to_owned() };
    Some(format!("global {what} keyed to {inner}"))
}

/// Suffixes of copies and parts of a function: `.constprop.0.cold`.
fn clones(mut rest: &str, in_full: bool, out: &mut String) -> Option<()> {
    while !rest.is_empty() {
        let bytes = rest.as_bytes();
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit();
        if bytes[0] != b'.' || !bytes.get(1).is_some_and(|&byte| is_word(byte)) {
            return None;
        }
        let mut end = 1;
        while bytes.get(end).is_some_and(|&byte| is_word(byte)) {
            end += 1;
        }
        while bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
            end += 2;
            while bytes.get(end).is_some_and(u8::is_ascii_digit) {
                end += 1;
            }
        }
        if in_full && !rest.starts_with(".llvm.") {
            out.push_str(" [clone ");
            out.push_str(&rest[..end]);
            out.push(']');
        }
        rest = &rest[end..];
    }
    Some(())
}
