//! The plugin of `leaky`: a shared library that is loaded while the program runs, and allocates.
//!
//! It allocates by `malloc` like the rest of `leaky`, is never unloaded, and is a module of its own in a profile.

use std::alloc::{Layout, alloc};

// `leaky` compiles the same two files, and uses the other half of each.
#[allow(dead_code)]
#[path = "../../src/leaky/place.rs"]
mod place;
#[allow(dead_code)]
#[path = "../../src/leaky/plugin_abi.rs"]
mod plugin_abi;

use place::{Place, place};
use plugin_abi::{Interface, PluginBlock, VERSION};

/// The entry of the plugin; its type is `plugin_abi::Interface`.
#[unsafe(no_mangle)]
pub extern "C" fn leaky_plugin_interface() -> *const std::ffi::c_void {
    static INTERFACE: Interface = Interface { version: VERSION, make_record: keep_record, make_list: keep_list };
    (&raw const INTERFACE).cast()
}

#[inline(never)]
extern "C" fn keep_record(_seed: u64) -> PluginBlock {
    const RECORD: Layout = Layout::new::<[u64; 80]>();
    // SAFETY: the layout is not empty, and the new block belongs to nobody else.
    let (at, memory) = (place!(), unsafe { alloc(RECORD) });
    PluginBlock::new(memory, RECORD.size(), RECORD.align(), at)
}

#[inline(never)]
extern "C" fn keep_list(seed: u64) -> PluginBlock {
    let (at, mut list) = (place!(), Vec::<u64>::with_capacity(72));
    list.push(seed);
    let list = std::mem::ManuallyDrop::new(list);
    PluginBlock::new(list.as_ptr().cast_mut().cast(), list.capacity() * size_of::<u64>(), align_of::<u64>(), at)
}
