//! Which frames are not the user's own code: the allocator, the C library, and the C++ and Rust standard libraries.
//!
//! Three things are looked at: the file name of the module, the demangled name of the function, and the source file. The
//! rules are in the tables at the top. They err towards "user": a runtime function too many in a report is a nuisance, a
//! user function too few is a wrong report.

use super::symbol_name::{SymbolName, first_segment, root_of_type, split_impl};
use crate::model::Frame;

/// What kind of code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The memory allocator or its profiler.
    Allocator,
    /// The C library, the loader, or the C++ or Rust standard library.
    Runtime,
    /// Everything else.
    User,
}

/// Shared libraries by the start of their file name. What follows must be `.so`, with or without a version before or
/// after it, so that `libm` does not mean `libmagic`, nor `ld` the linker; a rule that ends in `*` may be followed by
/// anything, one in brackets by nothing.
const MODULES: &[(&str, Role)] = &[
    ("libmimalloc*", Role::Allocator),
    ("libjemalloc*", Role::Allocator),
    ("libtcmalloc*", Role::Allocator),
    ("libsnmallocshim*", Role::Allocator),
    ("libhardened_malloc*", Role::Allocator),
    ("vgpreload_*", Role::Allocator),
    ("libasan", Role::Allocator),
    ("libc", Role::Runtime),
    ("libc.musl-*", Role::Runtime),
    ("ld", Role::Runtime),
    ("ld-linux*", Role::Runtime),
    ("ld-musl-*", Role::Runtime),
    ("ld64", Role::Runtime),
    ("libpthread", Role::Runtime),
    ("libdl", Role::Runtime),
    ("libm", Role::Runtime),
    ("libmvec", Role::Runtime),
    ("librt", Role::Runtime),
    ("libresolv", Role::Runtime),
    ("libstdc++", Role::Runtime),
    ("libc++", Role::Runtime),
    ("libc++abi", Role::Runtime),
    ("libsupc++", Role::Runtime),
    ("libgcc_s", Role::Runtime),
    ("libunwind", Role::Runtime),
    ("linux-vdso", Role::Runtime),
    ("[vdso]", Role::Runtime),
    ("[vsyscall]", Role::Runtime),
];

/// Crates whose functions and types are Rust's runtime. Those that the standard library uses inside but programs also
/// use on their own (`gimli`, `object`…) are not among them, except for `hashbrown`, which is `HashMap`. Only applied to names in Rust's form, so that a C++ namespace
/// `core` or `alloc` stays the user's.
const RUST_CRATES: &[&str] = &[
    "alloc",
    "compiler_builtins",
    "core",
    "hashbrown",
    "panic_abort",
    "panic_unwind",
    "proc_macro",
    "rustc_demangle",
    "std",
    "std_detect",
    "unwind",
];

/// Rust crates that are the allocator.
const RUST_ALLOCATORS: &[&str] =
    &["mimalloc_pprof", "mimalloc", "libmimalloc_sys", "tikv_jemallocator", "jemallocator"];

/// C++ namespaces of the runtime. `std` covers libstdc++'s `std::__cxx11` and libc++'s `std::__1`.
const CXX_NAMESPACES: &[&str] = &["std", "__gnu_cxx", "__cxxabiv1", "__gnu_debug"];

/// Functions without a namespace that allocate, whatever module they are linked into.
const ALLOCATORS: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "cfree",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "_int_malloc",
    "_int_realloc",
    "_int_memalign",
    "_int_free",
    "_mid_memalign",
    "sysmalloc",
    "malloc_consolidate",
    "tcache_init",
];

/// Starts of such names. Those of Rust are its allocator shims.
const ALLOCATOR_PREFIXES: &[&str] = &[
    "__rust_alloc",
    "__rust_dealloc",
    "__rust_realloc",
    "__rust_no_alloc",
    "__rdl_",
    "__rg_",
    "__rustc::__rust_",
    "__rustc::__rdl_",
    "__rustc::__rg_",
    "__libc_malloc",
    "__libc_calloc",
    "__libc_realloc",
    "__libc_memalign",
    "__GI___libc_malloc",
    "__GI___libc_calloc",
    "__GI___libc_realloc",
    "mi_malloc",
    "mi_calloc",
    "mi_zalloc",
    "mi_realloc",
    "mi_rezalloc",
    "mi_recalloc",
    "mi_mallocn",
    "mi_heap_malloc",
    "mi_heap_calloc",
    "mi_heap_zalloc",
    "mi_heap_realloc",
    "mi_new",
    "mi_strdup",
    "mi_strndup",
    "mi_aligned_alloc",
    "mi_posix_memalign",
    "_mi_malloc",
    "_mi_page_malloc",
    "_mi_heap_malloc",
    "_mi_theap_malloc",
    "je_",
    "tc_malloc",
    "tc_calloc",
    "tc_realloc",
    "tc_new",
    "operator new",
    "operator delete",
    "__asan_",
    "__interceptor_malloc",
    "__interceptor_calloc",
    "__interceptor_realloc",
];

/// The doors to memory of interpreters and large C libraries: each of their allocations goes through one of these, which
/// therefore tell nothing. (Perl, Python, Ruby, PHP, Lua, SQLite, OpenSSL, libxml2, FFmpeg.)
const WRAPPERS: &[&str] = &[
    "Perl_safesysmalloc",
    "Perl_safesyscalloc",
    "Perl_safesysrealloc",
    "PyMem_Malloc",
    "PyMem_Calloc",
    "PyMem_Realloc",
    "PyMem_RawMalloc",
    "PyMem_RawCalloc",
    "PyMem_RawRealloc",
    "PyObject_Malloc",
    "PyObject_Calloc",
    "PyObject_Realloc",
    "_PyMem_RawMalloc",
    "_PyMem_RawCalloc",
    "_PyMem_RawRealloc",
    "_PyObject_Malloc",
    "_PyObject_Calloc",
    "_PyObject_Realloc",
    "allocate_from_new_pool",
    "new_arena",
    "pymalloc_alloc",
    "pymalloc_realloc",
    "ruby_xmalloc",
    "ruby_xmalloc2",
    "ruby_xcalloc",
    "ruby_xrealloc",
    "ruby_xrealloc2",
    "objspace_xmalloc0",
    "objspace_xcalloc",
    "objspace_xrealloc",
    "_emalloc",
    "_ecalloc",
    "_erealloc",
    "_safe_emalloc",
    "__zend_malloc",
    "__zend_calloc",
    "__zend_realloc",
    "luaM_malloc_",
    "luaM_realloc_",
    "luaM_growaux_",
    "sqlite3Malloc",
    "sqlite3MallocZero",
    "sqlite3Realloc",
    "sqlite3MemMalloc",
    "sqlite3MemRealloc",
    "sqlite3DbMallocRaw",
    "sqlite3DbMallocRawNN",
    "sqlite3DbMallocZero",
    "sqlite3DbRealloc",
    "sqlite3_malloc",
    "sqlite3_malloc64",
    "sqlite3_realloc64",
    "mallocWithAlarm",
    "dbMallocRawFinish",
    "CRYPTO_malloc",
    "CRYPTO_zalloc",
    "CRYPTO_realloc",
    "CRYPTO_strdup",
    "xmlMemMalloc",
    "xmlMemRealloc",
    "xmlMemStrdup",
    "av_malloc",
    "av_mallocz",
    "av_realloc",
];

/// Functions without a namespace that belong to the C runtime or are thin allocation wrappers of C's and GLib's libraries.
/// Wrappers that programs write for themselves (`xmalloc`) are user code on purpose: they tell one program from another.
const RUNTIME: &[&str] = &[
    "strdup",
    "__strdup",
    "strndup",
    "__strndup",
    "wcsdup",
    "asprintf",
    "vasprintf",
    "g_malloc",
    "g_malloc0",
    "g_malloc_n",
    "g_malloc0_n",
    "g_realloc",
    "g_realloc_n",
    "g_try_malloc",
    "g_try_malloc0",
    "g_try_malloc_n",
    "g_try_malloc0_n",
    "g_try_realloc",
    "g_try_realloc_n",
    "g_aligned_alloc",
    "g_aligned_alloc0",
    "g_slice_alloc",
    "g_slice_alloc0",
    "g_slice_copy",
    "g_strdup",
    "g_strndup",
    "g_memdup",
    "g_memdup2",
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "__libc_csu_init",
    "_dl_start_user",
    "start_thread",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "rust_begin_unwind",
    "rust_panic",
    "__rust_start_panic",
];

/// Rust traits whose implementations are allocators, whoever wrote them.
const ALLOCATOR_TRAITS: &[&str] = &[
    "core::alloc::global::GlobalAlloc",
    "core::alloc::GlobalAlloc",
    "core::alloc::Allocator",
    "alloc::alloc::Allocator",
];

/// What kind of code a frame is, from the file name of its module (not the path) and what is known of the function.
///
/// The module decides first: everything in `libc.so.6` is libc. Then the source file, then the name.
pub fn role(module: Option<&str>, frame: Option<&Frame>) -> Role {
    let by_module = module.map_or(Role::User, role_of_module);
    if by_module != Role::User {
        return by_module;
    }
    let Some(frame) = frame else { return Role::User };
    let by_name = role_of_function(&frame.function);
    match &frame.file {
        Some(file) if by_name == Role::User => role_of_source(file),
        _ => by_name,
    }
}

/// What kind of code a module holds, by its file name. `User` when no rule knows it.
pub fn role_of_module(file_name: &str) -> Role {
    let matches = |rule: &str| match rule.strip_suffix('*') {
        Some(prefix) => file_name.starts_with(prefix),
        None if rule.starts_with('[') => file_name == rule,
        None => file_name.strip_prefix(rule).is_some_and(is_library_ending),
    };
    if is_rust_std(file_name) {
        return Role::Runtime;
    }
    MODULES.iter().find(|(rule, _)| matches(rule)).map_or(Role::User, |&(_, role)| role)
}

/// `.so`, `.so.6`, `-2.31.so`: what may follow the name of a library.
fn is_library_ending(rest: &str) -> bool {
    match rest.strip_prefix('-') {
        Some(version) => version.starts_with(|c: char| c.is_ascii_digit()) && version.contains(".so"),
        None => rest == ".so" || rest.starts_with(".so."),
    }
}

/// The Rust standard library as a shared library: `libstd-<16 hex digits>.so`.
fn is_rust_std(file_name: &str) -> bool {
    let hash = file_name.strip_prefix("libstd-").and_then(|rest| rest.strip_suffix(".so"));
    hash.is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Code whose source lies in a standard library is that library's, whatever the function is called. Needed where debug
/// information has bare names (`{closure#0}`, `alloc_impl`). `/rust/deps/` is where the crates that the standard library
/// is made of (`hashbrown` in its maps) lay when the official toolchains were built; crates of a program lie elsewhere.
fn role_of_source(file: &str) -> Role {
    let rust = (file.starts_with("/rustc/") && file.contains("/library/"))
        || file.contains("/lib/rustlib/src/rust/library/")
        || file.starts_with("/rust/deps/");
    let cxx = file.contains("/include/c++/");
    if rust || cxx { Role::Runtime } else { Role::User }
}

/// What kind of code a function is, by its demangled name. `User` when no rule knows it.
pub fn role_of_function(name: &str) -> Role {
    let SymbolName { path, has_parameters } = SymbolName::parse(name);
    if let Some((self_type, of_trait, _)) = split_impl(path) {
        return role_of_impl(self_type, of_trait);
    }
    if ALLOCATOR_PREFIXES.iter().any(|prefix| path.starts_with(prefix)) {
        return Role::Allocator;
    }
    match first_segment(path) {
        Some(root) if CXX_NAMESPACES.contains(&root) => Role::Runtime,
        Some(_) if has_parameters => Role::User,
        Some(root) => role_of_crate(root),
        None => role_of_c_function(path),
    }
}

fn role_of_crate(name: &str) -> Role {
    match name {
        _ if RUST_ALLOCATORS.contains(&name) => Role::Allocator,
        _ if RUST_CRATES.contains(&name) => Role::Runtime,
        _ => Role::User,
    }
}

/// `<S as T>::f` was written by whoever owns S or T. When either is the user's, so is the code, except that all
/// implementations of allocator traits are allocators.
fn role_of_impl(self_type: &str, of_trait: Option<&str>) -> Role {
    if of_trait.is_some_and(|path| ALLOCATOR_TRAITS.contains(&path)) {
        return Role::Allocator;
    }
    let owner = |text| root_of_type(text).map(role_of_crate);
    match (owner(self_type), of_trait.and_then(owner)) {
        (Some(Role::User), _) | (_, Some(Role::User)) | (None, None) => Role::User,
        (Some(role), _) | (None, Some(role)) => {
            if is_conversion_from_user_type(self_type, of_trait) {
                Role::User
            } else {
                role
            }
        }
    }
}

/// `<alloc::string::String as core::convert::From<app::Name>>` can only have been written by `app`. Unlike with other
/// traits the argument is not merely the element type of the container.
fn is_conversion_from_user_type(self_type: &str, of_trait: Option<&str>) -> bool {
    let argument = of_trait.and_then(|path| path.strip_prefix("core::convert::From<")?.strip_suffix('>'));
    argument.is_some_and(|argument| {
        let user = root_of_type(argument).is_some_and(|root| role_of_crate(root) == Role::User);
        user && !self_type.contains(argument.trim_start_matches(['&', '[', '\'']).trim_end_matches(']'))
    })
}

/// A C function, perhaps with a compiler's suffix (`.part.0`, `.constprop.0`) or a linker's (`@plt`, `@@GLIBC_2.2.5`).
fn role_of_c_function(name: &str) -> Role {
    let bare = name.split(['.', '@']).next().unwrap_or(name);
    match bare {
        _ if ALLOCATORS.contains(&bare) => Role::Allocator,
        _ if RUNTIME.contains(&bare) || WRAPPERS.contains(&bare) => Role::Runtime,
        _ => Role::User,
    }
}

#[cfg(test)]
#[path = "runtime_tests.rs"]
mod tests;
