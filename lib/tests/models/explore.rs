//! A breadth-first explorer of explicit states: the first violation it finds has a shortest trace.

use std::fmt::{Debug, Write};
use std::hash::{Hash, Hasher};

/// What can go wrong. Ordered: later ones are worse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Fault {
    /// Somebody waits for ever, or a list does not hold what it should.
    Stuck,
    /// A count or a sample is not exact.
    Inexact,
    /// A block or a run of slices is in no place any more.
    Lost,
    /// A block or a run is in two places, or what was handed out is none.
    Twice,
}

/// A violation: what, and in words.
pub(crate) type Bad = (Fault, &'static str);

pub(crate) trait Model {
    type State: Copy + Eq + Hash + Debug;

    fn initial(&self) -> Vec<Self::State>;
    /// Every step that is possible in a state.
    fn steps(&self, state: &Self::State, steps: &mut Steps<Self::State>);
    /// What holds in every state; `last`: no step is possible.
    fn check(&self, state: &Self::State, last: bool) -> Result<(), Bad>;
    /// Violations below this are not looked for.
    fn least(&self) -> Fault {
        Fault::Stuck
    }
}

/// The steps out of one state, each with its name.
pub(crate) struct Steps<S>(Vec<(&'static str, Result<S, Bad>)>);

impl<S> Steps<S> {
    pub(crate) fn to(&mut self, name: &'static str, state: S) {
        self.0.push((name, Ok(state)));
    }

    pub(crate) fn result(&mut self, name: &'static str, result: Result<S, Bad>) {
        self.0.push((name, result));
    }
}

/// How an exploration ended.
pub(crate) enum Outcome {
    Holds { states: usize, last: usize },
    Violated { bad: Bad, trace: String, states: usize },
}

impl Outcome {
    /// The model holds: print how much was looked at, else fail with the trace.
    pub(crate) fn must_hold(self, what: &str) -> usize {
        match self {
            Outcome::Holds { states, last } => {
                println!("{what}: holds, {states} states, {last} of them final");
                states
            }
            Outcome::Violated { bad, trace, .. } => panic!("{what}: {bad:?}\n{trace}"),
        }
    }

    /// The mutant is refuted: print how.
    pub(crate) fn must_fail(self, what: &str) -> Bad {
        match self {
            Outcome::Holds { states, .. } => panic!("{what}: not refuted in {states} states"),
            Outcome::Violated { bad, trace, states } => {
                let steps = trace.lines().count();
                println!("{what}: refuted after {states} states in {steps} steps: {bad:?}");
                if std::env::var_os("MODEL_TRACES").is_some() {
                    println!("{trace}");
                }
                bad
            }
        }
    }
}

/// Look at every reachable state. Panics beyond `limit` states: an exploration that was cut short proves nothing.
pub(crate) fn explore<M: Model>(model: &M, limit: usize) -> Outcome {
    let mut seen = Seen::new();
    for state in model.initial() {
        seen.insert(state, u32::MAX);
    }
    let (mut at, mut last) = (0, 0);
    let mut steps = Steps(Vec::new());
    while at < seen.states.len() {
        let state = seen.states[at];
        steps.0.clear();
        model.steps(&state, &mut steps);
        last += steps.0.is_empty() as usize;
        let mut bad = model.check(&state, steps.0.is_empty()).err().map(|bad| ("(here)", bad));
        for (name, result) in steps.0.drain(..) {
            match result {
                Ok(next) => seen.insert(next, at as u32),
                Err(found) if bad.is_none() && found.0 >= model.least() => bad = Some((name, found)),
                Err(_) => {}
            }
        }
        if let Some((name, bad)) = bad.filter(|(_, bad)| bad.0 >= model.least()) {
            let trace = trace(model, &seen, at, name, bad.1);
            return Outcome::Violated { bad, trace, states: seen.states.len() };
        }
        assert!(seen.states.len() <= limit, "more than {limit} states: make the model smaller");
        at += 1;
    }
    Outcome::Holds { states: seen.states.len(), last }
}

fn trace<M: Model>(model: &M, seen: &Seen<M::State>, at: usize, end: &str, why: &str) -> String {
    let mut way = vec![at];
    while seen.parents[way[way.len() - 1]] != u32::MAX {
        way.push(seen.parents[way[way.len() - 1]] as usize);
    }
    way.reverse();
    let mut text = format!("    start: {:?}\n", seen.states[way[0]]);
    for pair in way.windows(2) {
        let mut steps = Steps(Vec::new());
        model.steps(&seen.states[pair[0]], &mut steps);
        let next = seen.states[pair[1]];
        let name = steps.0.iter().find(|(_, to)| to.as_ref().is_ok_and(|to| *to == next)).map_or("?", |step| step.0);
        let _ = writeln!(text, "    {name}: {next:?}");
    }
    let _ = writeln!(text, "    {end}: {why}");
    text
}

/// The states seen, in the order of discovery, and an open hash table of their numbers.
struct Seen<S> {
    states: Vec<S>,
    parents: Vec<u32>,
    table: Vec<u32>,
}

const VACANT: u32 = u32::MAX;

impl<S: Copy + Eq + Hash> Seen<S> {
    fn new() -> Self {
        Seen { states: Vec::new(), parents: Vec::new(), table: vec![VACANT; 1 << 12] }
    }

    fn insert(&mut self, state: S, parent: u32) {
        if self.states.len() * 2 >= self.table.len() {
            self.grow();
        }
        let place = self.place(&state);
        if self.table[place] == VACANT {
            self.table[place] = self.states.len() as u32;
            self.states.push(state);
            self.parents.push(parent);
        }
    }

    /// Where a state is in the table, or would be.
    fn place(&self, state: &S) -> usize {
        let mut hasher = Multiply(0);
        state.hash(&mut hasher);
        let mask = self.table.len() - 1;
        let mut place = (hasher.finish() >> 20) as usize & mask;
        while self.table[place] != VACANT && self.states[self.table[place] as usize] != *state {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        self.table = vec![VACANT; self.table.len() * 4];
        for number in 0..self.states.len() {
            let place = self.place(&self.states[number]);
            self.table[place] = number as u32;
        }
    }
}

/// A multiplicative hash: states are small and come by the million.
struct Multiply(u64);

impl Multiply {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(byte as u64);
    }

    fn write_i8(&mut self, byte: i8) {
        self.add(byte as u8 as u64);
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.add(word as u64);
    }
}
