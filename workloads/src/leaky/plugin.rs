//! Sites in a shared library that is loaded with `dlopen` while the program runs, and stays loaded.

use std::alloc::Layout;
use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::LeakyError;
use super::block::Made;
use super::plugin_abi::{ENTRY, Interface, PluginBlock, VERSION};

/// The file name of the plugin that is built beside `leaky`.
pub const FILE_NAME: &str = "libleaky_plugin.so";

/// Sites are plain functions, so the one plugin of the process is a global.
static LOADED: OnceLock<&'static Interface> = OnceLock::new();

/// A loaded plugin. It is never unloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    path: PathBuf,
}

impl Plugin {
    /// Loads the plugin at `path`.
    ///
    /// # Errors
    /// When the dynamic linker refuses the file, or it is not a plugin of this version.
    pub fn load(path: &Path) -> Result<Self, LeakyError> {
        let refuse = |reason: String| LeakyError::Plugin { path: path.to_path_buf(), reason };
        let name =
            CString::new(path.as_os_str().as_bytes()).map_err(|_| refuse("the path holds a zero byte".into()))?;
        // SAFETY: the name is a C string. Loading runs the constructors of a library the user chose to run.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(refuse(linker_error()));
        }
        // SAFETY: the handle is open, and stays so.
        let entry = unsafe { libc::dlsym(handle, ENTRY.as_ptr()) };
        if entry.is_null() {
            return Err(refuse(linker_error()));
        }
        // SAFETY: ENTRY says that a function of this name has this type.
        let entry: extern "C" fn() -> *const c_void = unsafe { std::mem::transmute(entry) };
        // SAFETY: ENTRY says what the function returns, and the library is never unloaded.
        unsafe { Self::from_interface(entry(), path) }
    }

    /// Uses a plugin that is in the process already; `path` is only what is printed.
    ///
    /// # Errors
    /// When it is of another version.
    ///
    /// # Safety
    /// `interface` points to an `Interface` of `plugin_abi.rs`, or at least to its version, for the rest of the process.
    pub unsafe fn from_interface(interface: *const c_void, path: &Path) -> Result<Self, LeakyError> {
        // SAFETY: as the caller promises; every version starts with the version.
        let version = unsafe { interface.cast::<u32>().read() };
        if version != VERSION {
            let reason = format!("its interface has version {version}, expected {VERSION}; build it again");
            return Err(LeakyError::Plugin { path: path.to_path_buf(), reason });
        }
        // SAFETY: as the caller promises, and the version fits.
        LOADED.get_or_init(|| unsafe { &*interface.cast::<Interface>() });
        Ok(Self { path: path.to_path_buf() })
    }

    /// Finds the plugin where cargo puts it: beside the running executable, or in `deps` there.
    #[must_use]
    pub fn find() -> Option<PathBuf> {
        let executable = std::env::current_exe().ok()?;
        let folder = executable.parent()?;
        [folder.join(FILE_NAME), folder.join("deps").join(FILE_NAME)].into_iter().find(|path| path.is_file())
    }

    /// Where the plugin was loaded from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

pub(super) fn make_record(seed: u64) -> Made {
    take((interface().make_record)(seed))
}

pub(super) fn make_list(seed: u64) -> Made {
    take((interface().make_list)(seed))
}

fn interface() -> &'static Interface {
    LOADED.get().expect("plugin sites run only with a plugin")
}

fn take(block: PluginBlock) -> Made {
    let layout = Layout::from_size_align(block.size, block.align).expect("the plugin describes a real block");
    // SAFETY: the interface gives us a block of malloc that nobody else owns, and the plugin is never unloaded. Rust's
    // System allocator, which will free it, is malloc too.
    unsafe { Made::from_raw(block.memory, layout, block.place()) }
}

fn linker_error() -> String {
    // SAFETY: dlerror returns null or a C string that lives until the next call of this thread.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return "the dynamic linker gave no reason".into();
    }
    // SAFETY: not null, see above.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_plugin_is_refused_with_its_name() {
        let error = Plugin::load(Path::new("/nowhere/plugin.so")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/plugin.so") && error.contains("cannot open"), "{error}");
        let error = Plugin::load(Path::new("libc.so.6")).unwrap_err().to_string();
        assert!(error.contains("leaky_plugin_interface"), "{error}");
        assert!(Plugin::load(Path::new("a\0b")).is_err());
    }

    #[test]
    fn another_version_is_refused() {
        let version = 99u32;
        // SAFETY: a version is all that is read of a plugin of another version.
        let error = unsafe { Plugin::from_interface((&raw const version).cast(), Path::new("x")) }.unwrap_err();
        assert!(error.to_string().contains("version 99"), "{error}");
    }
}
