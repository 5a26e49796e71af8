//! When profiles were taken, and whether several are of one run of a process.

use crate::model::Profile;

/// The clock of the machine is read beside the other one that measures how long a run took, and may have been set a little in between.
const SAME_START: f64 = 0.01;

/// When a profile was taken, in seconds since 1970; `None` if it does not tell.
pub fn time(profile: &Profile) -> Option<f64> {
    nanos(profile, "time_nanos").map(|nanos| nanos as f64 / 1e9)
}

/// Whether both are of one run of a process, as far as they tell: sampling began at the same time, and the program was at the same
/// place in memory. What was sampled once and is still there is then in both.
pub fn of_one_run(a: &Profile, b: &Profile) -> bool {
    let start = |profile| {
        let (time, duration) = (nanos(profile, "time_nanos")?, nanos(profile, "duration_nanos")?);
        Some(time.saturating_sub(duration))
    };
    let (Some(start_a), Some(start_b)) = (start(a), start(b)) else { return false };
    let place = |profile: &Profile| {
        profile.modules.iter().find(|module| module.is_file()).map(|module| (module.path.clone(), module.start))
    };
    (start_a.abs_diff(start_b) as f64) < SAME_START * 1e9
        && place(a).is_some()
        && place(a) == place(b)
        && a.sample_rate == b.sample_rate
}

fn nanos(profile: &Profile, key: &str) -> Option<u64> {
    profile.comment(key)?.parse().ok().filter(|&nanos| nanos > 0)
}

#[cfg(test)]
mod tests {
    use super::super::test_profile::profile;
    use super::*;

    fn taken(time: u64, duration: u64) -> Profile {
        let mut taken = profile(&[(&["f"], 1)]);
        let facts = [("time_nanos", time), ("duration_nanos", duration)];
        taken.comments = facts.map(|(key, value)| (key.to_owned(), value.to_string())).to_vec();
        taken
    }

    #[test]
    fn runs_are_told_by_start_and_place() {
        let second = 1_000_000_000;
        let early = taken(1001 * second, second);
        let late = taken(1060 * second + 900_000, 60 * second);
        assert!(of_one_run(&early, &late) && of_one_run(&late, &early));
        assert_eq!(time(&early), Some(1001.0));
        assert!(!of_one_run(&early, &taken(1060 * second, 59 * second)), "began a second later");
        let mut elsewhere = late;
        elsewhere.modules[0].start += 0x1000;
        assert!(!of_one_run(&early, &elsewhere), "another process that began at the same time");
        let untold = profile(&[(&["f"], 1)]);
        assert!(!of_one_run(&untold, &untold) && time(&untold).is_none());
    }
}
