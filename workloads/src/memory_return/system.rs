//! What the whole system says about its memory: free memory, and how often huge pages were split.

use std::fs::read_to_string;

use serde::{Deserialize, Serialize};

/// Figures of the system at one moment. Other programs change them too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// `MemFree` in bytes.
    pub free: u64,
    /// Huge pages that were split.
    pub splits: Splits,
}

/// Counters of `/proc/vmstat` about huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Splits {
    /// Huge pages that became small ones: only then can parts of them be free.
    pub thp_split_page: u64,
    /// Page table entries of huge pages that were split: the huge page may live on.
    pub thp_split_pmd: u64,
    /// Huge pages put on the list of those to be split when memory is short.
    pub thp_deferred_split_page: u64,
}

impl System {
    /// The figures now; zeros where the kernel does not tell.
    #[must_use]
    pub fn now() -> Self {
        let meminfo = read_to_string("/proc/meminfo").unwrap_or_default();
        let vmstat = read_to_string("/proc/vmstat").unwrap_or_default();
        let count = |key| number_after(&vmstat, key).unwrap_or(0);
        Self {
            free: number_after(&meminfo, "MemFree:").unwrap_or(0) * 1024,
            splits: Splits {
                thp_split_page: count("thp_split_page"),
                thp_split_pmd: count("thp_split_pmd"),
                thp_deferred_split_page: count("thp_deferred_split_page"),
            },
        }
    }
}

impl Splits {
    /// What was counted since `before`.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            thp_split_page: self.thp_split_page.saturating_sub(before.thp_split_page),
            thp_split_pmd: self.thp_split_pmd.saturating_sub(before.thp_split_pmd),
            thp_deferred_split_page: self.thp_deferred_split_page.saturating_sub(before.thp_deferred_split_page),
        }
    }
}

/// The number behind the word `key`, which begins a line.
pub(super) fn number_after(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key).filter(|rest| rest.starts_with([' ', '\t'])))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_whole_words() {
        let text = "thp_split_page_failed 3\nthp_split_page 17\nMemFree:       42 kB\n";
        assert_eq!((number_after(text, "thp_split_page"), number_after(text, "MemFree:")), (Some(17), Some(42)));
        assert_eq!((number_after(text, "thp"), number_after("x -1", "x")), (None, None));
        assert!(System::now().free > 0);
    }
}
