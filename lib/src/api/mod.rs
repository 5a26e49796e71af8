//! What users touch.
//!
//! * [`global`]: the allocator of a Rust program,
//! * [`c`]: the functions of the C library and of mimalloc's C API, without their names; the preload library
//!   (`lib/preload`) exports them under those.

#[doc(hidden)]
pub mod c;
pub mod global;
#[doc(hidden)]
pub mod life;
