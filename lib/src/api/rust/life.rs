//! The end of a program that the allocator is a part of: what was asked for in the environment is written. The preload
//! library has the same of its own; nothing is written twice. Nobody need be told of the beginning: the first allocation is one.

use crate::api::life;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: unsafe extern "C" fn() = end;

unsafe extern "C" fn end() {
    life::end();
}
