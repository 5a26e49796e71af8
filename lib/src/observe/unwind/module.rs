//! Which loaded module an address belongs to, without a lock.
//!
//! A module that a thread has a frame in is not unloaded, so its tables can be read in peace. What is not so safe: a number
//! on the stack that is no return address at all, but looks like one, can lie in a module that another thread unloads in
//! these very 100 ns. Only walks gone astray and [`foreign`](super::foreign) look such numbers up.

use super::arch;
use super::cursor::Window;
use core::mem::MaybeUninit;
use core::ptr::{with_exposed_provenance, without_provenance};

/// The part of a loaded module that unwinding needs.
pub(super) struct Module {
    /// What is mapped around the index. Tables refer to each other by address, and stay in here.
    pub(super) window: Window,
    /// Address of `.eh_frame_hdr`, the sorted index of `.eh_frame`.
    pub(super) index: usize,
}

/// glibc's `struct dl_find_object` for architectures without a data base register (`<dlfcn.h>`, since 2.35).
#[repr(C)]
pub(super) struct Found {
    flags: u64,
    map_start: *mut u8,
    map_end: *mut u8,
    /// `struct link_map` (`<link.h>`). Its first word is what to add to the addresses in the file.
    link_map: *const usize,
    eh_frame: *mut u8,
    reserved: [u64; 7],
}

pub(super) type FindObject = unsafe extern "C" fn(address: *const u8, found: *mut Found) -> i32;

/// False where the C library offers no look-up that is safe inside an allocator.
pub(super) fn can_be_found() -> bool {
    arch::find_object().is_some()
}

/// The module with code at `address`; `None` for code outside all modules (and everywhere without [`can_be_found`]).
///
/// glibc promises that the look-up neither locks nor allocates, and that it is safe in a signal handler.
pub(super) fn find(address: usize) -> Option<Module> {
    let find_object = arch::find_object()?;
    let mut found = MaybeUninit::<Found>::uninit();
    // SAFETY: the function accepts any address and fills the structure when it returns 0.
    let found = unsafe {
        if find_object(without_provenance(address), found.as_mut_ptr()) != 0 {
            return None;
        }
        found.assume_init()
    };
    let index = found.eh_frame.expose_provenance();
    let (mut start, mut end) = (found.map_start.expose_provenance(), found.map_end.expose_provenance());
    if !(start..end).contains(&index) {
        // SAFETY: the loader's own structure, for a module that stays loaded (see above).
        let bias = unsafe { *found.link_map };
        // Without unwind tables the window is empty, so that nothing will be found in it.
        (start, end) = program_segment(index, bias).unwrap_or((index, index));
    }
    // SAFETY: window invariant. The module stays mapped (see above); its tables are read-only and refer to each other and to
    // nothing else unless the file is broken.
    let window = unsafe { Window::new(start, end) };
    Some(Module { window, index })
}

/// `Elf64_Phdr`.
#[repr(C)]
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    address: usize,
    physical: u64,
    file_size: usize,
    memory_size: usize,
    alignment: u64,
}

unsafe extern "C" {
    /// A word of the table that the kernel gave the process. Locks nothing.
    safe fn getauxval(kind: u64) -> usize;
}

const AT_PHDR: u64 = 3;
const AT_PHNUM: u64 = 5;
const PT_LOAD: u32 = 1;

/// Bounds of the program's segment that holds an address.
///
/// The loader tells the bounds of a whole module, but where there are unmapped gaps between its segments only those of the
/// one with the code. It fills gaps in what it maps itself, so such a module is the program, which the kernel maps.
#[cold]
fn program_segment(address: usize, bias: usize) -> Option<(usize, usize)> {
    let headers = with_exposed_provenance::<ProgramHeader>(getauxval(AT_PHDR));
    if headers.is_null() {
        return None;
    }
    // SAFETY: the kernel's word for where the program's headers are, and how many; they are read-only.
    let headers = unsafe { core::slice::from_raw_parts(headers, getauxval(AT_PHNUM)) };
    headers.iter().filter(|header| header.kind == PT_LOAD).find_map(|header| {
        let start = bias.wrapping_add(header.address);
        let is_inside = address.wrapping_sub(start) < header.file_size;
        is_inside.then(|| (start, start.wrapping_add(header.file_size)))
    })
}
