//! The call tree: who called whom, and what was allocated below.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::folded::root_box;
use super::frames::{FrameRef, Frames};
use super::table::sample_group;
use super::{Group, Sum, View, Weights};
use crate::model::Profile;

/// A function (or what [`View::group`] makes one) below its caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The function, file or library; an address where there is no name. Not escaped.
    pub name: Arc<str>,
    /// The source place: that of the group itself where it has one, else the first that was met. Not escaped.
    pub place: Option<(Arc<str>, u32)>,
    /// The function is known by name; false for addresses.
    pub named: bool,
    /// The function has called itself here; these calls are one.
    pub recursive: bool,
    /// What ends here: top-down, what the function has allocated itself.
    pub flat: Sum,
    /// That and what all below have.
    pub cumulative: Sum,
    /// Indices into [`Tree::nodes`], heaviest first.
    pub children: Vec<u32>,
}

/// A call tree. Built from the same numbers as all other views, so the roots add up to the total.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// All nodes; each comes after its parent.
    pub nodes: Vec<Node>,
    /// Nodes without a parent, heaviest first.
    pub roots: Vec<u32>,
    /// The sum of all samples.
    pub total: Sum,
}

impl Tree {
    /// Adds up a profile: from the start of the program down, or, `inverted`, from the functions that allocate to their callers.
    ///
    /// Stacks that are known to be cut off begin with `[truncated: …]`. With [`Group::Thread`] and [`Group::Size`], functions are below
    /// the thread or size.
    pub fn build(profile: &Profile, view: &View, inverted: bool) -> Self {
        let weights = Weights::of(profile, view.metric);
        let frames = Frames::of(profile, view.group, view.inlines);
        let mut builder =
            Builder { frames: &frames, tree: Self::default(), known: HashMap::new(), extra: HashMap::new() };
        builder.tree.total = weights.total();
        let mut shown = Vec::new();
        for (sample, &sum) in profile.samples.iter().zip(weights.samples()) {
            if sum.value(view.unit) == 0 {
                continue;
            }
            let stack = profile.stack(sample.stack);
            frames.visible(stack, view.runtime, &mut shown);
            if !inverted {
                shown.reverse();
            }
            let group =
                matches!(view.group, Group::Thread | Group::Size).then(|| sample_group(profile, sample, view.group));
            let outermost = root_box(stack);
            let (first, last) = if inverted { (group, outermost) } else { (group.or(outermost.clone()), None) };
            builder.add(first, &shown, last, sum);
        }
        let mut tree = builder.tree;
        tree.sort(view);
        tree
    }

    fn sort(&mut self, view: &View) {
        let weights: Vec<u64> = self.nodes.iter().map(|node| node.cumulative.value(view.unit)).collect();
        let identity = |node: &Node| (node.name.clone(), node.place.clone());
        let names: Vec<_> = self.nodes.iter().map(identity).collect();
        let order = |list: &mut Vec<u32>| {
            list.sort_by(|&a, &b| {
                let (a, b) = (a as usize, b as usize);
                (Reverse(weights[a]), &names[a]).cmp(&(Reverse(weights[b]), &names[b]))
            });
        };
        self.nodes.iter_mut().for_each(|node| order(&mut node.children));
        order(&mut self.roots);
    }
}

/// What a node is among its siblings.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Own {
    /// Of [`Frames::keys`].
    Key(u32),
    /// A box that is no function.
    Extra(u32),
}

struct Builder<'a> {
    frames: &'a Frames,
    tree: Tree,
    /// By parent; `u32::MAX` for roots.
    known: HashMap<(u32, Own), u32>,
    extra: HashMap<Arc<str>, u32>,
}

impl Builder<'_> {
    fn add(&mut self, first: Option<Arc<str>>, shown: &[FrameRef], last: Option<Arc<str>>, sum: Sum) {
        let mut at = None;
        let mut before = None;
        if let Some(name) = first {
            at = Some(self.extra(at, name, sum));
        }
        for frame in shown {
            if before == Some(frame.key) {
                // A call of itself: what comes below is below the first.
                if let Some(at) = at {
                    self.tree.nodes[at as usize].recursive = true;
                }
                continue;
            }
            before = Some(frame.key);
            at = Some(self.function(at, frame, sum));
        }
        if let Some(name) = last {
            at = Some(self.extra(at, name, sum));
        }
        if let Some(at) = at {
            self.tree.nodes[at as usize].flat += sum;
        }
    }

    fn extra(&mut self, parent: Option<u32>, name: Arc<str>, sum: Sum) -> u32 {
        let next = self.extra.len() as u32;
        let own = Own::Extra(*self.extra.entry(name.clone()).or_insert(next));
        self.node(parent, own, sum, || (name, None, true))
    }

    fn function(&mut self, parent: Option<u32>, frame: &FrameRef, sum: Sum) -> u32 {
        let frames = self.frames;
        self.node(parent, Own::Key(frame.key), sum, || {
            let key = &frames.keys[frame.key as usize];
            let own = key.file.clone().map(|file| (file, key.line));
            let place = if key.line > 0 { own } else { frames.sites[frame.site as usize].place.clone().or(own) };
            (key.name.clone(), place, frame.named)
        })
    }

    fn node(
        &mut self,
        parent: Option<u32>,
        own: Own,
        sum: Sum,
        make: impl FnOnce() -> (Arc<str>, Option<(Arc<str>, u32)>, bool),
    ) -> u32 {
        let id = match self.known.get(&(parent.unwrap_or(u32::MAX), own)) {
            Some(&id) => id,
            None => {
                let id = self.tree.nodes.len() as u32;
                let (name, place, named) = make();
                let (flat, cumulative) = (Sum::default(), Sum::default());
                self.tree.nodes.push(Node {
                    name,
                    place,
                    named,
                    recursive: false,
                    flat,
                    cumulative,
                    children: Vec::new(),
                });
                match parent {
                    Some(parent) => self.tree.nodes[parent as usize].children.push(id),
                    None => self.tree.roots.push(id),
                }
                self.known.insert((parent.unwrap_or(u32::MAX), own), id);
                id
            }
        };
        self.tree.nodes[id as usize].cumulative += sum;
        id
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_profile::{profile, stacks};
    use super::*;
    use crate::model::{Metric, Unit};
    use proptest::prelude::*;

    fn text(tree: &Tree) -> Vec<String> {
        fn walk(tree: &Tree, ids: &[u32], depth: usize, lines: &mut Vec<String>) {
            for &id in ids {
                let node = &tree.nodes[id as usize];
                let mark = if node.recursive { "*" } else { "" };
                let indent = " ".repeat(depth);
                lines.push(format!("{indent}{}{mark} {} {}", node.name, node.flat.bytes, node.cumulative.bytes));
                walk(tree, &node.children, depth + 1, lines);
            }
        }
        let mut lines = Vec::new();
        walk(tree, &tree.roots, 0, &mut lines);
        lines
    }

    #[test]
    fn both_ways() {
        let profile = profile(&[(&["b", "a", "main"], 4), (&["a", "main"], 1), (&["b", "main"], 2)]);
        let tree = |inverted| text(&Tree::build(&profile, &View::default(), inverted));
        assert_eq!(tree(false), ["main 0 7", " a 1 5", "  b 4 4", " b 2 2"]);
        assert_eq!(tree(true), ["b 0 6", " a 0 4", "  main 4 4", " main 2 2", "a 0 1", " main 1 1"]);
    }

    #[test]
    fn recursion_is_one_node() {
        let profile = profile(&[(&["b", "a", "a", "a", "main"], 4), (&["a", "main"], 1)]);
        assert_eq!(text(&Tree::build(&profile, &View::default(), false)), ["main 0 5", " a* 1 5", "  b 4 4"]);
    }

    proptest! {
        #[test]
        fn children_and_flat_add_up(profile in stacks(), inverted: bool) {
            let view = View { metric: Metric::Allocated, ..View::default() };
            let tree = Tree::build(&profile, &view, inverted);
            let sum = |ids: &[u32]| ids.iter().map(|&id| tree.nodes[id as usize].cumulative.bytes).sum::<u64>();
            for node in &tree.nodes {
                prop_assert_eq!(node.cumulative.bytes, node.flat.bytes + sum(&node.children));
            }
            prop_assert_eq!(sum(&tree.roots), tree.total.value(Unit::Bytes));
        }
    }
}
