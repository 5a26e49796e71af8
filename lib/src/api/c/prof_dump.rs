//! Dumps of the profiler: into files, into functions; and what is mapped where.

use crate::observe::dump::{self, Format};
use crate::observe::modules::{Map, without_deleted};
use crate::observe::output::Failure;
use crate::observe::path::Path;
use crate::os::libc;
use core::ffi::{CStr, c_char, c_void};

/// Gets a dump in pieces. Returns normally; may allocate.
pub type DumpFn = unsafe extern "C" fn(arg: *mut c_void, text: *const c_char, length: usize);
/// Looks at a module; false ends the visit.
pub type ModuleVisitor = unsafe extern "C" fn(module: *const ModuleInfo, arg: *mut c_void) -> bool;

/// `mi_prof_module_info_t`.
#[repr(C)]
pub struct ModuleInfo {
    path: *const c_char,
    base: usize,
    size: usize,
}

/// `mi_prof_dump`.
///
/// # Safety
/// `path` is a C string or null.
pub unsafe fn prof_dump(path: *const c_char) -> bool {
    // SAFETY: as for this function.
    unsafe { into_file(path, Format::Text) }
}

/// `mi_prof_dump_proto`.
///
/// # Safety
/// As [`prof_dump`].
pub unsafe fn prof_dump_proto(path: *const c_char) -> bool {
    // SAFETY: as for this function.
    unsafe { into_file(path, Format::Proto) }
}

/// `mi_prof_dump_writer`.
///
/// # Safety
/// The function may be called with the argument.
pub unsafe fn prof_dump_writer(function: Option<DumpFn>, arg: *mut c_void) -> bool {
    // SAFETY: as for this function.
    unsafe { into_function(function, arg, Format::Text) }
}

/// `mi_prof_dump_proto_writer`.
///
/// # Safety
/// As [`prof_dump_writer`].
pub unsafe fn prof_dump_proto_writer(function: Option<DumpFn>, arg: *mut c_void) -> bool {
    // SAFETY: as for this function.
    unsafe { into_function(function, arg, Format::Proto) }
}

unsafe fn into_file(path: *const c_char, format: Format) -> bool {
    if path.is_null() {
        return told(Err(libc::EINVAL.into()));
    }
    let mut file = Path::EMPTY;
    // SAFETY: a C string.
    let fits = file.push(unsafe { CStr::from_ptr(path) }.to_bytes());
    told(if fits { dump::write(&file, format) } else { Err(libc::ENAMETOOLONG.into()) })
}

unsafe fn into_function(function: Option<DumpFn>, arg: *mut c_void, format: Format) -> bool {
    let Some(function) = function else { return told(Err(libc::EINVAL.into())) };
    let mut sink = |bytes: &[u8]| {
        // SAFETY: the caller's word.
        unsafe { function(arg, bytes.as_ptr().cast(), bytes.len()) };
        true
    };
    told(dump::write_to(&mut sink, format))
}

/// True, or false and the cause in `errno`.
fn told(result: Result<(), Failure>) -> bool {
    if let Err(why) = result {
        libc::set_errno(why.cause);
    }
    result.is_ok()
}

/// `mi_prof_modules_visit`: every file that has code in the process, in the order of addresses.
///
/// # Safety
/// The function may be called with the argument.
pub unsafe fn prof_modules_visit(function: Option<ModuleVisitor>, arg: *mut c_void) -> bool {
    let Some(function) = function else { return told(Err(libc::EINVAL.into())) };
    let map = match Map::read() {
        Ok(map) => map,
        Err(why) => return told(Err(why)),
    };
    let visit = |path: &[u8], range: &core::ops::Range<usize>| {
        let mut name = Path::EMPTY;
        let _ = name.push(without_deleted(path));
        let info = ModuleInfo { path: name.as_c_str().as_ptr(), base: range.start, size: range.len() };
        // SAFETY: the caller's word.
        unsafe { function(&raw const info, arg) }
    };
    // Mappings of one file that follow each other are one module, if any of them is code.
    let mut module: Option<(&[u8], core::ops::Range<usize>, bool)> = None;
    for mapping in map.mappings().filter(|mapping| !mapping.path.is_empty()) {
        match &mut module {
            Some((path, range, code)) if *path == mapping.path && range.end == mapping.range.start => {
                range.end = mapping.range.end;
                *code |= mapping.executable;
                continue;
            }
            Some((path, range, true)) if !visit(path, range) => return false,
            _ => module = Some((mapping.path, mapping.range, mapping.executable)),
        }
    }
    module.is_none_or(|(path, range, code)| !code || visit(path, &range))
}
