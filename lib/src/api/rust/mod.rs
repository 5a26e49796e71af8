//! What Rust programs may call besides [`MiMalloc`](crate::MiMalloc): blocks here, [`stats`] beside; the
//! [options](crate::options) are a layer of their own.
//!
//! None of it needs the standard library or the crate `alloc`, and the crate stays without features: text goes into whatever
//! the caller can write to, and `String` is only one such thing.

mod blocks;
mod life;
pub mod stats;

pub use blocks::{collect, expand, good_size, recalloc, rezalloc, usable_size};
