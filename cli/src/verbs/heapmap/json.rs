//! What `--format json` prints. A field keeps its name and meaning as long as `schema_version` stays.

use mpp_profile::analysis::occupancy::Bytes;
use serde::Serialize;

use super::Shown;

#[derive(Debug, Serialize)]
pub(super) struct Data<'a> {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    source: &'a str,
    /// 1 or 2.
    snapshot_version: u32,
    /// Not known in version 1.
    process: Option<u64>,
    /// False: what is pinned is not known.
    has_blocks: bool,
    /// Slabs that are not in the snapshot, or were left out.
    left_out: u64,
    total: DataBytes,
    rows_total: usize,
    rows: Vec<DataRow<'a>>,
}

#[derive(Debug, Serialize)]
struct DataRow<'a> {
    group: &'a str,
    #[serde(flatten)]
    bytes: DataBytes,
}

#[derive(Debug, Serialize)]
struct DataBytes {
    slabs: u64,
    live_blocks: u64,
    room_blocks: u64,
    space_bytes: u64,
    live_bytes: u64,
    pinned_bytes: u64,
    empty_bytes: u64,
    returned_bytes: u64,
    unused_bytes: u64,
    unknown_bytes: u64,
}

impl From<&Bytes> for DataBytes {
    fn from(bytes: &Bytes) -> DataBytes {
        DataBytes {
            slabs: bytes.slabs,
            live_blocks: bytes.blocks,
            room_blocks: bytes.room,
            space_bytes: bytes.space,
            live_bytes: bytes.live,
            pinned_bytes: bytes.pinned,
            empty_bytes: bytes.empty,
            returned_bytes: bytes.returned,
            unused_bytes: bytes.unused,
            unknown_bytes: bytes.unknown,
        }
    }
}

impl<'a> Data<'a> {
    pub(super) fn of(shown: &'a Shown<'_>) -> Data<'a> {
        let more = shown.snapshot.more.as_ref();
        Data {
            schema: "mpp-heapmap",
            schema_version: 1,
            mpp_version: env!("CARGO_PKG_VERSION"),
            source: shown.source,
            snapshot_version: shown.snapshot.version,
            process: more.map(|more| more.pid),
            has_blocks: shown.snapshot.has_blocks,
            left_out: shown.occupancy.odd.saturating_add(more.map_or(0, |more| more.skipped)),
            total: (&shown.occupancy.total).into(),
            rows_total: shown.all,
            rows: shown.rows.iter().map(|row| DataRow { group: &row.label, bytes: (&row.bytes).into() }).collect(),
        }
    }
}
