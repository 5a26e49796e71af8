//! What users touch.
//!
//! * [`global`]: the allocator of a Rust program,
//! * [`rust`]: what Rust programs may call besides; at the root of the crate,
//! * [`c`]: the functions of the C library and of mimalloc's C API, without their names; the preload library
//!   (`lib/preload`) exports them under those.

#[doc(hidden)]
pub mod c;
pub mod global;
#[doc(hidden)]
pub mod life;
#[doc(hidden)]
pub mod rust;
