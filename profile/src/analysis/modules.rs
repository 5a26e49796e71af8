//! How far the code of each module has names.

use std::collections::HashMap;

use super::{Resolved, Weights};
use crate::model::{BuildId, Location, Metric, Profile};

/// Estimated bytes of the stacks that go through the code of one file, by what is known about that code.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleShare {
    /// The path as in [`Module::path`](crate::Module::path); empty for anonymous memory. `None` for addresses that no
    /// mapping covers. Not escaped.
    pub path: Option<String>,
    /// The build id, where the profile tells it.
    pub build_id: Option<BuildId>,
    /// Whether the file had been deleted or replaced when the profile was written.
    pub deleted: bool,
    /// Bytes of all stacks that have an address in it.
    pub bytes: u64,
    /// The same by what is known: the bytes of a stack are shared equally among its addresses in this module. The three
    /// add up to `bytes`, up to rounding errors.
    pub resolved: Resolved,
}

impl ModuleShare {
    /// One for each file that a stack with anything of the metric goes through, the one with most bytes first. Several
    /// mappings of a file are one.
    pub fn all(profile: &Profile, metric: Metric) -> Vec<ModuleShare> {
        let weights = Weights::of(profile, metric);
        let mut shares: Vec<ModuleShare> = Vec::new();
        let mut numbers: HashMap<_, usize> = HashMap::new();
        // The share that each location belongs to.
        let of_location: Vec<usize> = profile
            .locations
            .iter()
            .map(|location| {
                let module = profile.module_of(location);
                let key = module.map(|module| (module.path.as_str(), module.build_id.as_ref(), module.deleted));
                *numbers.entry(key).or_insert_with(|| {
                    shares.push(ModuleShare {
                        path: module.map(|module| module.path.clone()),
                        build_id: module.and_then(|module| module.build_id.clone()),
                        deleted: module.is_some_and(|module| module.deleted),
                        bytes: 0,
                        resolved: Resolved::default(),
                    });
                    shares.len() - 1
                })
            })
            .collect();
        let mut counts: HashMap<usize, [u32; 3]> = HashMap::new();
        for (sample, sum) in profile.samples.iter().zip(weights.samples()) {
            counts.clear();
            for id in &*profile.stack(sample.stack).locations {
                let count = counts.entry(of_location[id.index()]).or_default();
                count[known(profile.location(*id))] += 1;
            }
            for (&number, &[lines, names, nothing]) in &counts {
                let share = &mut shares[number];
                share.bytes = share.bytes.saturating_add(sum.bytes);
                let part = sum.bytes as f64 / f64::from(lines + names + nothing);
                share.resolved.lines += part * f64::from(lines);
                share.resolved.names += part * f64::from(names);
                share.resolved.nothing += part * f64::from(nothing);
            }
        }
        shares.retain(|share| share.bytes > 0);
        shares.sort_by(|a, b| {
            b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)).then_with(|| a.build_id.cmp(&b.build_id))
        });
        shares
    }
}

/// 0 with a line, 1 with a name, 2 with nothing.
fn known(location: &Location) -> usize {
    if location.frames.iter().any(|frame| frame.file.is_some() && frame.line != 0) {
        0
    } else if location.frames.iter().any(|frame| !frame.function.is_empty()) {
        1
    } else {
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::test_profile::{profile, stacks};
    use crate::{Frame, Module, ModuleId};
    use proptest::prelude::*;

    #[test]
    fn bytes_go_to_every_module_of_a_stack() {
        let mut profile = profile(&[(&["malloc", "f", "main"], 60), (&["g", "main"], 40), (&["h"], 7)]);
        let app = profile.modules[0].clone();
        let library = |start: u64| Module {
            start,
            end: start + 0x1000,
            path: "/lib/libc.so".into(),
            build_id: BuildId::from_bytes(b"id"),
            ..app.clone()
        };
        // Two mappings of one file.
        profile.modules.extend([library(0x7000), library(0x8000)]);
        profile.locations[0].module = Some(ModuleId(1));
        profile.locations[3].module = Some(ModuleId(2));
        profile.locations[4].module = None;
        profile.locations[0].frames = vec![];
        profile.locations[1].frames = vec![Frame::named("f").at("f.c", 3)];
        let shares = ModuleShare::all(&profile, Metric::Live);
        let shown: Vec<_> = shares.iter().map(|share| (share.path.as_deref(), share.bytes, share.resolved)).collect();
        let resolved = |lines, names, nothing| Resolved { lines, names, nothing };
        assert_eq!(
            shown,
            [
                (Some("/bin/app"), 100, resolved(30.0, 70.0, 0.0)),
                (Some("/lib/libc.so"), 100, resolved(0.0, 40.0, 60.0)),
                (None, 7, resolved(0.0, 7.0, 0.0)),
            ]
        );
        assert_eq!(shares[1].build_id, BuildId::from_bytes(b"id"));
        assert!(ModuleShare::all(&profile, Metric::Freed).is_empty(), "nothing was freed");
    }

    proptest! {
        #[test]
        fn the_parts_make_the_whole(profile in stacks()) {
            for share in ModuleShare::all(&profile, Metric::Allocated) {
                let Resolved { lines, names, nothing } = share.resolved;
                prop_assert!((lines + names + nothing - share.bytes as f64).abs() <= 1.0 + share.bytes as f64 * 1e-9);
                prop_assert!(share.bytes <= Weights::of(&profile, Metric::Allocated).total().bytes);
            }
        }
    }
}
