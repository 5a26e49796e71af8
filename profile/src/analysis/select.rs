//! Parts of a profile: some of its samples, or its stacks without some of their frames.

use std::collections::HashMap;

use crate::model::{Frame, Location, LocationId, Profile, Sample, Stack};

impl Profile {
    /// Keeps the samples that `keep` wants.
    pub fn keep_samples(&mut self, mut keep: impl FnMut(&Profile, &Sample) -> bool) {
        let samples = std::mem::take(&mut self.samples);
        let kept = samples.into_iter().filter(|sample| keep(self, sample)).collect();
        self.samples = kept;
    }

    /// Takes frames out of all stacks. `hides` is asked for each function at each location, and, with `None`, for locations where no
    /// function is known. Amounts stay: what a frame has allocated goes to its caller, or to no frame at all.
    pub fn hide_frames(&mut self, mut hides: impl FnMut(&Profile, &Location, Option<&Frame>) -> bool) {
        let mut hidden = vec![false; self.locations.len()];
        let mut changed: Vec<(usize, Vec<Frame>)> = Vec::new();
        for (index, location) in self.locations.iter().enumerate() {
            if location.frames.is_empty() {
                hidden[index] = hides(self, location, None);
                continue;
            }
            let frames = location.frames.iter().filter(|frame| !hides(self, location, Some(frame)));
            let frames: Vec<Frame> = frames.cloned().collect();
            hidden[index] = frames.is_empty();
            if frames.len() < location.frames.len() {
                changed.push((index, frames));
            }
        }
        for (index, frames) in changed {
            self.locations[index].frames = frames;
        }
        for stack in &mut self.stacks {
            if stack.locations.iter().any(|id| hidden[id.index()]) {
                stack.locations = stack.locations.iter().copied().filter(|id| !hidden[id.index()]).collect();
            }
        }
    }

    /// Lets all stacks begin with the outermost frame that `begins` wants. Samples whose stack has none are dropped. Asked as by
    /// [`Profile::hide_frames`].
    pub fn show_from(&mut self, mut begins: impl FnMut(&Profile, &Location, Option<&Frame>) -> bool) {
        // Of each location the outermost frame that is wanted; where no function is known, 0.
        let outermost = |location: &Location| match location.frames.len() {
            0 => begins(self, location, None).then_some(0),
            frames => (0..frames).rev().find(|&index| begins(self, location, Some(&location.frames[index]))),
        };
        let wanted: Vec<Option<usize>> = self.locations.iter().map(outermost).collect();
        let mut parts = Parts { made: HashMap::new() };
        let mut begun = vec![false; self.stacks.len()];
        for (index, begun) in begun.iter_mut().enumerate() {
            let stack: &Stack = &self.stacks[index];
            let found = stack.locations.iter().rposition(|id| wanted[id.index()].is_some());
            let Some((at, frame)) = found.and_then(|at| Some((at, wanted[stack.locations[at].index()]?))) else {
                continue;
            };
            *begun = true;
            let mut kept = stack.locations[..at].to_vec();
            let last = stack.locations[at];
            kept.push(parts.of(&mut self.locations, last, frame));
            self.stacks[index].locations = kept.into();
        }
        self.samples.retain(|sample| begun[sample.stack.index()]);
    }
}

/// Locations of which the outer functions were taken away.
struct Parts {
    made: HashMap<(LocationId, usize), LocationId>,
}

impl Parts {
    /// The location with its functions up to `last`.
    fn of(&mut self, locations: &mut Vec<Location>, id: LocationId, last: usize) -> LocationId {
        let whole = &locations[id.index()];
        if last + 1 >= whole.frames.len() {
            return id;
        }
        let part = Location { frames: whole.frames[..=last].to_vec(), ..whole.clone() };
        *self.made.entry((id, last)).or_insert_with(|| {
            locations.push(part);
            LocationId(locations.len() as u32 - 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_profile::profile;
    use super::super::{Folded, RuntimeFrames, View};
    use super::*;

    fn lines(profile: &Profile) -> Vec<String> {
        let view = View { runtime: RuntimeFrames::Show, ..View::default() };
        Folded::build(profile, &view).lines().collect()
    }

    fn is(name: &'static str) -> impl Fn(&Profile, &Location, Option<&Frame>) -> bool {
        move |_, _, frame| frame.is_some_and(|frame| &*frame.function == name)
    }

    #[test]
    fn hidden_frames_leave_their_bytes() {
        let mut profile = profile(&[(&["b", "x", "main"], 4), (&["x"], 2), (&["b", "main"], 1)]);
        profile.hide_frames(is("x"));
        assert_eq!(lines(&profile), ["main;b 5", "[no stack] 2"]);
    }

    #[test]
    fn stacks_begin_at_the_outermost_match() {
        let mut profile = profile(&[(&["b", "x", "a", "x", "main"], 4), (&["b", "main"], 1)]);
        profile.show_from(is("x"));
        assert_eq!(lines(&profile), ["x;a;x;b 4"]);
    }

    #[test]
    fn inlined_functions_are_taken_apart() {
        let mut profile = profile(&[(&["leaf", "main"], 4), (&["leaf"], 3)]);
        profile.locations[0].frames =
            vec![Frame::named("leaf"), Frame { inlined: true, ..Frame::named("middle") }, Frame::named("outer")];
        let mut hidden = profile.clone();
        hidden.hide_frames(is("middle"));
        assert_eq!(lines(&hidden), ["main;outer;leaf 4", "outer;leaf 3"]);
        profile.show_from(is("middle"));
        assert_eq!(lines(&profile), ["middle;leaf 7"]);
    }

    #[test]
    fn samples_can_be_chosen() {
        let mut profile = profile(&[(&["a"], 4), (&["b"], 3)]);
        profile.keep_samples(|_, sample| sample.block_size == 3);
        assert_eq!(lines(&profile), ["b 3"]);
    }
}
