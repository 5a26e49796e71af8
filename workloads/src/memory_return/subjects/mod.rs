//! What the subjects do. Each file is one; all of them tell the observer where they are, and verify what they kept.

pub mod alone;
pub mod burst;
pub mod caller;
pub mod churn;
pub mod idle;
pub mod latency;
mod occupation;
pub mod threads;
pub mod turnover;

use super::link::{Kind, Link};

pub use occupation::During;

/// What does not depend on the subject.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Decides survivors, orders and contents.
    pub seed: u64,
    /// Threads that allocate.
    pub threads: u32,
    /// Multiplies all counts of blocks.
    pub scale: f64,
    /// Whether system calls are counted: then the observer answers everything at once.
    pub trace: bool,
    /// To the observer.
    pub link: Link,
}

impl Setting {
    /// Begins: tables are mapped and resident now.
    fn start(&self) {
        self.link.thread();
        self.link.ask(Kind::Start, libc::malloc as *const () as u64);
    }
}
