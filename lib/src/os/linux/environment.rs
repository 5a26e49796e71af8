//! Environment variables, read without `getenv` (which programs replace, and whose replacement may allocate).

use super::libc;
use super::syscall::syscall;
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicPtr, Ordering::*};

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// The environment as the loader handed it to a constructor; `environ` is not yet set in the first calls of a process.
static HANDED_OVER: AtomicPtr<*const c_char> = AtomicPtr::new(core::ptr::null_mut());

/// Remember the third argument of a constructor.
pub(crate) fn set_environment(environment: *const *const c_char) {
    HANDED_OVER.store(environment.cast_mut(), Release);
}

fn variables() -> *const *const c_char {
    // SAFETY: `environ` is a plain pointer variable of the C library; it is read once.
    let now = unsafe { (&raw const environ).read_volatile() };
    if now.is_null() { HANDED_OVER.load(Acquire).cast_const() } else { now }
}

/// False in the first moments of a process, when nobody has told us the environment yet.
pub(crate) fn environment_is_known() -> bool {
    !variables().is_null()
}

/// The process runs with more rights than its user: nothing of the user's environment may be trusted.
pub(crate) fn is_privileged() -> bool {
    libc::getauxval(libc::AT_SECURE) != 0
}

/// The value of a variable, as bytes. The slice is valid until the program changes its environment: copy what must last.
pub(crate) fn variable(name: &[u8]) -> Option<&'static [u8]> {
    let mut at = variables();
    if at.is_null() {
        return None;
    }
    // SAFETY: the list ends with a null pointer and its entries are C strings.
    unsafe {
        while !(*at).is_null() {
            let entry = CStr::from_ptr(*at).to_bytes();
            if let Some(rest) = entry.strip_prefix(name)
                && let Some(value) = rest.strip_prefix(b"=")
            {
                return Some(value);
            }
            at = at.add(1);
        }
    }
    None
}

/// The present folder, as an absolute path, in a buffer; `None` when it cannot be told: it was removed, or lies outside of this root.
pub(crate) fn folder_at_start(buffer: &mut [u8]) -> Option<&[u8]> {
    const GETCWD: usize = 79;
    // SAFETY: the kernel writes at most the buffer's length.
    let length = unsafe { syscall(GETCWD, [buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0, 0]) };
    // With the zero at its end.
    let folder = buffer.get(..usize::try_from(length).ok()?.checked_sub(1)?)?;
    (folder.first() == Some(&b'/')).then_some(folder)
}

/// Whether the value of a switch means on, as mimalloc reads its switches.
pub(crate) fn is_true(value: &[u8]) -> bool {
    [b"1".as_slice(), b"true", b"yes", b"on"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches() {
        assert!(is_true(b"1") && is_true(b"On") && is_true(b"TRUE"));
        assert!(!is_true(b"0") && !is_true(b"") && !is_true(b"2"));
    }

    #[test]
    fn present_folder() {
        use std::os::unix::ffi::OsStrExt;
        let mut buffer = [0; 4096];
        let folder = folder_at_start(&mut buffer).unwrap();
        assert_eq!(folder, std::env::current_dir().unwrap().as_os_str().as_bytes());
        assert!(folder_at_start(&mut [0; 1]).is_none());
    }

    #[test]
    fn variables_are_whole_names() {
        let path = variable(b"PATH").unwrap();
        assert_eq!(std::env::var("PATH").unwrap().as_bytes(), path);
        assert!(variable(b"PAT").is_none() && variable(b"PATHX").is_none());
    }
}
