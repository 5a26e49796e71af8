//! What can be asked for: the kinds of files, and what they are called in addresses and in the cache.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::cache::MAX_NAME;

/// A file that belongs to a build id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DebuginfodFile {
    /// An ELF file with the debug information: a separate debug file, or the program itself.
    Debuginfo,
    /// The program or library.
    Executable,
    /// A source file by its absolute path in the debug information: that of the compilation directory, then what the
    /// line table says, with `..` in it if there is.
    Source(PathBuf),
}

impl DebuginfodFile {
    /// The address of the file on the server at `base`.
    pub(super) fn url(&self, base: &str, id: &str) -> String {
        let base = base.trim_end_matches('/');
        match self {
            DebuginfodFile::Debuginfo => format!("{base}/buildid/{id}/debuginfo"),
            DebuginfodFile::Executable => format!("{base}/buildid/{id}/executable"),
            DebuginfodFile::Source(path) => {
                let mut url = format!("{base}/buildid/{id}/source");
                let path = path.as_os_str().as_bytes();
                if path.first() != Some(&b'/') {
                    url.push('/');
                }
                for &byte in path {
                    // Everything else could mean something in an address.
                    if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
                        url.push(char::from(byte));
                    } else {
                        url.push_str(&format!("%{byte:02x}"));
                    }
                }
                url
            }
        }
    }

    /// Its name in the folder of the build id. For source files it is the one that elfutils gives them up to 0.191,
    /// as long as that fits into a file name; newer versions have another one, which is not documented.
    pub(super) fn cache_name(&self) -> Vec<u8> {
        let path = match self {
            DebuginfodFile::Debuginfo => return b"debuginfo".to_vec(),
            DebuginfodFile::Executable => return b"executable".to_vec(),
            DebuginfodFile::Source(path) => path.as_os_str().as_bytes(),
        };
        let mut name = b"source".to_vec();
        for &byte in path {
            match byte {
                b'/' => name.extend(b"##"),
                b'#' => name.extend(b"#_"),
                byte => name.push(byte),
            }
        }
        if name.len() <= MAX_NAME && !name.contains(&0) {
            return name;
        }
        // FNV-1a over all of the path, and its end for people to know it by.
        let hash = path
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let end: Vec<u8> = name[name.len().saturating_sub(100)..].iter().copied().filter(|&byte| byte != 0).collect();
        [b"source-".as_slice(), format!("{hash:016x}-").as_bytes(), &end].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::DebuginfodFile::{Debuginfo, Executable, Source};
    use std::path::PathBuf;

    #[test]
    fn addresses() {
        assert_eq!(Debuginfo.url("http://h:1/x/", "ab"), "http://h:1/x/buildid/ab/debuginfo");
        assert_eq!(Executable.url("http://h", "ab"), "http://h/buildid/ab/executable");
        let url = Source("/a/../b c?#%/é.c".into()).url("http://h", "ab");
        assert_eq!(url, "http://h/buildid/ab/source/a/../b%20c%3f%23%25/%c3%a9.c");
        assert_eq!(Source("a.c".into()).url("http://h", "ab"), "http://h/buildid/ab/source/a.c");
    }

    #[test]
    fn names_in_the_cache_are_single_short_and_different() {
        let name = |path: &str| Source(PathBuf::from(path)).cache_name();
        // As elfutils 0.188 names them.
        assert_eq!(name("/tmp/fx/../a#b.c"), b"source##tmp##fx##..##a#_b.c");
        let long = "/x".repeat(3000);
        for path in [&long, &format!("/y{long}"), "/a\0b", ".."] {
            let name = name(path);
            assert!(name.len() <= 200 && !name.contains(&b'/') && !name.contains(&0), "{name:?}");
            assert!(name.starts_with(b"source"));
        }
        assert_ne!(name(&format!("/1{long}")), name(&format!("/2{long}")));
    }
}
