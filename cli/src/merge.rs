//! Several processes as one profile, for totals over all of them.

use anyhow::{Context, ensure};
use mpp_profile::{Location, LocationId, ModuleId, Profile, Sample, Stack, StackId, ThreadId};

/// Puts profiles one after the other. They must have their names already: the mappings of different processes overlap,
/// so addresses mean nothing afterwards.
///
/// # Errors
/// If there is none, if they were sampled at different rates or by different writers, or have more parts than a profile can.
pub(crate) fn merge(profiles: Vec<Profile>) -> anyhow::Result<Profile> {
    let mut profiles = profiles.into_iter();
    let mut merged = profiles.next().context("no profile")?;
    for profile in profiles {
        let rates = (merged.sample_rate, profile.sample_rate);
        ensure!(
            rates.0 == rates.1,
            "processes sampled at different rates ({} and {} bytes) cannot be added up; choose one with --pid",
            rates.0,
            rates.1
        );
        ensure!(
            merged.amounts == profile.amounts,
            "profiles of estimates and profiles of what was recorded cannot be added up; choose one with --pid"
        );
        // Counts and remarks of one process say nothing about all.
        merged.comments.clear();
        append(&mut merged, profile).context("the processes together are too large to be added up")?;
    }
    Ok(merged)
}

/// `None` if an index would not fit.
fn append(merged: &mut Profile, other: Profile) -> Option<()> {
    let base = |parts: usize, more: usize| u32::try_from(parts.checked_add(more)?).ok().map(|_| parts as u32);
    let modules = base(merged.modules.len(), other.modules.len())?;
    let locations = base(merged.locations.len(), other.locations.len())?;
    let stacks = base(merged.stacks.len(), other.stacks.len())?;
    let threads = base(merged.threads.len(), other.threads.len())?;
    merged.threads.extend(other.threads);
    merged.modules.extend(other.modules);
    merged.locations.extend(
        other
            .locations
            .into_iter()
            .map(|location| Location { module: location.module.map(|id| ModuleId(id.0 + modules)), ..location }),
    );
    merged.stacks.extend(other.stacks.into_iter().map(|stack| Stack {
        locations: stack.locations.iter().map(|id| LocationId(id.0 + locations)).collect(),
        ..stack
    }));
    merged.samples.extend(other.samples.into_iter().map(|sample| Sample {
        stack: StackId(sample.stack.0 + stacks),
        thread: sample.thread.map(|id| ThreadId(id.0 + threads)),
        ..sample
    }));
    other.linker_names.into_iter().for_each(|(name, raw)| _ = merged.linker_names.entry(name).or_insert(raw));
    merged.warnings.extend(other.warnings);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpp_profile::Metric;

    const ONE: &str = "heap profile: 1: 4096 [1: 4096] @ heap_v2/1\n1: 4096 [1: 4096] @ 0x1001\nMAPPED_LIBRARIES:\n";
    const TWO: &str = "heap profile: 2: 64 [2: 64] @ heap_v2/1\n2: 64 [2: 64] @ 0x1001 0x2001\nMAPPED_LIBRARIES:\n";

    fn profile(text: &str) -> Profile {
        mpp_profile::read(text.as_bytes(), "test").expect("a profile")
    }

    #[test]
    fn totals_add_up_and_stacks_stay_apart() -> anyhow::Result<()> {
        let merged = merge(vec![profile(ONE), profile(TWO)])?;
        assert_eq!(merged.estimate(Metric::Live).bytes, 4160.0);
        let addresses = |sample: &Sample| -> Vec<u64> {
            merged.stack(sample.stack).locations.iter().map(|&id| merged.location(id).address).collect()
        };
        assert_eq!(merged.samples.iter().map(addresses).collect::<Vec<_>>(), [vec![0x1001], vec![0x1001, 0x2001]]);
        Ok(())
    }

    #[test]
    fn different_rates_are_refused() {
        let other = profile(&TWO.replace("heap_v2/1", "heap_v2/4096"));
        assert!(merge(vec![profile(ONE), other]).is_err_and(|error| error.to_string().contains("--pid")));
    }
}
