//! How much of a function's name is shown.

use std::borrow::Cow;

use super::path::path_of;
use super::walk::Walk;
use super::{normal, short};

/// How much of a function's name is shown.
///
/// | style | C++ | Rust |
/// |---|---|---|
/// | `Raw` | `_ZNSt6vectorIiSaIiEE9push_backEOi.cold` | `_RNvMs_NtCs1234_5alloc3vecINtB4_3VechE4push` |
/// | `Full` | `std::vector<int, std::allocator<int> >::push_back(int&&) [clone .cold]` | `<alloc[3c1c0]::vec::Vec<u8>>::push` |
/// | `Normal` | `std::vector<int>::push_back` | `<alloc::vec::Vec<u8>>::push` |
/// | `Short` | `vector::push_back` | `Vec::push` |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NameStyle {
    /// Type and function, without namespaces, modules, template arguments and parameters. What stands before a C++
    /// function stays, as its class, unless it is a well known namespace: the names do not tell one from the other.
    /// Closures and lambdas stay with the function around them. Never empty.
    Short,
    /// The whole path with its template arguments, but without those that are defaults of the standard library, the
    /// namespaces that only version a library (`__cxx11`, `__1`), return type, parameters, hashes, tags, and marks of
    /// copies and parts of functions (`[clone .cold]`): these are the same function. `std::string` goes by that name.
    #[default]
    Normal,
    /// Everything, as `c++filt` prints it; for Rust as its own tools print it, with hashes.
    Full,
    /// As the linker knows it.
    Raw,
}

/// Longest name that is taken apart, in bytes.
const MAX_LENGTH: usize = 256 << 10;

/// What stands before a name in the names of other things than functions.
const PREFIXES: [&str; 18] = [
    "vtable for ",
    "VTT for ",
    "construction vtable for ",
    "typeinfo for ",
    "typeinfo name for ",
    "typeinfo fn for ",
    "non-virtual thunk to ",
    "virtual thunk to ",
    "covariant return thunk to ",
    "guard variable for ",
    "TLS init function for ",
    "TLS wrapper function for ",
    "hidden alias for ",
    "transaction clone for ",
    "non-transaction clone for ",
    "template parameter object for ",
    "global constructors keyed to ",
    "global destructors keyed to ",
];

/// A name that is demangled already, by whatever tool, in another style. A name that is not understood stays whole, as
/// does every name in the full and the raw style, which other styles cannot be turned back to.
///
/// Takes the spellings of binutils, LLVM, Microsoft, Rust's tools and the debug information of C, C++ and Rust.
pub fn restyle(full: &str, style: NameStyle) -> Cow<'_, str> {
    if matches!(style, NameStyle::Full | NameStyle::Raw) || full.len() > MAX_LENGTH {
        return Cow::Borrowed(full);
    }
    let (name, plt) = match full.strip_suffix("@plt") {
        Some(name) => (name, "@plt"),
        None => (full, ""),
    };
    let name = without_clones(name);
    // Objective-C.
    let is_other = name.starts_with("-[") || name.starts_with("+[") || is_of_runtime_code(name);
    if name.is_empty() || is_other || is_word_only(name) {
        return if plt.is_empty() { Cow::Borrowed(name) } else { Cow::Borrowed(full) };
    }
    let (prefix, name) = split_prefix(name);
    let styled = if is_rust(name) {
        rust(name, style)
    } else if prefix.contains("typeinfo") || prefix.contains("construction") {
        // Of a type, which need not be a name; of two types.
        let mut normal = String::new();
        normal::simplify(&mut normal, name);
        if style == NameStyle::Short { short::cpp(&normal) } else { normal }
    } else {
        cpp(name, style)
    };
    if styled.is_empty() { Cow::Borrowed(full) } else { Cow::Owned(format!("{prefix}{styled}{plt}")) }
}

/// Splits off what stands before a name in the names of other things than functions.
pub(super) fn split_prefix(name: &str) -> (&str, &str) {
    let length = match name.strip_prefix("reference temporary #").and_then(|rest| rest.find(" for ")) {
        Some(at) => "reference temporary #".len() + at + " for ".len(),
        None => PREFIXES.iter().find(|prefix| name.starts_with(**prefix)).map_or(0, |prefix| prefix.len()),
    };
    name.split_at(length)
}

/// Whether the name is one that compilers at run time give, of which the colon is a part: `JS:*add file.js:3`,
/// `py::run:/usr/lib/a.py`. C++ and Rust have no single colons outside of brackets, but for `public: ` of Microsoft's.
fn is_of_runtime_code(name: &str) -> bool {
    let head = name.split(['(', '<', '{', '[', '`', '\'']).next().unwrap_or(name).as_bytes();
    let is_single =
        |at: usize| head[at] == b':' && (at == 0 || head[at - 1] != b':') && head.get(at + 1) != Some(&b':');
    let after = |at: usize| name.as_bytes().get(at + 1);
    (0..head.len()).any(|at| is_single(at) && after(at).is_some_and(|byte| *byte != b' '))
}

/// A Rust name, as its tools print it, in the normal or short style.
pub(super) fn rust(name: &str, style: NameStyle) -> String {
    let mut normal = String::with_capacity(name.len());
    normal::simplify(&mut normal, without_legacy_hash(name));
    if style == NameStyle::Short { short::rust(&normal) } else { normal }
}

fn cpp(name: &str, style: NameStyle) -> String {
    let normal = normal::cpp_path(path_of(name));
    if style == NameStyle::Short { short::cpp(&normal) } else { normal }
}

fn is_word_only(name: &str) -> bool {
    name.chars().all(super::walk::is_word)
}

/// Whether a name with a path has something in it that only Rust's have.
fn is_rust(name: &str) -> bool {
    let has_crate_hash = || {
        name.split_once('[').is_some_and(|(before, rest)| {
            let hash = rest.split(']').next().unwrap_or("");
            before.ends_with(super::walk::is_word)
                && rest[hash.len()..].starts_with("]::")
                && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    name.starts_with('<')
        || name.starts_with("core::")
        || name.starts_with("alloc::")
        || ["::<", "{{", "::{closure", "{impl#", "::{shim", "::{constant"].iter().any(|sign| name.contains(sign))
        || without_legacy_hash(name).len() < name.len()
        || has_crate_hash()
}

/// Without the `::h` and 16 hex digits that Rust's legacy mangling appends.
fn without_legacy_hash(path: &str) -> &str {
    match path.rsplit_once("::h") {
        Some((rest, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => rest,
        _ => path,
    }
}

/// Without `[clone .cold]` (binutils) and `(.cold)` (LLVM) at the end.
fn without_clones(mut name: &str) -> &str {
    loop {
        let start = match name.as_bytes().last() {
            Some(b']') => name.rfind(" [clone ."),
            Some(b')') => name.rfind(" (."),
            _ => return name,
        };
        match start {
            Some(start) if start > 0 && is_one_bracket(&name[start + 1..]) => name = &name[..start],
            _ => return name,
        }
    }
}

/// Whether the text is one pair of brackets with something in between.
fn is_one_bracket(text: &str) -> bool {
    let mut walk = Walk::new(text);
    while walk.step().is_some() {
        if walk.depth() == 0 {
            return walk.at() == text.len();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{NameStyle, restyle};

    #[test]
    fn names_of_code_made_at_run_time_stay_whole() {
        for name in [
            "LazyCompile:~add /srv/app/index.js:3",
            "JS:*add file:///srv/app.mjs:12:7",
            "py::run:/usr/lib/a b.py",
            "RegExp:(a|b)+<c> d",
            "compiled script.js:12",
        ] {
            for style in [NameStyle::Short, NameStyle::Normal] {
                assert_eq!(restyle(name, style), name);
            }
        }
        assert_eq!(restyle("public: int __cdecl ns::f(int)", NameStyle::Normal), "ns::f");
        assert_eq!(
            restyle("void ns::(anonymous namespace)::f(int)", NameStyle::Normal),
            "ns::(anonymous namespace)::f"
        );
    }

    /// Full names of many tools, then the normal and the short style.
    const NAMES: [(&str, &str, &str); 66] = [
        ("main", "main", "main"),
        ("foo(int, char const*)", "foo", "foo"),
        ("void ns::f<std::string>(std::string)", "ns::f<std::string>", "ns::f"),
        (
            "std::vector<int, std::allocator<int> >::push_back(int const&)",
            "std::vector<int>::push_back",
            "vector::push_back",
        ),
        (
            "std::map<int, long, std::less<int>, std::allocator<std::pair<int const, long> > >::operator[](int&&)",
            "std::map<int, long>::operator[]",
            "map::operator[]",
        ),
        (
            "std::map<int, long, std::greater<int>, std::allocator<std::pair<int const, long> > >::clear()",
            "std::map<int, long, std::greater<int>>::clear",
            "map::clear",
        ),
        (
            "std::unique_ptr<ns::A, std::default_delete<ns::A> >::~unique_ptr()",
            "std::unique_ptr<ns::A>::~unique_ptr",
            "unique_ptr::~unique_ptr",
        ),
        (
            "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::append(char const*)",
            "std::string::append",
            "string::append",
        ),
        (
            "std::__1::basic_string<wchar_t, std::__1::char_traits<wchar_t>, std::__1::allocator<wchar_t>>::f()",
            "std::wstring::f",
            "wstring::f",
        ),
        (
            "std::basic_ostream<char, std::char_traits<char> >& std::operator<< <std::char_traits<char> >(int)",
            "std::operator<< <std::char_traits<char>>",
            "operator<<",
        ),
        (
            "void std::sort<int*, std::less<int> >(int*, int*, std::less<int>)",
            "std::sort<int*, std::less<int>>",
            "sort",
        ),
        ("std::enable_if<(1>0), int>::type ns::g<int>(int)", "ns::g<int>", "ns::g"),
        ("decltype ((a)<(b)) ns::g<int>(int)", "ns::g<int>", "ns::g"),
        ("operator new(unsigned long)", "operator new", "operator new"),
        ("void* operator new[](unsigned long)", "operator new[]", "operator new[]"),
        ("ns::A::operator<<(int)", "ns::A::operator<<", "A::operator<<"),
        ("bool ns::operator< <int>(ns::A<int>, int)", "ns::operator< <int>", "ns::operator<"),
        ("ns::A::operator()(int) const", "ns::A::operator()", "A::operator()"),
        ("void ns::A::operator()<int>(int) const", "ns::A::operator()<int>", "A::operator()"),
        ("ns::A::operator std::string() const", "ns::A::operator std::string", "A::operator std::string"),
        ("ns::A::operator->() const", "ns::A::operator->", "A::operator->"),
        ("ns::A::operator bool() const &", "ns::A::operator bool", "A::operator bool"),
        ("(anonymous namespace)::f(int)", "(anonymous namespace)::f", "f"),
        ("ns::(anonymous namespace)::f(int) [clone .cold]", "ns::(anonymous namespace)::f", "f"),
        ("f(int) [clone .part.0] [clone .cold]", "f", "f"),
        ("f(int) (.cold)", "f", "f"),
        ("f(int)@plt", "f@plt", "f@plt"),
        ("memcpy@plt", "memcpy@plt", "memcpy@plt"),
        ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()", "main::{lambda(int)#1}"),
        (
            "ns::A::f(int) const::{lambda()#2}::operator()() const",
            "ns::A::f::{lambda()#2}::operator()",
            "A::f::{lambda()#2}",
        ),
        ("ns::f(int)::{lambda()#2}::_FUN()", "ns::f::{lambda()#2}::_FUN", "ns::f::{lambda()#2}::_FUN"),
        ("ns::f(int)::Local::g()", "ns::f::Local::g", "Local::g"),
        ("main::'lambda'(int)::operator()(int) const", "main::'lambda'::operator()", "main::'lambda'"),
        ("f[abi:cxx11](int)", "f", "f"),
        ("ns::A::f[abi:cxx11]() const", "ns::A::f", "A::f"),
        ("std::filesystem::__cxx11::path::compare(int) const", "std::filesystem::path::compare", "path::compare"),
        ("void (*ns::f<int>(int))(char)", "ns::f<int>", "ns::f"),
        ("non-virtual thunk to ns::A::f(int)", "non-virtual thunk to ns::A::f", "non-virtual thunk to A::f"),
        ("vtable for std::vector<int, std::allocator<int> >", "vtable for std::vector<int>", "vtable for vector"),
        ("my_operator(int)", "my_operator", "my_operator"),
        ("main.(*T).Method", "main.(*T).Method", "main.(*T).Method"),
        ("runtime.mallocgc", "runtime.mallocgc", "runtime.mallocgc"),
        ("-[NSString length]", "-[NSString length]", "-[NSString length]"),
        ("public: void __cdecl ns::A<int,class std::allocator<int> >::f(int)", "ns::A<int>::f", "A::f"),
        ("void __cdecl `anonymous namespace'::f(int)", "`anonymous namespace'::f", "f"),
        (
            "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
            "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
            "Vec::clone",
        ),
        (
            "<fn(A) -> B as core::ops::FnOnce<(A,)>>::call_once",
            "<fn(A) -> B as core::ops::FnOnce<(A,)>>::call_once",
            "fn(A) -> B::call_once",
        ),
        ("app::main::{{closure}}", "app::main::{{closure}}", "main::{{closure}}"),
        ("app::main::{{closure}}::h0123456789abcdef", "app::main::{{closure}}", "main::{{closure}}"),
        ("<app[8d3c]::Foo<[u8; 4]>>::new::<u32>", "<app::Foo<[u8; 4]>>::new::<u32>", "Foo::new"),
        ("<&mut app::Foo as app::Bar>::baz", "<&mut app::Foo as app::Bar>::baz", "Foo::baz"),
        ("alloc::vec::Vec<T,A>::push::h0123456789abcdef", "alloc::vec::Vec<T, A>::push", "Vec::push"),
        ("alloc::vec::Vec<u8, alloc::alloc::Global>::push", "alloc::vec::Vec<u8>::push", "Vec::push"),
        ("alloc::slice::<impl [T]>::to_vec::h0123456789abcdef", "alloc::slice::<impl [T]>::to_vec", "[T]::to_vec"),
        (
            "core::fmt::num::<impl core::fmt::Display for u32>::fmt",
            "core::fmt::num::<impl core::fmt::Display for u32>::fmt",
            "u32::fmt",
        ),
        (
            "std[1f2e]::rt::lang_start::<()>::{closure#0}",
            "std::rt::lang_start::<()>::{closure#0}",
            "lang_start::{closure#0}",
        ),
        (
            "<app::S as app::T>::f::{closure#1}::{closure#0}",
            "<app::S as app::T>::f::{closure#1}::{closure#0}",
            "S::f::{closure#1}::{closure#0}",
        ),
        ("<dyn app::Tr + core::marker::Send>::f", "<dyn app::Tr + core::marker::Send>::f", "Tr::f"),
        ("<(app::A, app::B<u8>) as app::T>::f", "<(app::A, app::B<u8>) as app::T>::f", "(A, B)::f"),
        ("core::fmt::{impl#8}::fmt<u8>", "core::fmt::{impl#8}::fmt<u8>", "fmt::{impl#8}::fmt"),
        (
            "core::ptr::drop_in_place::<alloc::boxed::Box<app::T, alloc::alloc::Global>>",
            "core::ptr::drop_in_place::<alloc::boxed::Box<app::T>>",
            "drop_in_place",
        ),
        (
            "core::ops::function::FnOnce::call_once{{vtable.shim}}",
            "core::ops::function::FnOnce::call_once{{vtable.shim}}",
            "FnOnce::call_once{{vtable.shim}}",
        ),
        ("", "", ""),
        (" ", " ", " "),
        ("f(", "f", "f"),
        ("::x", "x", "x"),
    ];

    #[test]
    fn text_in_other_styles() {
        let mut wrong = Vec::new();
        for (full, normal, short) in NAMES {
            let styled = (restyle(full, NameStyle::Normal), restyle(full, NameStyle::Short));
            if styled != (normal.into(), short.into()) {
                wrong.push(format!("{full}: {styled:?}"));
            }
            assert_eq!(restyle(full, NameStyle::Full), full);
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
