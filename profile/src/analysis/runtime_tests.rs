use super::*;

#[test]
fn modules() {
    use Role::{Allocator, Runtime, User};
    for (file_name, role) in [
        ("libmimalloc_pprof.so", Allocator),
        ("libmimalloc_pprof-0.1.0.so.1", Allocator),
        ("libjemalloc.so.2", Allocator),
        ("libtcmalloc_minimal.so.4", Allocator),
        ("libc.so.6", Runtime),
        ("libc-2.31.so", Runtime),
        ("libcap.so.2", User),
        ("libc-client.so.2007e", User),
        ("ld-linux-x86-64.so.2", Runtime),
        ("ld-2.31.so", Runtime),
        ("ld-musl-x86_64.so.1", Runtime),
        ("ld", User),
        ("libpthread-2.31.so", Runtime),
        ("libstdc++.so.6.0.30", Runtime),
        ("libc++.so.1.0", Runtime),
        ("libc++abi.so.1", Runtime),
        ("libgcc_s.so.1", Runtime),
        ("libm.so.6", Runtime),
        ("libmagic.so.1", User),
        ("libstd-0123456789abcdef.so", Runtime),
        ("libstd-mine.so", User),
        ("[vdso]", Runtime),
        ("[heap]", User),
        ("app", User),
        ("", User),
    ] {
        assert_eq!(role_of_module(file_name), role, "{file_name}");
    }
}

#[test]
fn rust_functions() {
    use Role::{Allocator, Runtime, User};
    for (name, role) in [
        ("alloc::vec::Vec<T,A>::push", Runtime),
        ("alloc::raw_vec::finish_grow", Runtime),
        ("core::ops::function::FnOnce::call_once{{vtable.shim}}", Runtime),
        ("core::ptr::drop_in_place<app::Foo>", Runtime),
        ("std::rt::lang_start::{{closure}}", Runtime),
        ("std[1f2e3d]::rt::lang_start", Runtime),
        ("gimli::read::Dwarf::load", User),
        ("hashbrown::raw::RawTable<T,A>::reserve_rehash", Runtime),
        ("alloc::slice::<impl [T]>::to_vec", Runtime),
        ("<alloc::vec::Vec<u8>>::with_capacity", Runtime),
        ("<alloc::vec::Vec<app::X> as core::clone::Clone>::clone", Runtime),
        ("<alloc::vec::Vec<app::X> as core::convert::From<&[app::X]>>::from", Runtime),
        ("<alloc::string::String as core::convert::From<app::Name>>::from", User),
        ("<alloc::string::String as core::convert::From<&str>>::from", Runtime),
        ("<app::Foo as core::clone::Clone>::clone", User),
        ("<&app::Foo as core::fmt::Debug>::fmt", User),
        ("<[app::Foo] as alloc::borrow::ToOwned>::to_owned", User),
        ("<alloc::vec::Vec<u8> as app::Encode>::encode", User),
        ("<T as core::convert::Into<U>>::into", Runtime),
        ("<T as app::Encode>::encode", User),
        ("<str as alloc::string::ToString>::to_string", Runtime),
        ("<core::iter::adapters::map::Map<I,F> as core::iter::traits::iterator::Iterator>::fold", Runtime),
        ("<app::main::{closure#0} as core::ops::function::FnOnce<()>>::call_once", User),
        ("<alloc::boxed::Box<dyn app::Job> as core::ops::function::FnOnce<()>>::call_once", Runtime),
        ("<F as T>::f", User),
        ("app::core::vec::grow", User),
        ("app::main::{{closure}}", User),
        ("allocator::run", User),
        ("core", User),
        ("__rust_alloc", Allocator),
        ("__rust_alloc_zeroed", Allocator),
        ("__rustc::__rdl_alloc", Allocator),
        ("__rg_realloc", Allocator),
        ("mimalloc_pprof::heap::malloc_slow", Allocator),
        ("<mimalloc_pprof::MiMalloc as core::alloc::global::GlobalAlloc>::alloc", Allocator),
        ("<app::Counting as core::alloc::global::GlobalAlloc>::alloc", Allocator),
    ] {
        assert_eq!(role_of_function(name), role, "{name}");
    }
}

#[test]
fn c_and_cxx_functions() {
    use Role::{Allocator, Runtime, User};
    for (name, role) in [
        ("malloc", Allocator),
        ("malloc@plt", Allocator),
        ("_int_malloc.part.0", Allocator),
        ("__libc_malloc", Allocator),
        ("operator new(unsigned long)", Allocator),
        ("void* operator new[](unsigned long, std::nothrow_t const&)", Allocator),
        ("app::Pool::operator new(unsigned long)", User),
        ("mi_malloc", Allocator),
        ("mi_heap_malloc_aligned", Allocator),
        ("strdup", Runtime),
        ("g_malloc0", Runtime),
        ("xmalloc", User),
        ("mallocator", User),
        ("g_hash_table_insert", User),
        ("_start", Runtime),
        ("main", User),
        ("std::vector<app::X, std::allocator<app::X> >::push_back(app::X const&)", Runtime),
        ("void std::vector<int>::_M_realloc_insert<int const&>(int const&)", Runtime),
        ("std::__1::basic_string<char>::reserve(unsigned long)", Runtime),
        ("__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)", Runtime),
        ("std::_Function_handler<void (), main::{lambda()#1}>::_M_invoke(std::_Any_data const&)", Runtime),
        ("std::string app::name<int>(int)", User),
        ("void app::f<std::vector<int> >(std::vector<int>)", User),
        ("main::{lambda()#1}::operator()() const", User),
        ("app::List::operator std::string() const", User),
        ("std::thread::f(int) const::{lambda()#2}::operator()() const", Runtime),
        ("core::Engine::load(int)", User),
        ("alloc::Arena::grow(unsigned long)", User),
        ("stdx::f()", User),
        ("", User),
    ] {
        assert_eq!(role_of_function(name), role, "{name}");
    }
}

#[test]
fn the_module_decides_before_the_name_and_the_source_after_it() {
    let frame = Frame::named("app::main");
    assert_eq!(role(Some("libc.so.6"), Some(&frame)), Role::Runtime);
    assert_eq!(role(Some("app"), Some(&frame)), Role::User);
    assert_eq!(role(None, Some(&frame)), Role::User);
    assert_eq!(role(None, None), Role::User);
    let bare = Frame::named("alloc_impl").at("/rustc/0123/library/alloc/src/alloc.rs", 7);
    assert_eq!(role(Some("app"), Some(&bare)), Role::Runtime);
    let map = Frame::named("do_alloc").at("/rust/deps/hashbrown-0.16.1/src/raw/alloc.rs", 19);
    assert_eq!(role(Some("app"), Some(&map)), Role::Runtime);
    let own = Frame::named("do_alloc").at("/home/me/.cargo/registry/src/x/hashbrown-0.16.1/src/raw/alloc.rs", 19);
    assert_eq!(role(Some("app"), Some(&own)), Role::User);
    let header = Frame::named("construct").at("/usr/include/c++/12/bits/alloc_traits.h", 7);
    assert_eq!(role(Some("app"), Some(&header)), Role::Runtime);
}

#[test]
fn doors_to_memory_tell_nothing() {
    for name in ["Perl_safesysrealloc", "_PyObject_Malloc.constprop.0", "sqlite3DbMallocRawNN", "CRYPTO_malloc"] {
        assert_eq!(role_of_function(name), Role::Runtime, "{name}");
    }
    for name in ["Perl_sv_grow", "PyDict_New", "xmalloc", "sqlite3_step", "my_CRYPTO_malloc"] {
        assert_eq!(role_of_function(name), Role::User, "{name}");
    }
}
