//! The file as it is. Keys that are not named here are skipped.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The only version that there is.
pub(super) const VERSION: u64 = 2;

#[derive(Deserialize)]
pub(super) struct File {
    #[serde(rename = "dhatFileVersion", deserialize_with = "version")]
    _version: u64,
    /// The file has what blocks lived through: it is about a heap.
    pub(super) bklt: bool,
    /// Unit of time.
    #[serde(default)]
    pub(super) tu: String,
    #[serde(default)]
    pub(super) cmd: String,
    #[serde(default)]
    pub(super) pid: Option<u64>,
    /// When the process held most.
    #[serde(default)]
    pub(super) tg: Option<u64>,
    /// When the recording ended.
    #[serde(default)]
    pub(super) te: Option<u64>,
    /// mimalloc-pprof 1.1 and ours.
    #[serde(default, rename = "mi_dhat_incomplete")]
    pub(super) incomplete: bool,
    pub(super) pps: Vec<Point>,
    pub(super) ftbl: Vec<String>,
    /// Ours.
    #[serde(default)]
    pub(super) mpp: Option<Own>,
}

/// A program point.
#[derive(Deserialize)]
pub(super) struct Point {
    pub(super) tb: u64,
    pub(super) tbk: u64,
    /// How long the blocks lived, added up.
    #[serde(default)]
    pub(super) tl: u64,
    #[serde(default)]
    pub(super) gb: u64,
    #[serde(default)]
    pub(super) gbk: u64,
    #[serde(default)]
    pub(super) eb: u64,
    #[serde(default)]
    pub(super) ebk: u64,
    pub(super) fs: Vec<u32>,
}

/// What our own library adds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Own {
    #[serde(default)]
    pub(super) without_stack: u64,
    #[serde(default)]
    pub(super) lost: u64,
    #[serde(default)]
    pub(super) unknown: u64,
    #[serde(default)]
    pub(super) ppid: Option<u64>,
    /// Where the memory of the process was, by names as in the comments of heap dumps.
    #[serde(default)]
    pub(super) facts: BTreeMap<String, u64>,
    #[serde(default)]
    pub(super) modules: Vec<OwnModule>,
}

/// An executable mapping; numbers are in hex.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OwnModule {
    pub(super) start: String,
    pub(super) end: String,
    pub(super) offset: String,
    pub(super) path: String,
    #[serde(default)]
    pub(super) build_id: String,
}

fn version<'de, D: serde::Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    match u64::deserialize(input)? {
        VERSION => Ok(VERSION),
        other => Err(serde::de::Error::custom(format_args!("version {other}, and only version {VERSION} is known"))),
    }
}
