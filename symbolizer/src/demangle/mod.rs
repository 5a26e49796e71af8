//! From the linker's names to those that people write.

mod arguments;
mod itanium;
mod msvc;
mod normal;
mod path;
mod short;
mod style;
mod walk;

use std::borrow::Cow;
use std::fmt::{self, Write as _};

pub use style::{NameStyle, restyle};

/// Longest mangled name that is demangled, and longest result, in bytes. A few bytes can stand for a name of any
/// length, by referring to earlier parts again and again.
const MAX_LENGTH: usize = 32 << 10;

/// A linker's name in the wanted style; the name itself if it is not mangled or cannot be demangled.
///
/// Versions of dynamic symbols (`memcpy@@GLIBC_2.14`) go in all styles but the raw one, `@plt` stays. Suffixes by which
/// GCC and LLVM tell copies and parts of a function apart become `[clone .cold]` in the full style, also on plain C
/// names, and go in shorter ones; LLVM's `.llvm.<number>`, which only keeps local names unique, goes in both.
///
/// Names that debug information gives instead of a linker's name, such as `vector<int>::push_back`, are styled by
/// [`restyle`].
pub fn demangle(raw: &str, style: NameStyle) -> Cow<'_, str> {
    show(raw, style, true)
}

/// The name that profiles keep: the full style, but without the hashes of Rust's names. Those are other ones in each
/// build, and profiles of two builds are compared by names.
pub(crate) fn name_to_keep(raw: &str) -> Cow<'_, str> {
    show(raw, NameStyle::Full, false)
}

fn show(raw: &str, style: NameStyle, with_hash: bool) -> Cow<'_, str> {
    if style == NameStyle::Raw || raw.len() > MAX_LENGTH {
        return Cow::Borrowed(raw);
    }
    // Names of Visual C++; they may hold any of the characters below.
    if raw.starts_with('?') {
        return match msvc::demangle(raw) {
            Some(shown) if shown.len() <= MAX_LENGTH => Cow::Owned(restyle(&shown, style).into_owned()),
            _ => Cow::Borrowed(raw),
        };
    }
    if raw.bytes().any(|byte| matches!(byte, b' ' | b'<' | b'{' | b':')) {
        return restyle(raw, style);
    }
    let (name, version) = split_version(raw);
    let (base, mut suffixes) = split_clones(name);
    // Rust's older scheme looks like that of C++, but for the hash at the end.
    let shown = match legacy_length(base) {
        Some(length) => {
            suffixes.extend(Some(&base[length..]).filter(|suffix| !suffix.is_empty()));
            rust(&base[..length], style, with_hash)
        }
        None if base.starts_with("_R") || base.starts_with("__R") => rust(base, style, with_hash),
        None => cpp(base, style),
    };
    let shown = shown.map_or(Cow::Borrowed(base), Cow::Owned);
    let is_full = style == NameStyle::Full && !suffixes.is_empty();
    if !is_full && version != Some("plt") {
        return shown;
    }
    let mut shown = shown.into_owned();
    for suffix in suffixes.iter().filter(|_| is_full) {
        shown.push_str(" [clone ");
        shown.push_str(suffix);
        shown.push(']');
    }
    if version == Some("plt") {
        shown.push_str("@plt");
    }
    Cow::Owned(shown)
}

/// A Rust name of either scheme.
fn rust(name: &str, style: NameStyle, with_hash: bool) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Bounded(String::new());
    match style {
        NameStyle::Full if with_hash => write!(out, "{demangled}").ok()?,
        _ => write!(out, "{demangled:#}").ok()?,
    }
    if style == NameStyle::Full { Some(out.0) } else { Some(style::rust(&out.0, style)) }
}

/// The length of a name in Rust's older scheme, which ends with `17h`, 16 hex digits and `E`, up to there.
fn legacy_length(name: &str) -> Option<usize> {
    const HASH: usize = 20;
    let ends = |end: usize| {
        let hash = name.as_bytes().get(end.checked_sub(HASH)?..end)?;
        let is_hash = hash.starts_with(b"17h") && hash.ends_with(b"E");
        (is_hash && hash[3..HASH - 1].iter().all(u8::is_ascii_hexdigit)).then_some(end)
    };
    ends(name.len()).or_else(|| name.match_indices("E.").find_map(|(at, _)| ends(at + 1)))
}

fn cpp(name: &str, style: NameStyle) -> Option<String> {
    let shown = itanium::demangle(name, style == NameStyle::Full)?;
    if style != NameStyle::Short {
        return Some(shown);
    }
    let (prefix, name) = style::split_prefix(&shown);
    Some(format!("{prefix}{}", short::cpp(name)))
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
        // The labels that NASM and Yasm make up, `..@4.loop`, have no version.
        Some((name, version)) if !name.bytes().all(|byte| byte == b'.') => {
            (name, Some(version.trim_start_matches('@')))
        }
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
    use super::name_to_keep;

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        assert_eq!(name_to_keep(raw), expected);
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
        check("..@4.crcB3_loop", "..@4.crcB3_loop");
        check("runtime.mallocgc", "runtime.mallocgc");
        check("main.main.func1", "main.main.func1");
        check(".cold", ".cold");
        check("@", "@");
        check("", "");
    }

    #[test]
    fn broken_names_stay_as_they_are() {
        for raw in ["_Z", "_ZN3foo", "_R", "_RNvC", "_ZN99999999999999999999999fooE", "_ZZZZZZ"] {
            assert_eq!(name_to_keep(raw), raw);
        }
        let nested = format!("_Z1f{}i", "P".repeat(30_000));
        assert_eq!(name_to_keep(&nested), nested);
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
        assert!(name_to_keep(&raw).len() <= super::MAX_LENGTH);
        let mut raw = "_RNvC1a1bINtC1a1A".to_owned();
        raw += &"TB2_B2_".repeat(1000);
        assert!(name_to_keep(&raw).len() <= super::MAX_LENGTH);
    }

    fn radix_36(number: usize) -> String {
        let digit = |d: usize| char::from(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[d]);
        if number < 36 { digit(number).to_string() } else { format!("{}{}", digit(number / 36), digit(number % 36)) }
    }
}
