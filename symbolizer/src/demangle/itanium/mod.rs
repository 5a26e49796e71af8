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

/// Deepest nesting that is read. Of 1.3 million names of large programs, the deepest reach 130.
const MAX_DEPTH: u32 = 256;

/// Deepest nesting that is printed: as deep as what is read, but deeper by what a name says by referring back. A level
/// takes up to 1 KiB of stack, and 5 KiB in unoptimized code.
const MAX_PRINT_DEPTH: u32 = 300;

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

#[cfg(test)]
mod tests {
    use super::demangle;

    /// Runs `work` with the stack that threads have by default, at most.
    fn with_little_stack(work: impl FnOnce() + Send + 'static) {
        let size = if cfg!(debug_assertions) { 2 << 20 } else { 512 << 10 };
        let thread = std::thread::Builder::new().stack_size(size).spawn(work).expect("a thread can be started");
        thread.join().expect("no panic");
    }

    #[test]
    fn nesting_is_limited() {
        with_little_stack(|| {
            let wraps = [
                ("_Z1f", "P", "i", ""),
                ("_Z1f", "KR", "i", ""),
                ("_Z1f", "1AI", "i", "E"),
                ("_Z1f", "N1A1BI", "i", "EE"),
                ("_Z1f", "PF", "i", "iE"),
                ("_Z1f", "A1_", "i", ""),
                ("_Z1f", "M1A", "i", ""),
                ("_Z1f", "Dp", "i", ""),
                ("_Z1f", "U1x", "i", ""),
                ("_Z1fI", "X", "Li1E", "E"),
                ("_Z1fI", "J", "i", "E"),
                ("_Z1fIiEDT", "ng", "fp_", ""),
                ("_Z1fIiEDT", "plLi1E", "fp_", ""),
                ("_Z1fIiEDT", "cl", "fp_", "E"),
                ("_Z1fIiEDT", "cvi", "fp_", ""),
                ("_Z1fIiEDT", "DT", "fp_", "E"),
                ("_Z1fIiEDT", "il", "fp_", "E"),
                ("_Z1fIiEDT", "gs", "fp_", ""),
                ("_Z1fIiEDT", "u1xX", "Li1E", "EE"),
                ("_Z1fIiEDT", "rqX", "fp_", "E"),
                ("_Z1fIiEDT", "sr", "T_", "1x"),
                ("_Z", "Z", "1f", "E1g"),
                ("_Z", "Z1fE1xIN", "1f", "EE"),
                ("_Z1f", "UlPFv", "i", "EE_"),
                ("_Z1f", "UlTt", "Ty", "EvE_"),
                ("_Z1fI", "Tk1CT", "i", ""),
                ("_ZN1A", "cv", "i", ""),
                ("_Z", "GTt", "1f", ""),
                ("_Z1f", "DO", "Li1E", "EFvvE"),
                ("_Z", "Tc", "v0_n1_v0_n1_1f", ""),
            ];
            for (head, wrap, inner, end) in wraps {
                for count in [3, 50, 120, 200, 260, 600, 5_000] {
                    for tail in ["", "v", "Ev", "EEv", "E_v"] {
                        let name = format!("{head}{}{inner}{}{tail}", wrap.repeat(count), end.repeat(count));
                        demangle(&name, true);
                        demangle(&name, false);
                    }
                }
            }
        });
    }

    #[test]
    fn nesting_by_substitutions_is_limited() {
        with_little_stack(|| {
            // Each type is made of the one before it, without any nesting in the mangled name.
            for wrap in ["P", "1AI", "PF", "N1B1CI"] {
                let end = if wrap.contains('I') {
                    "E"
                } else if wrap == "PF" {
                    "vE"
                } else {
                    ""
                };
                let mut name = "_Z1f1x".to_owned();
                for index in 0..4_000u32 {
                    name += &format!("{wrap}S{}{end}", sequence(index * if wrap == "P" { 1 } else { 2 }));
                }
                demangle(&name, true);
                demangle(&name, false);
            }
        });
    }

    fn sequence(index: u32) -> String {
        let Some(mut number) = index.checked_sub(1) else { return "_".to_owned() };
        let mut digits = Vec::new();
        loop {
            digits.push(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[number as usize % 36]);
            number /= 36;
            if number == 0 {
                digits.reverse();
                return String::from_utf8_lossy(&digits).into_owned() + "_";
            }
        }
    }

    #[test]
    fn characters_of_several_bytes() {
        assert_eq!(demangle("_Z3ba\u{2db}1AIcE", false), None);
        assert_eq!(demangle("_Z1fN3a\u{2db}1AIcEE", false).as_deref(), Some("f"));
        assert_eq!(demangle("_ZN4ba\u{2db}1AIcE1fEv", false).as_deref(), Some("ba\u{2db}::A<char>::f"));
        assert_eq!(demangle("_ZN4\u{2db}_b1AIcE1fEv", false).as_deref(), Some("\u{2db}_b::A<char>::f"));
        assert_eq!(demangle("_ZN5ba\u{2db}_IcE1fEv", false).as_deref(), Some("ba\u{2db}_<char>::f"));
    }

    #[test]
    fn references_to_themselves() {
        for name in ["_ZN1AcvT_IT_EEv", "_ZN1AcvT_IS0_EEv", "_ZN1AcvT_IPT_EEv", "_Z1fIT_EvS_", "_Z1fIS_EvT_"] {
            demangle(name, true);
            demangle(name, false);
        }
    }
}
