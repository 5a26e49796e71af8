//! Copies of strings, in blocks of ours. Null for null.

use super::standard::{free, malloc};
use crate::heap::allocate;
use crate::os::{
    self, PATH_MAX,
    libc::{EINVAL, ENOMEM},
};
use core::ffi::{CStr, c_char};

/// A block that holds these bytes and a zero.
fn keep(bytes: &[u8]) -> *mut c_char {
    // SAFETY: the block has a byte more than is copied.
    unsafe {
        let block = malloc(bytes.len() + 1);
        if !block.is_null() {
            block.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            block.add(bytes.len()).write(0);
        }
        block.cast()
    }
}

/// `mi_strdup`, `mi_mbsdup`.
///
/// # Safety
/// A C string or null.
pub unsafe fn strdup(text: *const c_char) -> *mut c_char {
    if text.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: a C string.
    keep(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// `mi_strndup`: at most `most` bytes of it.
///
/// # Safety
/// As [`strdup`], except that a string of `most` bytes needs no end.
pub unsafe fn strndup(text: *const c_char, most: usize) -> *mut c_char {
    if text.is_null() {
        return core::ptr::null_mut();
    }
    let text = text.cast::<u8>();
    // SAFETY: bytes up to the first zero, or `most` of them, can be read.
    unsafe {
        let length = (0..most).find(|&at| text.add(at).read() == 0).unwrap_or(most);
        keep(core::slice::from_raw_parts(text, length))
    }
}

/// `mi_wcsdup`: `wchar_t` has 32 bits on Linux.
///
/// # Safety
/// A string of wide characters that ends with a zero, or null.
pub unsafe fn wcsdup(text: *const u32) -> *mut u32 {
    if text.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: characters up to the first zero can be read, and the block has room for them and for the zero.
    unsafe {
        let length = (0..).find(|&at| text.add(at).read() == 0).unwrap_or(0) + 1;
        let block = malloc(length * size_of::<u32>()).cast::<u32>();
        if !block.is_null() {
            block.copy_from_nonoverlapping(text, length);
        }
        block
    }
}

/// `mi_realpath`: as `realpath`; without a place for the result, that is a block of ours.
///
/// # Safety
/// As `realpath`.
pub unsafe fn realpath(path: *const c_char, resolved: *mut c_char) -> *mut c_char {
    // SAFETY: the caller's promise, and our block has the room that `realpath` needs.
    unsafe {
        if !resolved.is_null() {
            return os::realpath(path, resolved);
        }
        let block = malloc(PATH_MAX);
        if block.is_null() {
            return core::ptr::null_mut();
        }
        let found = os::realpath(path, block.cast());
        if found.is_null() {
            free(block); // which keeps errno
            return found;
        }
        let shorter = allocate::reallocate(block, CStr::from_ptr(found).count_bytes() + 1);
        if shorter.is_null() { found } else { shorter.cast() }
    }
}

/// `mi_dupenv_s`: a copy of an environment variable in `*copy`, its bytes with the zero in `*size`; null and 0 when
/// there is no such variable. 0, `EINVAL` or `ENOMEM`.
///
/// # Safety
/// `copy` can be written or is null, so does `size`; `name` is a C string or null.
pub unsafe fn dupenv_s(copy: *mut *mut c_char, size: *mut usize, name: *const c_char) -> i32 {
    if copy.is_null() || name.is_null() {
        return EINVAL;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let value = os::variable(CStr::from_ptr(name).to_bytes());
        let kept = value.map_or(core::ptr::null_mut(), keep);
        copy.write(kept);
        if !size.is_null() {
            size.write(if kept.is_null() { 0 } else { value.map_or(0, |value| value.len() + 1) });
        }
        if value.is_some() && kept.is_null() { ENOMEM } else { 0 }
    }
}

/// `mi_wdupenv_s`: the environment has no wide characters on Linux.
///
/// # Safety
/// None of the pointers is used.
pub unsafe fn wdupenv_s(_: *mut *mut u32, _: *mut usize, _: *const u32) -> i32 {
    EINVAL
}
