//! The threads that allocated.

use std::fmt;
use std::sync::Arc;

/// Index of a [`Thread`] in [`Profile::threads`](crate::Profile::threads).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u32);

impl ThreadId {
    /// The index as the slice index that it is.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A thread of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thread {
    /// What it calls itself; empty where the file does not tell it. Comes from the input: escape it before it is printed.
    pub name: Arc<str>,
    /// The number that the kernel knows it by; `None` where several threads are told as one, or the file does not tell it.
    pub number: Option<u64>,
}

/// `worker (1234)`: as reports call it; not escaped.
impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.name, self.number) {
            ("", None) => f.write_str("unknown thread"),
            ("", Some(number)) => write!(f, "thread {number}"),
            (name, None) => f.write_str(name),
            (name, Some(number)) => write!(f, "{name} ({number})"),
        }
    }
}
