//! What a bundle says about itself.

use serde::{Deserialize, Serialize};

/// What `schema` says.
pub const SCHEMA: &str = "mpp-bundle";

/// The version of the manifest: raised when a reader of the old one would misread the new one.
pub const SCHEMA_VERSION: u32 = 1;

/// The content of the first file. Everything in it comes from the input: escape it before it is printed, and do not take
/// its names for paths.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The version of the program that wrote the bundle.
    pub mpp_version: String,
    /// Names of source files and lines were left out.
    pub source_stripped: bool,
    /// Names are pseudonyms.
    pub anonymized: bool,
    /// The process that was started, if a recording was packed and tells it.
    #[serde(default)]
    pub pid: Option<u32>,
    /// The index of the recording, if one was packed.
    #[serde(default)]
    pub recording: Option<String>,
    /// The profiles.
    #[serde(default)]
    pub profiles: Vec<BundledProfile>,
    /// The timelines.
    #[serde(default)]
    pub timelines: Vec<BundledTimeline>,
    /// The files that addresses of the profiles fall in.
    #[serde(default)]
    pub modules: Vec<BundledModule>,
}

/// A profile in a bundle.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct BundledProfile {
    /// Its name in the bundle.
    pub file: String,
    /// The process, if a recording was packed.
    #[serde(default)]
    pub pid: Option<u32>,
    /// Whether this is the one to show of its process; the others are the same in another form, or earlier.
    pub shown: bool,
    /// Estimated live bytes.
    pub live_bytes: u64,
}

/// A timeline in a bundle.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct BundledTimeline {
    /// Its name in the bundle.
    pub file: String,
    /// The process.
    pub pid: u32,
}

/// Stored symbols in a bundle.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct BundledModule {
    /// Their name in the bundle.
    pub file: String,
    /// The path of the file that they are about.
    pub path: String,
    /// Its build id in hex, if it is known.
    #[serde(default)]
    pub build_id: Option<String>,
    /// Where they came from, in one word.
    pub source: String,
    /// How many distinct addresses have a source line.
    pub with_lines: u64,
    /// How many have a function name only.
    pub with_name: u64,
    /// How many have neither.
    pub unresolved: u64,
}

impl Manifest {
    /// One that has nothing yet.
    pub fn new(mpp_version: &str) -> Self {
        Manifest {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            mpp_version: mpp_version.to_owned(),
            source_stripped: false,
            anonymized: false,
            pid: None,
            recording: None,
            profiles: Vec::new(),
            timelines: Vec::new(),
            modules: Vec::new(),
        }
    }
}
