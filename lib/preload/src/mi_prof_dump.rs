//! mimalloc's C API: dumps of the sampled profiler.

use crate::malloc::export;
use allocator::api::c::{self, DumpFn, ModuleVisitor};
use core::ffi::{c_char, c_void};

export! {
    mi_prof_dump(path: *const c_char) -> bool = c::prof_dump;
    mi_prof_dump_writer(function: Option<DumpFn>, arg: *mut c_void) -> bool = c::prof_dump_writer;
    mi_prof_dump_proto(path: *const c_char) -> bool = c::prof_dump_proto;
    mi_prof_dump_proto_writer(function: Option<DumpFn>, arg: *mut c_void) -> bool = c::prof_dump_proto_writer;
    mi_prof_modules_visit(visitor: Option<ModuleVisitor>, arg: *mut c_void) -> bool = c::prof_modules_visit;
}
