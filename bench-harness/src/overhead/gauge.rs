//! How much a row allocates: what it costs to watch depends on that.

use std::path::Path;
use std::time::Duration;

/// What a run under the sampler has told.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Gauge {
    /// Usable bytes that the allocator counted.
    pub allocated: u64,
    /// Samples among them.
    pub samples: u64,
    /// Processor seconds of the run.
    pub seconds: f64,
}

impl Gauge {
    /// From the dump that the run has left.
    ///
    /// # Errors
    /// A sentence when the dump does not tell.
    pub fn of(dump: &Path, cpu: Duration) -> Result<Self, String> {
        let text = std::fs::read(dump).map_err(|error| format!("{}: {error}", dump.display()))?;
        let text = String::from_utf8_lossy(&text);
        let (allocated, samples) = (comment(&text).ok_or("the dump has no count")?, samples(&text).ok_or("no header")?);
        Ok(Self { allocated, samples, seconds: cpu.as_secs_f64() })
    }

    /// Bytes for each processor second, in units of 10^9.
    #[must_use]
    pub fn gigabytes_per_second(&self) -> f64 {
        self.allocated as f64 / self.seconds / 1e9
    }
}

fn comment(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("# exact_allocated_bytes = "))?.trim().parse().ok()
}

/// `heap profile: 3: 4096 [5: 8192] @ …`: the 5.
fn samples(text: &str) -> Option<u64> {
    let header = text.lines().next()?.strip_prefix("heap profile:")?;
    header.split_once('[')?.1.split(':').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_tells_its_counts() {
        let text = "heap profile:      3:   394624 [  5533: 1736347808] @ heap_v2/65536\n# exact_allocated_bytes = 4000000000\n";
        assert_eq!((samples(text), comment(text)), (Some(5533), Some(4_000_000_000)));
        assert_eq!((samples("x"), comment("x")), (None, None));
        let gauge = Gauge { allocated: 4_000_000_000, samples: 1, seconds: 0.5 };
        assert!((gauge.gigabytes_per_second() - 8.0).abs() < 1e-9);
    }
}
