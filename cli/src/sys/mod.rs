//! The calls to the operating system that the standard library lacks. The only files of `mpp` with `unsafe` in them.

pub(crate) mod child;
pub(crate) mod files;
pub(crate) mod signals;
pub(crate) mod terminal;
