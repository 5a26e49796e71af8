//! Functions, inlined calls, files and lines from DWARF debug information (versions 2 to 5).
//!
//! All addresses of a module are known before any debug information is read, so nothing is indexed for later, and
//! sections are not read as a whole: first it is found out which units are needed, then each of those is read, by
//! whichever thread is free, and dropped. So the memory used is that of a unit for each thread.
//!
//! - `sections` knows the sections, `window` reads them here and there, `cursor` reads numbers;
//! - `units` finds the units, `assign` which addresses belong to each;
//! - `abbreviations` and `values` read entries, or go past them;
//! - `functions` finds the functions and inlined calls in a unit, `names` what they are called;
//! - `lines` runs a unit's line table, `ranges` reads lists of address ranges;
//! - `split` finds what compilers write to files of their own;
//! - `worker` puts the answers together;
//! - `fuel` bounds the work that damaged or hostile files can cause.

mod abbreviations;
mod assign;
mod cursor;
mod encoding;
pub(crate) mod fuel;
mod functions;
mod lines;
mod names;
mod ranges;
mod sections;
mod split;
#[cfg(test)]
mod testing;
mod units;
mod values;
mod window;
mod worker;

use self::assign::{Assigner, Task};
use self::fuel::{Fault, Fuel};
use self::names::Interned;
pub(crate) use self::sections::Sections;
pub(crate) use self::split::Splits;
use self::units::DebugFile;
use self::worker::Worker;
use crate::Frame;
use crate::threads::{self, Permits};

/// What was found for one address.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The innermost function first; never empty.
    pub(crate) frames: Vec<Frame>,
    /// The last frame has no name, or one without namespace and parameters where the language has them, so the name
    /// of a symbol may say more.
    pub(crate) name_is_poor: bool,
}

/// Looks up `addresses` (ascending virtual addresses) in the debug information `main`, some of which may have been
/// moved to the file `supplementary`, or be in files of their own, `splits`. One answer for each address, and what went wrong.
pub(crate) fn look_up(
    main: &Sections,
    supplementary: Option<&Sections>,
    splits: &Splits<'_>,
    addresses: &[u64],
    permits: &Permits,
) -> (Vec<Option<Answer>>, Vec<Problem>) {
    let mut problems = Problems::default();
    let fuel = Fuel::for_size(main.size().saturating_add(supplementary.map_or(0, Sections::size)));
    let mut meter = fuel.meter();
    let (main, result) = DebugFile::new(main, &mut meter);
    problems.note("the list of units", result);
    let supplementary = supplementary.map(|sections| {
        let (file, result) = DebugFile::new(sections, &mut meter);
        problems.note("the list of units of the supplementary file", result);
        file
    });
    let interned = Interned::default();
    let mut answers: Vec<Option<Answer>> = Vec::new();
    answers.resize_with(addresses.len(), || None);
    let run = |tasks: &[Task], answers: &mut Vec<Option<Answer>>, problems: &mut Problems| {
        let new_worker = || Worker::new(&main, supplementary.as_ref(), splits, &interned, addresses, fuel.meter());
        let results = threads::for_each(tasks, permits, new_worker, Worker::run);
        for (task, (found, result)) in tasks.iter().zip(results) {
            problems.note(&format!("the unit at {:#x}", task.unit), result);
            for (&index, answer) in task.addresses.iter().zip(found) {
                let slot = &mut answers[index as usize];
                // Of several units that claim the address, the first of those that know most.
                if answer.as_ref().map(Answer::rank) > slot.as_ref().map(Answer::rank) {
                    *slot = answer;
                }
            }
        }
    };
    let mut assigner = Assigner::new(&main, addresses);
    let (tasks, result) = assigner.first_tasks(&mut meter);
    problems.note("the first entry of a unit", result);
    run(&tasks, &mut answers, &mut problems);
    // What the index gives to one unit may be in another: an address in no function is asked for again.
    let is_in_no_function = |answer: &Option<Answer>| answer.as_ref().is_none_or(|answer| !answer.rank().0);
    let rest: Vec<u32> =
        (0..addresses.len()).filter(|&index| is_in_no_function(&answers[index])).map(|index| index as u32).collect();
    let (tasks, result) = assigner.second_tasks(&rest, &tasks, &mut meter);
    problems.note("the first entry of a unit", result);
    run(&tasks, &mut answers, &mut problems);
    (answers, problems.list)
}

impl Answer {
    fn rank(&self) -> (bool, bool) {
        let has = |test: fn(&Frame) -> bool| self.frames.iter().any(test);
        (has(|frame| frame.function.is_some()), has(|frame| frame.line != 0))
    }
}

/// What went wrong in reading debug information, without the name of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It is damaged.
    Damaged(String),
    /// It would take too much work.
    TooMuchWork,
}

/// Most problems that are listed for one module.
const MAX_PROBLEMS: usize = 8;

#[derive(Default)]
struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    fn note(&mut self, place: &str, result: Result<(), Fault>) {
        let Err(fault) = result else { return };
        let problem = fault.what().map_or(Problem::TooMuchWork, |what| Problem::Damaged(format!("{place}: {what}")));
        if self.list.len() < MAX_PROBLEMS && !self.list.contains(&problem) {
            self.list.push(problem);
        }
    }
}
