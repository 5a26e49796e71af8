//! The interface between `leaky` and its plugin. Both compile this file.

use super::place::Place;

/// The version of the types below. `leaky` refuses a plugin with another one.
pub(crate) const VERSION: u32 = 1;

/// The name of the function that returns a `*const Interface` which stays valid while the plugin is loaded.
pub(crate) const ENTRY: &std::ffi::CStr = c"leaky_plugin_interface";

/// The sites of a plugin.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Interface {
    /// [`VERSION`] as the plugin was compiled with.
    pub(crate) version: u32,
    /// Allocates a block of 640 bytes through `alloc`.
    pub(crate) make_record: extern "C" fn(seed: u64) -> PluginBlock,
    /// Allocates a block of 576 bytes through a vector.
    pub(crate) make_list: extern "C" fn(seed: u64) -> PluginBlock,
}

/// A block that a plugin allocated by `malloc`, owned by the caller.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PluginBlock {
    /// The block, or null.
    pub(crate) memory: *mut u8,
    /// Its size in bytes.
    pub(crate) size: usize,
    /// The alignment that was asked for.
    pub(crate) align: usize,
    /// [`Place::marker`] of the place that allocated it.
    pub(crate) marker: Text,
    /// The file of that place.
    pub(crate) file: Text,
    /// The line of that place.
    pub(crate) line: u32,
}

impl PluginBlock {
    /// Describes a block that was allocated at `at`.
    pub(crate) fn new(memory: *mut u8, size: usize, align: usize, at: Place) -> Self {
        Self { memory, size, align, marker: Text::new(at.marker), file: Text::new(at.file), line: at.line }
    }

    /// The place that allocated the block.
    ///
    /// # Safety
    /// The block came from [`PluginBlock::new`], in a plugin that is never unloaded.
    pub(crate) unsafe fn place(&self) -> Place {
        // SAFETY: as the caller promises, both texts are constants of a plugin that stays.
        unsafe { Place { marker: self.marker.get(), file: self.file.get(), line: self.line } }
    }
}

/// A `&'static str` with a layout that does not depend on the compiler.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Text {
    start: *const u8,
    length: usize,
}

impl Text {
    fn new(text: &'static str) -> Self {
        Self { start: text.as_ptr(), length: text.len() }
    }

    /// # Safety
    /// The text was made by [`Text::new`], in a plugin that is never unloaded.
    unsafe fn get(&self) -> &'static str {
        // SAFETY: as the caller promises, these are the parts of a &'static str.
        unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(self.start, self.length)) }
    }
}
