//! The frames of a profile as a report shows them: names, roles, and what makes two of them the same.

use std::collections::HashMap;
use std::sync::Arc;

use super::crates::crate_of;
use super::runtime::{self, Role};
use super::{Group, RuntimeFrames};
use crate::model::{Frame, Location, LocationId, Profile, Stack};

/// What a row or box stands for. Two frames with an equal key are the same in a report.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) name: Arc<str>,
    pub(super) file: Option<Arc<str>>,
    pub(super) line: u32,
    pub(super) module: Option<Arc<str>>,
}

/// A place in the source that a key was found at.
pub(super) type Place = Option<(Arc<str>, u32)>;

/// A key at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Site {
    pub(super) key: u32,
    pub(super) place: Place,
}

/// One frame of one location.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameRef {
    /// Index into [`Frames::keys`]. Keys are numbered in their own order.
    pub(super) key: u32,
    /// Index into [`Frames::sites`].
    pub(super) site: u32,
    pub(super) role: Role,
    /// The function's name is known.
    pub(super) named: bool,
    /// The source line is known.
    pub(super) with_line: bool,
}

/// The frames of all locations of a profile.
pub(super) struct Frames {
    pub(super) keys: Vec<Key>,
    /// Sites of one key need not be neighbours.
    pub(super) sites: Vec<Site>,
    /// The frames of all locations, one after the other; those of location `i` are at `starts[i]..starts[i + 1]`.
    refs: Vec<FrameRef>,
    starts: Vec<usize>,
}

impl Frames {
    pub(super) fn of(profile: &Profile, group: Group, inlines: bool) -> Self {
        let module_names: Vec<Arc<str>> = profile.modules.iter().map(|module| module.file_name().into()).collect();
        let mut keys = Numbering::default();
        let mut sites = Numbering::default();
        let mut refs = Vec::with_capacity(profile.locations.len());
        let mut starts = Vec::with_capacity(profile.locations.len() + 1);
        for location in &profile.locations {
            starts.push(refs.len());
            let module = location.module.map(|id| &module_names[id.index()]);
            let shown = if inlines { 0 } else { location.frames.len().saturating_sub(1) };
            let mut add = |frame: Option<&Frame>| {
                let key = keys.number(key(profile, location, module, frame, group));
                let place = frame.and_then(|frame| Some((frame.file.clone()?, frame.line)));
                refs.push(FrameRef {
                    key,
                    site: sites.number(Site { key, place }),
                    role: runtime::role(module.map(|name| &**name), frame),
                    named: frame.is_some_and(|frame| !frame.function.is_empty()),
                    with_line: frame.is_some_and(|frame| frame.file.is_some() && frame.line > 0),
                });
            };
            match &location.frames[shown..] {
                [] => add(None),
                frames => frames.iter().for_each(|frame| add(Some(frame))),
            }
        }
        starts.push(refs.len());
        let (keys, renumbered) = keys.sorted();
        refs.iter_mut().for_each(|frame| frame.key = renumbered[frame.key as usize]);
        let mut sites = sites.items;
        sites.iter_mut().for_each(|site| site.key = renumbered[site.key as usize]);
        Self { keys, sites, refs, starts }
    }

    /// The frames of a location, innermost first.
    fn at(&self, id: LocationId) -> &[FrameRef] {
        &self.refs[self.starts[id.index()]..self.starts[id.index() + 1]]
    }

    /// All frames of a stack, innermost first.
    pub(super) fn all<'a>(&'a self, stack: &'a Stack) -> impl Iterator<Item = &'a FrameRef> + 'a {
        stack.locations.iter().flat_map(|&id| self.at(id))
    }

    /// How many frames of a location have a line, only a name, and not even that.
    pub(super) fn counts(&self, location: usize) -> [u32; 3] {
        let mut counts = [0; 3];
        for frame in self.at(LocationId(location as u32)) {
            let known = if frame.with_line { 0 } else { 2 - usize::from(frame.named) };
            counts[known] += 1;
        }
        counts
    }

    /// The first of the frames that [`RuntimeFrames::Collapse`] leaves.
    pub(super) fn first_visible<'a>(&'a self, stack: &'a Stack) -> Option<&'a FrameRef> {
        let mut outside_allocator = None;
        for frame in self.all(stack) {
            match frame.role {
                Role::User => return Some(frame),
                Role::Runtime => outside_allocator = outside_allocator.or(Some(frame)),
                Role::Allocator => {}
            }
        }
        outside_allocator.or_else(|| self.all(stack).next())
    }

    /// The frames of a stack that a report shows, innermost first, put into `shown`. Empty only for an empty stack.
    pub(super) fn visible(&self, stack: &Stack, runtime: RuntimeFrames, shown: &mut Vec<FrameRef>) {
        shown.clear();
        for id in &*stack.locations {
            shown.extend_from_slice(self.at(*id));
        }
        if runtime == RuntimeFrames::Show {
            return;
        }
        let is_user = |frame: &FrameRef| frame.role == Role::User;
        match shown.iter().position(is_user) {
            Some(_) if runtime == RuntimeFrames::Hide => shown.retain(is_user),
            Some(first) => drop(shown.drain(..first)),
            None => {
                let first = shown.iter().position(|frame| frame.role != Role::Allocator).unwrap_or(0);
                shown.drain(..first);
            }
        }
    }
}

/// A number for each distinct item, in the order of first sight.
struct Numbering<T> {
    numbers: HashMap<T, u32>,
    items: Vec<T>,
}

impl<T> Default for Numbering<T> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), items: Vec::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Numbering<T> {
    fn number(&mut self, item: T) -> u32 {
        if let Some(&number) = self.numbers.get(&item) {
            return number;
        }
        let number = self.items.len() as u32;
        self.items.push(item.clone());
        self.numbers.insert(item, number);
        number
    }
}

impl<T: Ord> Numbering<T> {
    /// The items in order, and for each old number the new one.
    fn sorted(self) -> (Vec<T>, Vec<u32>) {
        let mut items: Vec<(T, usize)> = self.items.into_iter().enumerate().map(|(old, item)| (item, old)).collect();
        items.sort();
        let mut renumbered = vec![0; items.len()];
        for (new, (_, old)) in items.iter().enumerate() {
            renumbered[*old] = new as u32;
        }
        (items.into_iter().map(|(item, _)| item).collect(), renumbered)
    }
}

fn key(profile: &Profile, location: &Location, module: Option<&Arc<str>>, frame: Option<&Frame>, group: Group) -> Key {
    const UNKNOWN: &str = "[unknown]";
    let bare = |name: Arc<str>| Key { name, file: None, line: 0, module: module.cloned() };
    let label = || location_label(profile, location).into();
    let name = |frame: &Frame| if frame.function.is_empty() { label() } else { frame.function.clone() };
    if group == Group::Crate
        && let Some(name) = frame.and_then(|frame| crate_of(&frame.function))
    {
        return Key { name: name.into(), file: None, line: 0, module: None };
    }
    match (group, frame) {
        (Group::Library | Group::Crate, _) => bare(module.cloned().unwrap_or_else(|| UNKNOWN.into())),
        (Group::File, Some(Frame { file: Some(file), .. })) => {
            Key { name: file.clone(), file: Some(file.clone()), line: 0, module: None }
        }
        (Group::File, _) => bare(module.map_or_else(|| UNKNOWN.into(), |name| format!("[{name}]").into())),
        (_, None) => bare(label()),
        (_, Some(frame @ Frame { file: Some(file), line, .. })) => {
            let line = if group == Group::Line { *line } else { 0 };
            Key { name: name(frame), file: Some(file.clone()), line, module: None }
        }
        (_, Some(frame)) => bare(name(frame)),
    }
}

/// How a location without a name is called: `libfoo.so+0x1234` or, outside all modules, `0x7f0123456789`.
///
/// The number is the ELF address of the call where the symbolizer found it, else its offset in the file.
pub fn location_label(profile: &Profile, location: &Location) -> String {
    let call = crate::model::lookup_address(location.address);
    match profile.module_of(location) {
        Some(module) => {
            let place = location.file_address.or_else(|| module.offset_of(call)).unwrap_or(call);
            format!("{}+{place:#x}", module.file_name())
        }
        None => format!("{call:#x}"),
    }
}
