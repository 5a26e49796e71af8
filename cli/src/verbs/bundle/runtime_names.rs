//! Which names an anonymous bundle keeps: those that are the same in everybody's programs, so that reports still tell
//! memory of a `std::vector` from that of a hash map, and frames of the runtime from those of the program.
//!
//! What is kept of a function of a standard library is its path, without template arguments and parameters: these may be
//! the program's own types. Everything that is not surely such a name is none. What a program has put into the namespace
//! `std` itself cannot be told from what belongs there.

use mpp_profile::Frame;
use mpp_profile::analysis::runtime::{Role, role, role_of_function, role_of_module};
use mpp_profile::analysis::symbol_name::{SymbolName, root_of_type, split_impl};

/// The file name of our own library.
const OUR_LIBRARY: &str = crate::preload::FILE_NAME;

/// Names of mappings that are the kernel's, and that of symbols of code in no file at all.
const KERNEL: &[&str] = &["", "[heap]", "[stack]", "[vdso]", "[vvar]", "[vsyscall]", "[perf map]"];

/// Folders of libraries that tell nothing of the machine's owner.
const SYSTEM: &[&str] = &["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"];

/// Marks of names that stay: those that debuggers and compilers give, no program.
const COMPILER: &[&str] = &["{closure", "{{closure", "{shim", "{{vtable.shim}}", "(anonymous namespace)"];

/// Operators that allocate.
const OPERATORS: &[&str] = &["operator new", "operator new[]", "operator delete", "operator delete[]"];

/// What names of functions of allocators are made of.
const ALLOCATOR_WORDS: &[&str] = &[
    "GI",
    "alloc",
    "aligned",
    "asan",
    "calloc",
    "cfree",
    "dealloc",
    "delete",
    "error",
    "free",
    "generic",
    "handler",
    "heap",
    "interceptor",
    "is",
    "je",
    "libc",
    "malloc",
    "mallocn",
    "mallocx",
    "memalign",
    "mi",
    "n",
    "new",
    "no",
    "nothrow",
    "page",
    "plt",
    "posix",
    "rallocx",
    "rdl",
    "realloc",
    "reallocarray",
    "recalloc",
    "rezalloc",
    "rg",
    "rust",
    "rustc",
    "sdallocx",
    "shim",
    "size",
    "small",
    "strdup",
    "strndup",
    "tc",
    "theap",
    "unstable",
    "usable",
    "v2",
    "valloc",
    "zalloc",
    "zeroed",
];

/// The path of a module, as far as it stays.
pub(super) fn module(path: &str) -> Option<String> {
    if KERNEL.contains(&path) {
        return Some(path.to_owned());
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    if name != OUR_LIBRARY && !is_runtime_library(name) {
        return None;
    }
    let is_system = SYSTEM.iter().any(|folder| path.starts_with(folder));
    Some(if is_system && name != OUR_LIBRARY { path.to_owned() } else { format!("/{name}") })
}

/// Whether everything in a library is known to everybody. Names that may go on as they like could say anything.
fn is_runtime_library(name: &str) -> bool {
    let is_plain = name.split(['.', '-']).skip(1).all(|part| {
        let is_version = part.bytes().all(|byte| byte.is_ascii_digit());
        is_version || ["so", "linux", "x86", "64", "x86_64", "aarch64", "musl"].contains(&part) || is_hash(part)
    });
    role_of_module(name) == Role::Runtime && is_plain
}

fn is_hash(part: &str) -> bool {
    part.len() == 16 && part.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The name of a function, as far as it stays. `module` is the path of the module it is in.
pub(super) fn function(module_path: Option<&str>, frame: &Frame) -> Option<String> {
    let name = module_path.map(|path| path.rsplit('/').next().unwrap_or(path));
    if name.is_some_and(|name| name == OUR_LIBRARY || is_runtime_library(name)) {
        return Some(frame.function.to_string());
    }
    let path = SymbolName::parse(&frame.function).path;
    if let Some((self_type, of_trait, rest)) = split_impl(path) {
        return implementation(self_type, of_trait?, rest);
    }
    let short = SymbolName::parse(&frame.function).short();
    // Bare names, of a closure for instance, tell by their source file where they belong.
    let is_runtime = role_of_function(&short) != Role::User || (!short.contains("::") && source_is_runtime(frame));
    // A suffix such as `.cold` or `@plt` says which part or stub of the function it is.
    let short = short.split(['.', '@']).next().unwrap_or_default();
    (is_runtime && is_path(short) && is_known(short)).then(|| short.to_owned())
}

/// Whether a name that the tables of the runtime know is in them as it is, or made of words of allocators only. Some rules
/// know names by their beginning, and those could go on with anything.
fn is_known(name: &str) -> bool {
    let starts_like_one = role_of_function(&format!("{name}_")) != Role::User;
    if name.contains("::") && !name.starts_with("__rustc::") || OPERATORS.contains(&name) || !starts_like_one {
        return true;
    }
    let words = name.split(['_', ':', '@']).filter(|word| !word.is_empty());
    words.into_iter().all(|word| ALLOCATOR_WORDS.contains(&word))
}

/// `<_ as core::fmt::Debug>::fmt`, with the type if it is the runtime's, too.
fn implementation(self_type: &str, of_trait: &str, rest: &str) -> Option<String> {
    let short = |path: &str| Some(SymbolName::parse(path).short()).filter(|path| is_path(path));
    let is_runtime = |path: &str| role_of_function(&format!("{path}::f")) != Role::User;
    let of_trait = short(of_trait).filter(|path| is_runtime(path))?;
    let is_known = root_of_type(self_type).is_some_and(|root| self_type.starts_with(root));
    let self_type = short(self_type).filter(|path| is_known && is_runtime(path)).unwrap_or_else(|| "_".to_owned());
    let rest = short(rest.trim_start_matches(':'))?;
    Some(format!("<{self_type} as {of_trait}>::{rest}"))
}

/// Whether a name is a plain path: nothing in it could be an argument, a parameter or the type of a conversion.
fn is_path(name: &str) -> bool {
    let mut rest = name.to_owned();
    for known in COMPILER {
        rest = rest.replace(known, "");
    }
    for operator in ["operator new[]", "operator delete[]", "operator new", "operator delete", "operator()"] {
        rest = rest.replace(operator, "operator");
    }
    let is_plain = |c: char| c.is_alphanumeric() || "_:#{}~.@$".contains(c);
    let is_sign = |c: char| "<>=!+-*/%&|^[]".contains(c);
    let signs = rest.find("operator").map_or(rest.len(), |at| at + "operator".len());
    !name.is_empty() && rest[..signs].chars().all(is_plain) && rest[signs..].chars().all(|c| is_plain(c) || is_sign(c))
}

/// The path of a source file, as far as it stays: that of a file of a standard library, without the folder it is in.
pub(super) fn source(path: &str) -> Option<String> {
    let frame = Frame::named("").at(path, 1);
    if !source_is_runtime(&frame) {
        return None;
    }
    let is_plain = |rest: &str| rest.split('/').all(|part| !part.is_empty() && part != "..");
    if let Some((_, rest)) = path.split_once("/library/")
        && path.ends_with(".rs")
        && is_plain(rest)
    {
        return Some(format!("/rustc/library/{rest}"));
    }
    let (_, rest) = path.split_once("/include/c++/")?;
    let version = rest.split('/').next().unwrap_or_default();
    let is_version =
        version == "v1" || (!version.is_empty() && version.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    (is_version && is_plain(rest)).then(|| format!("/usr/include/c++/{rest}"))
}

fn source_is_runtime(frame: &Frame) -> bool {
    let nameless = Frame { function: "".into(), ..frame.clone() };
    frame.file.is_some() && role(None, Some(&nameless)) == Role::Runtime
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(name: &str) -> Option<String> {
        function(Some("/opt/acme/server"), &Frame::named(name))
    }

    #[test]
    fn names_of_standard_libraries_stay_without_arguments() {
        let names = [
            ("malloc", "malloc"),
            ("malloc@plt", "malloc"),
            ("PyMem_Malloc.part.0", "PyMem_Malloc"),
            ("mi_heap_malloc_aligned", "mi_heap_malloc_aligned"),
            ("__rustc::__rust_alloc", "__rustc::__rust_alloc"),
            ("operator new(unsigned long)", "operator new"),
            ("operator new[](unsigned long)", "operator new"),
            (
                "void std::vector<acme::Key, std::allocator<acme::Key> >::push_back(acme::Key&&)",
                "std::vector::push_back",
            ),
            ("std::map<int, acme::Key>::operator[](int const&)", "std::map::operator[]"),
            ("std::function<void (acme::Key)>::operator()(acme::Key) const", "std::function::operator()"),
            ("alloc::vec::Vec<acme::Key>::push", "alloc::vec::Vec::push"),
            ("core::ptr::drop_in_place::<acme::Key>", "core::ptr::drop_in_place"),
            (
                "<alloc::vec::Vec<acme::Key> as core::ops::drop::Drop>::drop",
                "<alloc::vec::Vec as core::ops::drop::Drop>::drop",
            ),
            ("<acme::Key as core::fmt::Debug>::fmt", "<_ as core::fmt::Debug>::fmt"),
            ("<&acme::Key as core::fmt::Debug>::fmt", "<_ as core::fmt::Debug>::fmt"),
            ("<(alloc::string::String, acme::Key) as core::fmt::Debug>::fmt", "<_ as core::fmt::Debug>::fmt"),
        ];
        for (name, expected) in names {
            assert_eq!(kept(name).as_deref(), Some(expected), "{name}");
        }
    }

    #[test]
    fn nothing_of_the_program_stays() {
        let names = [
            "main",
            "acme::run",
            "acme::run(std::string)",
            "std::vector<acme::Key> acme::keys()",
            "<acme::Key as acme::Unlock>::unlock",
            "<acme::Key>::turn",
            "<std::string::String as acme::Unlock>::unlock",
            "std::optional<int>::operator acme::Key() const",
            "acme_malloc",
            "je_acme",
            "mi_malloc_acme",
            "operator newacme",
            "",
        ];
        for name in names {
            assert_eq!(kept(name), None, "{name}");
        }
        // Whatever is kept of a name has nothing of what stands between brackets.
        for name in
            ["std::acme<", "std::a(acme)", "std::(acme)::b<c>", "core::a[acme]", "std::operator acme", "std::a, acme"]
        {
            assert!(
                kept(name).is_none_or(|kept| !kept.contains("acme") || name == "std::acme<"),
                "{name}: {:?}",
                kept(name)
            );
        }
    }

    #[test]
    fn modules_of_the_system_stay() {
        for path in
            ["/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "[vdso]", "", "/lib/libm-2.31.so"]
        {
            assert_eq!(module(path).as_deref(), Some(path));
        }
        assert_eq!(module("/home/ann/sdk/libstdc++.so.6.0.30").as_deref(), Some("/libstdc++.so.6.0.30"));
        assert_eq!(module("/home/ann/.cache/mpp/0123/libmimalloc_pprof.so").as_deref(), Some("/libmimalloc_pprof.so"));
        for path in
            ["/opt/acme/server", "/usr/lib/libacme.so", "[anon:acme]", "/lib/ld-linux-acme.so", "/lib/libc-acme.so"]
        {
            assert_eq!(module(path), None, "{path}");
        }
    }

    #[test]
    fn sources_of_standard_libraries_stay_without_their_folder() {
        let rust = "/home/ann/.rustup/toolchains/stable/lib/rustlib/src/rust/library/alloc/src/vec/mod.rs";
        assert_eq!(source(rust).as_deref(), Some("/rustc/library/alloc/src/vec/mod.rs"));
        assert_eq!(source("/rustc/0123abcd/library/core/src/a.rs").as_deref(), Some("/rustc/library/core/src/a.rs"));
        let gcc = "/opt/acme/gcc/include/c++/12.2.0/bits/stl_vector.h";
        assert_eq!(source(gcc).as_deref(), Some("/usr/include/c++/12.2.0/bits/stl_vector.h"));
        for path in
            ["/src/acme/a.c", "/acme/library/a.rs", "/acme/include/c++/acme.h", "a.c", "", "/include/c++/12/../acme"]
        {
            assert_eq!(source(path), None, "{path}");
        }
    }
}
