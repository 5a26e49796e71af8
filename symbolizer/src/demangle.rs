//! From the linker's names to those that people write.

use std::fmt::{self, Write as _};

/// Longest mangled name that is demangled, and longest result, in bytes. A few bytes can stand for a name of any
/// length, by referring to earlier parts again and again.
const MAX_LENGTH: usize = 32 << 10;

/// Deepest nesting of a C++ name that is followed.
const MAX_DEPTH: u32 = 128;

/// The name as people write it; `None` if it is not mangled or cannot be demangled.
///
/// - Rust, both schemes: without the hash at the end.
/// - C++ (Itanium scheme): with parameters.
/// - Suffixes by which GCC and LLVM tell copies and parts of a function apart become `[clone .cold]`, also on plain C
///   names; LLVM's `.llvm.<number>`, which only keeps local names unique, goes.
/// - Versions of dynamic symbols (`memcpy@@GLIBC_2.14`) go; `@plt` stays.
pub(crate) fn demangle(raw: &str) -> Option<String> {
    if raw.len() > MAX_LENGTH {
        return None;
    }
    let (name, version) = split_version(raw);
    let mut shown = rust(name);
    if shown.is_none() {
        let (base, suffixes) = split_clones(name);
        let demangled = cpp(base);
        if demangled.is_some() || base.len() != name.len() {
            let mut text = demangled.unwrap_or_else(|| base.to_owned());
            for suffix in suffixes {
                text += &format!(" [clone {suffix}]");
            }
            shown = Some(text);
        }
    }
    match (shown, version) {
        (Some(shown), Some("plt")) => Some(shown + "@plt"),
        (None, Some("plt")) => None,
        (shown, version) => shown.or_else(|| version.is_some().then(|| name.to_owned())),
    }
}

fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Bounded(String::new());
    write!(out, "{demangled:#}").ok()?;
    Some(out.0)
}

fn cpp(name: &str) -> Option<String> {
    // The two prefixes of global constructors and destructors aside, only `_Z` (`__Z` on macOS) starts a mangled name.
    if !name.starts_with("_Z") && !name.starts_with("__Z") && !name.starts_with("_GLOBAL_") {
        return None;
    }
    let options = cpp_demangle::ParseOptions::default().recursion_limit(MAX_DEPTH);
    let symbol = cpp_demangle::BorrowedSymbol::new_with_options(name.as_bytes(), &options).ok()?;
    let options = cpp_demangle::DemangleOptions::new().recursion_limit(MAX_DEPTH);
    let mut out = Bounded(String::new());
    symbol.structured_demangle(&mut out, &options).ok()?;
    Some(out.0)
}

/// A string that refuses to grow too long.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_LENGTH {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Splits `name@version` or `name@@version`.
fn split_version(raw: &str) -> (&str, Option<&str>) {
    match raw.split_once('@') {
        Some((name, version)) if !name.is_empty() => (name, Some(version.trim_start_matches('@'))),
        _ => (raw, None),
    }
}

/// Splits off the suffixes that compilers append: a known word and any numbers, as in `.constprop.0.isra.0.cold`.
fn split_clones(name: &str) -> (&str, Vec<&str>) {
    const WORDS: [&str; 11] =
        ["cold", "part", "isra", "constprop", "lto_priv", "localalias", "llvm", "clone", "resolver", "default", "warm"];
    let mut base = name;
    let mut suffixes = Vec::new();
    loop {
        // The last word, with the numbers after it.
        let without_numbers = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let Some(dot) = without_numbers.rfind('.') else { break };
        let word = &without_numbers[dot + 1..];
        if dot == 0 || !WORDS.contains(&word) {
            break;
        }
        if word != "llvm" {
            suffixes.push(&base[dot..]);
        }
        base = &base[..dot];
    }
    suffixes.reverse();
    (base, suffixes)
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        assert_eq!(demangle(raw).as_deref().unwrap_or(raw), expected);
    }

    #[test]
    fn rust_names_without_hash() {
        check("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
        check("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.123456", "core::fmt::Formatter::pad");
        check("_RNvCs1234_7mycrate3foo", "mycrate::foo");
        check("_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE", "std::mem::align_of::<std::mem::Discriminant>");
    }

    #[test]
    fn cpp_names_with_parameters_and_clones() {
        check("_ZN3foo3barEiPKc", "foo::bar(int, char const*)");
        check("_Z3addii.cold", "add(int, int) [clone .cold]");
        check("_Z3addii.constprop.0.isra.1", "add(int, int) [clone .constprop.0] [clone .isra.1]");
        check("_ZL3addii.llvm.9876", "add(int, int)");
        check("_ZN3foo3barEv@@VERS_1.0", "foo::bar()");
        check("_ZN3foo3barEv@plt", "foo::bar()@plt");
    }

    #[test]
    fn plain_names() {
        check("main", "main");
        check("read_file.part.0", "read_file [clone .part.0]");
        check("read_file.part.0.cold", "read_file [clone .part.0] [clone .cold]");
        check("memcpy@@GLIBC_2.14", "memcpy");
        check("memcpy@plt", "memcpy@plt");
        check("runtime.mallocgc", "runtime.mallocgc");
        check("main.main.func1", "main.main.func1");
        check(".cold", ".cold");
        check("@", "@");
        check("", "");
    }

    #[test]
    fn broken_names_stay_as_they_are() {
        for raw in ["_Z", "_ZN3foo", "_R", "_RNvC", "_ZN99999999999999999999999fooE", "_ZZZZZZ"] {
            assert_eq!(demangle(raw), None, "{raw}");
        }
        let nested = format!("_Z1f{}i", "P".repeat(30_000));
        assert_eq!(demangle(&nested), None);
    }

    #[test]
    fn small_names_that_stand_for_huge_ones() {
        // Each template argument list names the one before it twice: 2^40 parts if written out.
        let mut raw = "_Z1fI1AIiiE".to_owned();
        for i in 0..40 {
            let reference = if i == 0 { "S_".to_owned() } else { format!("S{}_", radix_36(i - 1)) };
            raw += &format!("1AI{reference}{reference}E");
        }
        raw += "EvT_";
        let shown = demangle(&raw).unwrap_or_default();
        assert!(shown.len() <= super::MAX_LENGTH);
        let mut raw = "_RNvC1a1bINtC1a1A".to_owned();
        raw += &"TB2_B2_".repeat(1000);
        assert!(demangle(&raw).unwrap_or_default().len() <= super::MAX_LENGTH);
    }

    fn radix_36(number: usize) -> String {
        let digit = |d: usize| char::from(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[d]);
        if number < 36 { digit(number).to_string() } else { format!("{}{}", digit(number / 36), digit(number % 36)) }
    }
}
