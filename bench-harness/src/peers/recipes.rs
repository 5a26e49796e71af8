//! How each peer is built into a library to preload, with the optimisation its own build uses or more.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::source::{self, Source};
use super::{Peer, REFERENCE};
use crate::child::{self, End, Job};

/// No compiler takes longer than this.
const LIMIT: Duration = Duration::from_secs(900);

/// Where a library comes from.
#[derive(Clone, Copy, Debug)]
enum From {
    /// Compiled from the source in a crate.
    Crate { manifest: &'static str, name: &'static str, build: fn(&Source, &Path, &Path) -> Result<(), String> },
    /// A library of the distribution, by its file name.
    Distribution(&'static str),
}

/// How one peer is had.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// The peer's name.
    pub name: &'static str,
    from: From,
}

/// All peers but the C library's own allocator, in the order of the tables.
#[must_use]
pub fn recipes() -> Vec<Recipe> {
    let carried =
        |name, manifest, crate_name, build| Recipe { name, from: From::Crate { manifest, name: crate_name, build } };
    vec![
        carried(REFERENCE, "mimalloc", "libmimalloc-sys", mimalloc),
        carried("c-fork", "mimalloc-pprof", "mimalloc-pprof", c_fork),
        carried("jemalloc", "jemalloc", "tikv-jemalloc-sys", jemalloc),
        Recipe { name: "tcmalloc", from: From::Distribution("libtcmalloc_minimal.so.4") },
        carried("snmalloc", "snmalloc", "snmalloc-sys", snmalloc),
        carried("rpmalloc", "rpmalloc", "rpmalloc-sys", rpmalloc),
    ]
}

impl Recipe {
    /// The folder of the manifest and the crate, if it comes from one.
    #[must_use]
    pub fn source(&self) -> Option<(&'static str, &'static str)> {
        match self.from {
            From::Crate { manifest, name, .. } => Some((manifest, name)),
            From::Distribution(_) => None,
        }
    }

    /// Makes the peer, in `folder`, unless it was made before.
    ///
    /// # Errors
    /// A sentence when the source cannot be had or does not compile; the compiler's words are in a file in `folder`.
    pub fn make(&self, folder: &Path) -> Result<Peer, String> {
        match self.from {
            From::Distribution(file) => {
                let library = in_distribution(file).ok_or_else(|| format!("{file} is not installed"))?;
                let target = library.canonicalize().map_err(|error| error.to_string())?;
                Peer::library(self.name, &target, &format!("distribution, {}", file_name(&target)))
            }
            From::Crate { manifest, name, build } => {
                let source = source::fetch(manifest, name)?;
                let library = folder.join(format!("lib{}-{}.so", self.name, source.version));
                if !library.exists() {
                    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
                    // Under another name until it is whole.
                    let unfinished = folder.join(format!("{}.unfinished", self.name));
                    build(&source, &unfinished, &folder.join(format!("{}.log", self.name)))?;
                    std::fs::rename(&unfinished, &library).map_err(|error| error.to_string())?;
                }
                Peer::library(self.name, &library, &format!("crate {name} {}", source.version))
            }
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Looks in the folders where distributions keep libraries.
fn in_distribution(file: &str) -> Option<PathBuf> {
    let triplet = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    [triplet.as_str(), "/usr/lib64", "/usr/lib", "/usr/local/lib"]
        .iter()
        .map(|folder| Path::new(folder).join(file))
        .find(|path| path.exists())
}

/// What all libraries are compiled with: fast, private, and with thread-local variables that need no call.
const SHARED: &[&str] = &[
    "-O3",
    "-DNDEBUG",
    "-fPIC",
    "-shared",
    "-w",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fno-builtin-malloc",
];

/// Runs a command of a build, in `folder` if there is one.
fn tool(program: &str, arguments: Vec<String>, folder: Option<&Path>, log: &Path) -> Result<(), String> {
    let job = Job {
        program: program.into(),
        arguments,
        environment: vec![("CFLAGS".into(), "-O3 -DNDEBUG".into())],
        input: None,
        folder: folder.map(Path::to_owned),
        output: log.to_owned(),
        limit: LIMIT,
        client: None,
    };
    match child::run(&job).map_err(|error| format!("{program}: {error}"))?.end {
        End::Status(0) => Ok(()),
        end => Err(format!("{program} ended with {end:?}{}", child::last_words(log))),
    }
}

/// Compiles `files` with `flags` into `library`.
fn compile(
    compiler: &str,
    flags: &[&str],
    includes: &[PathBuf],
    files: &[PathBuf],
    library: &Path,
    log: &Path,
) -> Result<(), String> {
    let mut arguments: Vec<String> = SHARED.iter().chain(flags).map(|&flag| flag.to_owned()).collect();
    arguments.extend(includes.iter().map(|folder| format!("-I{}", folder.display())));
    arguments.extend(files.iter().map(|file| file.display().to_string()));
    arguments.extend(["-o".to_owned(), library.display().to_string(), "-lpthread".to_owned(), "-ldl".to_owned()]);
    tool(compiler, arguments, None, log)
}

const MIMALLOC: &[&str] =
    &["-std=gnu11", "-DMI_SHARED_LIB", "-DMI_SHARED_LIB_EXPORT", "-DMI_MALLOC_OVERRIDE", "-DMI_BUILD_RELEASE"];

fn mimalloc(source: &Source, library: &Path, log: &Path) -> Result<(), String> {
    let folder = source.folder.join("c_src/mimalloc/v3");
    compile("cc", MIMALLOC, &[folder.join("include"), folder.join("src")], &[folder.join("src/static.c")], library, log)
}

/// The C library of the same name as ours, as it is by default: its instruments are compiled out.
fn c_fork(source: &Source, library: &Path, log: &Path) -> Result<(), String> {
    let folder = source.folder.join("vendor");
    let mut flags = MIMALLOC.to_vec();
    flags.extend(["-DMI_PPROF=0", "-DMI_MEMEVT=0", "-DMI_DIAGNOSTICS=0", "-DMI_DHAT=0", "-DMI_OWNER_GATE=0"]);
    compile("cc", &flags, std::slice::from_ref(&folder), &[folder.join("mimalloc-pprof-amalgamated.c")], library, log)
}

fn rpmalloc(source: &Source, library: &Path, log: &Path) -> Result<(), String> {
    let folder = source.folder.join("rpmalloc/rpmalloc");
    let flags = ["-std=gnu11", "-DENABLE_OVERRIDE=1", "-DENABLE_PRELOAD=1", "-fvisibility=default"];
    compile("cc", &flags, std::slice::from_ref(&folder), &[folder.join("rpmalloc.c")], library, log)
}

fn snmalloc(source: &Source, library: &Path, log: &Path) -> Result<(), String> {
    let folder = source.folder.join("upstream/src");
    let mut flags = vec![
        "-std=c++20",
        "-fno-rtti",
        "-fomit-frame-pointer",
        "-ffunction-sections",
        "-static-libstdc++",
        "-DSNMALLOC_EXPORT=__attribute__((visibility(\"default\")))",
        "-DSNMALLOC_USE_WAIT_ON_ADDRESS=1",
        "-DSNMALLOC_USE_CXX11_THREAD_ATEXIT_DIRECT",
        "-DSNMALLOC_CHECK_LOADS=false",
        "-DSNMALLOC_PAGEID=false",
    ];
    if cfg!(target_arch = "x86_64") {
        flags.extend(["-mcx16", "-mprfchw"]);
    }
    let files = ["malloc.cc", "new.cc"].map(|file| folder.join("snmalloc/override").join(file));
    compile("c++", &flags, std::slice::from_ref(&folder), &files, library, log)
}

/// jemalloc has a configure script and wants to write beside it, so it works on a copy.
fn jemalloc(source: &Source, library: &Path, log: &Path) -> Result<(), String> {
    let copy = library.with_extension("copy");
    let _ = std::fs::remove_dir_all(&copy);
    let path = |path: &Path| path.display().to_string();
    tool("cp", vec!["-r".into(), path(&source.folder.join("jemalloc")), path(&copy)], None, log)?;
    tool("cp", vec![path(&source.folder.join("configure/configure")), path(&copy.join("configure"))], None, log)?;
    // A crate's files are not executable.
    tool(
        "find",
        vec![
            path(&copy),
            "-name".into(),
            "*.sh".into(),
            "-exec".into(),
            "chmod".into(),
            "+x".into(),
            "{}".into(),
            "+".into(),
        ],
        None,
        log,
    )?;
    let configure = ["./configure", "--disable-cxx", "--disable-doc"].map(str::to_owned);
    tool("sh", configure.to_vec(), Some(&copy), log)?;
    tool("make", vec!["-j2".into(), "build_lib_shared".into()], Some(&copy), log)?;
    std::fs::copy(copy.join("lib/libjemalloc.so.2"), library).map_err(|error| format!("libjemalloc.so.2: {error}"))?;
    let _ = std::fs::remove_dir_all(&copy);
    Ok(())
}
