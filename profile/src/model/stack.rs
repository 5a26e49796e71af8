//! Call stacks, and whether they are complete.

use std::fmt;
use std::sync::Arc;

use super::location::LocationId;

/// Index of a [`Stack`] in [`Profile::stacks`](crate::Profile::stacks).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

impl StackId {
    /// The index as the slice index that it is.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One distinct call stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    /// Innermost call first. May be empty: some recorders write samples whose stack they could not walk at all.
    pub locations: Arc<[LocationId]>,
    /// Whether the outermost location is the start of the thread.
    pub end: StackEnd,
}

/// How far a stack reaches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StackEnd {
    /// It reaches `main`'s caller or the start of the thread.
    Complete,
    /// The recorder gave up before that.
    Truncated(Truncation),
    /// The file does not say.
    Unknown,
}

/// Why and where the recorder gave up on a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Truncation {
    /// Why.
    pub reason: TruncationReason,
    /// The address whose caller could not be found, where the file tells it.
    pub at: Option<u64>,
}

/// Why a stack ends early. The texts are those of the heap_v2 text format.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TruncationReason {
    /// The stack is deeper than the recorder was asked to go.
    DepthLimit,
    /// Neither unwind tables nor a frame pointer were there for some address.
    NoUnwindInfo,
    /// The unwind information led to a frame that cannot be.
    BadFrame,
    /// A reason this version does not know. Comes from the input: escape it before it is printed.
    Other(Arc<str>),
}

impl TruncationReason {
    /// The reason for this text, as in `# stack truncated: no unwind info at 0x…`.
    pub fn from_text(text: &str) -> Self {
        match text {
            "depth limit" => Self::DepthLimit,
            "no unwind info" => Self::NoUnwindInfo,
            "bad frame" => Self::BadFrame,
            other => Self::Other(other.into()),
        }
    }

    /// The text for this reason; the inverse of [`TruncationReason::from_text`].
    pub fn as_text(&self) -> &str {
        match self {
            Self::DepthLimit => "depth limit",
            Self::NoUnwindInfo => "no unwind info",
            Self::BadFrame => "bad frame",
            Self::Other(text) => text,
        }
    }
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason.as_text())?;
        self.at.map_or(Ok(()), |address| write!(f, " at {address:#x}"))
    }
}
