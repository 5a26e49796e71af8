//! Where the memory of the process was, as its own dump tells it: what the total of a profile can be held against.

use serde::Serialize;

use crate::model::Profile;

/// Parts of what a process had in memory, in bytes. `live` to `other` add up to `resident`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Footprint {
    /// All that the process had in memory: its RSS.
    pub resident: u64,
    /// Live blocks, as the allocator counted them, as far as they were in memory.
    pub live: u64,
    /// What else the allocator had in memory: freed and kept for later, rounding, its own tables.
    pub retained: u64,
    /// Tables of the profiler.
    pub profiler: u64,
    /// Mappings of files, and shared memory.
    pub files: u64,
    /// Stacks of the main thread and of threads that had allocated.
    pub stacks: u64,
    /// The rest: memory that the program got from the kernel by itself.
    pub other: u64,
    /// Live blocks that were never touched, or were swapped out; not in `resident`.
    pub live_not_resident: u64,
    /// What the allocator has given back and not used again; not in `resident`.
    pub purged: u64,
}

impl Footprint {
    /// What a dump tells; `None` if it does not tell all of it.
    pub fn of(profile: &Profile) -> Option<Footprint> {
        let fact = |key: &str| profile.comment(key)?.parse::<u64>().ok();
        let (resident, exact) = (fact("rss_bytes")?, fact("exact_live_bytes")?);
        let allocator = fact("rss_allocator_bytes")?;
        let (profiler, files, stacks) =
            (fact("rss_profiler_bytes")?, fact("rss_file_bytes")?, fact("rss_stack_bytes")?);
        let live = exact.min(allocator);
        // The kernel counts the whole and the parts at different moments, and the whole not to the page.
        let parts = allocator.checked_add(profiler)?.checked_add(files)?.checked_add(stacks)?;
        Some(Footprint {
            resident: resident.max(parts),
            live,
            retained: allocator - live,
            profiler,
            files,
            stacks,
            other: resident.saturating_sub(parts),
            live_not_resident: exact - live,
            purged: fact("purged_bytes").unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Format;

    fn of(facts: &[(&str, &str)]) -> Option<Footprint> {
        let mut profile = Profile::new(Format::Pprof, 1);
        profile.comments = facts.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        Footprint::of(&profile)
    }

    #[test]
    fn parts_add_up() {
        let facts = [
            ("rss_bytes", "100"),
            ("exact_live_bytes", "50"),
            ("rss_allocator_bytes", "60"),
            ("rss_profiler_bytes", "5"),
            ("rss_file_bytes", "20"),
            ("rss_stack_bytes", "3"),
            ("purged_bytes", "7"),
        ];
        let found = of(&facts).expect("a footprint");
        assert_eq!((found.live, found.retained, found.other, found.purged), (50, 10, 12, 7));
        let sum = found.live + found.retained + found.profiler + found.files + found.stacks + found.other;
        assert_eq!(sum, found.resident);
        assert_eq!(of(&facts[1..]), None);
        let mut untouched = facts;
        untouched[1].1 = "90";
        let found = of(&untouched).expect("a footprint");
        assert_eq!((found.live, found.live_not_resident, found.retained), (60, 30, 0));
        let mut lagging = facts;
        lagging[0].1 = "80";
        let found = of(&lagging).expect("a footprint");
        assert_eq!((found.resident, found.other), (88, 0));
        lagging[2].1 = "18446744073709551615";
        assert_eq!(of(&lagging), None);
    }
}
