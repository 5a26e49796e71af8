//! Callgrind's text, with the events of Valgrind's execution trees of memory (`--xtree-memory=full`).
//!
//! The format has for each function what it has itself and what each of its callees has, and no stacks. Read back, every function is a stack
//! of its own with what it allocated itself, and totals are the same.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{Read, Write};

use super::Limits;
use super::lines::{Fault, Line, Lines};
use super::named::{Builder, Named};
use crate::error::{ReadError, WriteError};
use crate::model::{Amount, Format, Frame, Metric, Profile, Unit};
use crate::text::excerpt;

/// What the events are called; those of live and allocated memory as Valgrind calls them.
const EVENTS: [(&str, Metric, Unit); 8] = [
    ("curB", Metric::Live, Unit::Bytes),
    ("curBk", Metric::Live, Unit::Blocks),
    ("totB", Metric::Allocated, Unit::Bytes),
    ("totBk", Metric::Allocated, Unit::Blocks),
    ("peakB", Metric::Peak, Unit::Bytes),
    ("peakBk", Metric::Peak, Unit::Blocks),
    ("tmpB", Metric::Temporary, Unit::Bytes),
    ("tmpBk", Metric::Temporary, Unit::Blocks),
];
/// The name of a file that is not known, as Valgrind writes it.
const UNKNOWN: &str = "???";
const UNTOLD: &str = "callgrind files have no stacks: each function is shown alone, with what it allocated itself";

type Costs = Vec<u64>;

/// What a function has, by line, and by line, callee and the callee's line.
#[derive(Default)]
struct Function {
    own: BTreeMap<u32, Costs>,
    calls: BTreeMap<(u32, u32), Costs>,
}

pub(super) fn write(profile: &Profile, mut output: impl Write) -> Result<(), WriteError> {
    let named = Named::of(profile);
    // Frames of one function at several lines are one function.
    let mut numbers: HashMap<(&str, &str), u32> = HashMap::new();
    let mut names = Vec::new();
    let function_of: Vec<u32> = named
        .frames
        .iter()
        .map(|frame| {
            let key = (frame.file.as_deref().unwrap_or(UNKNOWN), &*frame.function);
            *numbers.entry(key).or_insert_with(|| {
                names.push(key);
                names.len() as u32 - 1
            })
        })
        .collect();
    let mut functions: Vec<Function> = names.iter().map(|_| Function::default()).collect();
    for (index, stack) in named.stacks.iter().enumerate() {
        let costs: Costs = named
            .columns
            .iter()
            .flat_map(|(.., weights)| [weights.samples()[index].bytes, weights.samples()[index].blocks])
            .collect();
        let line = |frame: u32| named.frames[frame as usize].line;
        if let Some(&leaf) = stack.last() {
            add(functions[function_of[leaf as usize] as usize].own.entry(line(leaf)).or_default(), &costs);
        }
        // A call counts once in a stack, however often it recurs.
        let mut seen = HashSet::new();
        for pair in stack.windows(2) {
            let (caller, callee) = (function_of[pair[0] as usize], function_of[pair[1] as usize]);
            if seen.insert((caller, line(pair[0]), callee)) {
                add(functions[caller as usize].calls.entry((line(pair[0]), callee)).or_default(), &costs);
            }
        }
    }
    header(&named, &mut output)?;
    let print = |costs: &Costs| costs.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    for (function, &(file, name)) in functions.iter().zip(&names) {
        writeln!(output, "\nfl={file}\nfn={name}")?;
        for (line, costs) in &function.own {
            writeln!(output, "{line} {}", print(costs))?;
        }
        for (&(line, callee), costs) in &function.calls {
            let (file, name) = names[callee as usize];
            writeln!(output, "cfi={file}\ncfn={name}\ncalls=1 0\n{line} {}", print(costs))?;
        }
    }
    let totals = named.columns.iter().flat_map(|(.., weights)| [weights.total().bytes, weights.total().blocks]);
    writeln!(output, "\ntotals: {}", print(&totals.collect()))?;
    Ok(output.flush()?)
}

fn header(named: &Named, output: &mut impl Write) -> std::io::Result<()> {
    let events = named.columns.iter().flat_map(|&(metric, ..)| {
        EVENTS.iter().filter(move |(_, known, _)| *known == metric).map(|(event, ..)| *event)
    });
    writeln!(output, "# callgrind format\nversion: 1\ncreator: mimalloc-pprof {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(output, "positions: line\nevents: {}", events.collect::<Vec<_>>().join(" "))
}

fn add(sum: &mut Costs, costs: &[u64]) {
    sum.resize(costs.len(), 0);
    sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum = sum.saturating_add(*cost));
}

pub(super) fn read<R: Read>(mut lines: Lines<'_, R>, limits: &Limits) -> Result<Profile, ReadError> {
    let mut reader = Reader::new(limits);
    while let Some(line) = lines.next()? {
        let outcome = reader.line(&line);
        outcome.map_err(|fault| lines.error(fault))?;
    }
    reader.check_totals().map_err(|fault| lines.error(fault))?;
    Ok(reader.builder.finish(&[UNTOLD]))
}

struct Reader<'l> {
    builder: Builder<'l>,
    events: Vec<Option<(Metric, Unit)>>,
    totals: Option<Costs>,
    /// The file is ours: totals are at its end.
    is_ours: bool,
    sums: Costs,
    /// Names by their numbers, `(1)`; those of files and of functions apart.
    names: HashMap<(bool, u64), String>,
    file: String,
    function: Option<String>,
    position: u64,
    /// The next line of numbers is what a callee has.
    after_call: bool,
}

impl<'l> Reader<'l> {
    fn new(limits: &'l Limits) -> Self {
        Self {
            builder: Builder::new(Format::Callgrind, limits),
            events: Vec::new(),
            totals: None,
            is_ours: false,
            sums: Vec::new(),
            names: HashMap::new(),
            file: UNKNOWN.into(),
            function: None,
            position: 0,
            after_call: false,
        }
    }

    fn line(&mut self, line: &Line<'_>) -> Result<(), Fault> {
        let text = String::from_utf8_lossy(line.text);
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        if !line.ended {
            return Err(Fault::Damaged("the file is cut off: the last line has no end".into()));
        }
        if text.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            return self.costs(text);
        }
        let key = text.find([':', '=']).map(|at| (&text[..at], text[at + 1..].trim()));
        match key {
            Some(("positions", positions)) if positions != "line" => {
                Err(Fault::Damaged("expected positions that are lines; others are not read".into()))
            }
            Some(("creator", creator)) => {
                self.is_ours = creator.starts_with("mimalloc-pprof");
                Ok(())
            }
            Some(("events", events)) => self.events(events),
            Some(("summary" | "totals", totals)) => {
                let totals: Option<Costs> = totals.split_whitespace().map(|number| number.parse().ok()).collect();
                self.totals = Some(totals.ok_or_else(|| Fault::Damaged("totals that are no numbers".into()))?);
                Ok(())
            }
            Some(("fl" | "fi" | "fe", name)) => {
                self.file = self.name(true, name)?;
                Ok(())
            }
            Some(("fn", name)) => {
                self.function = Some(self.name(false, name)?);
                Ok(())
            }
            Some(("cfi" | "cfl", name)) => self.name(true, name).map(drop),
            Some(("cfn", name)) => self.name(false, name).map(drop),
            Some(("calls", _)) => {
                self.after_call = true;
                Ok(())
            }
            Some(_) => Ok(()),
            None => Err(Fault::Damaged(format!("expected a line of a callgrind file, found {}", excerpt(line.text)))),
        }
    }

    fn events(&mut self, names: &str) -> Result<(), Fault> {
        let known = |name| EVENTS.iter().find(|(event, ..)| *event == name).map(|&(_, metric, unit)| (metric, unit));
        self.events = names.split_whitespace().map(known).collect();
        if self.events.iter().all(Option::is_none) {
            return Err(Fault::Damaged(
                "a callgrind file of something else than memory: expected the event curB or totB".into(),
            ));
        }
        self.sums = vec![0; self.events.len()];
        Ok(())
    }

    /// `(3) name` sets a name, `(3)` uses it.
    fn name(&mut self, is_file: bool, text: &str) -> Result<String, Fault> {
        let numbered = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let number = numbered.and_then(|(digits, rest)| Some((digits.parse::<u64>().ok()?, rest.trim())));
        match number {
            None => Ok(text.to_owned()),
            Some((number, "")) => self
                .names
                .get(&(is_file, number))
                .cloned()
                .ok_or_else(|| Fault::Damaged(format!("the name ({number}) was not told before"))),
            Some((number, name)) => {
                self.names.insert((is_file, number), name.to_owned());
                Ok(name.to_owned())
            }
        }
    }

    fn costs(&mut self, text: &str) -> Result<(), Fault> {
        let wrong = || Fault::Damaged(format!("expected a line and costs, found {}", excerpt(text.as_bytes())));
        let mut words = text.split_whitespace();
        let position = words.next().unwrap_or_default();
        let number = |digits: &str| digits.parse::<u64>().ok();
        self.position = match position.as_bytes() {
            b"*" => Some(self.position),
            [b'+', ..] => number(&position[1..]).and_then(|more| self.position.checked_add(more)),
            [b'-', ..] => number(&position[1..]).and_then(|less| self.position.checked_sub(less)),
            _ => number(position),
        }
        .ok_or_else(wrong)?;
        let costs: Costs = words.map(number).collect::<Option<_>>().ok_or_else(wrong)?;
        if costs.len() > self.events.len() {
            return Err(Fault::Damaged(format!("{} costs of {} events", costs.len(), self.events.len())));
        }
        if std::mem::take(&mut self.after_call) {
            return Ok(());
        }
        let name = self.function.as_deref().ok_or_else(|| Fault::Damaged("costs before any function".into()))?;
        let frame = match self.file.as_str() {
            UNKNOWN | "" => Frame::named(name),
            file => Frame::named(name).at(file, u32::try_from(self.position).map_err(|_| wrong())?),
        };
        let place = self.builder.location(frame)?;
        let stack = self.builder.stack(&[place])?;
        for ((event, cost), sum) in self.events.iter().zip(&costs).zip(&mut self.sums) {
            *sum = sum.saturating_add(*cost);
            let amount = match event {
                None => continue,
                Some((_, Unit::Bytes)) => Amount { objects: 0, bytes: *cost },
                Some((_, Unit::Blocks)) => Amount { objects: *cost, bytes: 0 },
            };
            let metric = event.map_or(Metric::Live, |(metric, _)| metric);
            self.builder.add(stack, None, metric, amount)?;
        }
        Ok(())
    }

    /// A cut at the end of a line shows in the totals.
    fn check_totals(&self) -> Result<(), Fault> {
        if self.events.is_empty() {
            return Err(Fault::Damaged("the file is cut off: it has no line \"events:\"".into()));
        }
        match &self.totals {
            None if self.is_ours => Err(Fault::Damaged("the file is cut off: it does not end with its totals".into())),
            Some(totals) if *totals != self.sums => {
                Err(Fault::Damaged("the costs do not add up to the totals: the file is cut off or damaged".into()))
            }
            _ => Ok(()),
        }
    }
}
