//! Asks each tool the same questions, in turn, several times over.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::addresses::{Spread, draw, text_of};
use super::frames::{Agreement, Frame};
use super::tools::Tool;
use crate::child::{End, Job, last_words, run};
use crate::performance::machine::Machine;
use crate::progress::Watch;
use crate::stats::Scatter;

/// A file and how many addresses of it are asked for.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name in tables.
    pub name: String,
    /// The file.
    pub file: PathBuf,
    /// How many addresses.
    pub count: usize,
    /// How they lie.
    pub spread: Spread,
    /// The tool that ours is compared with.
    pub reference: &'static str,
    /// What ours should stay below on one thread: CPU seconds and MB, where there is a target.
    pub target: (Option<f64>, Option<f64>),
}

/// What one tool used for one row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The tool.
    pub tool: String,
    /// Median processor time, user and system, in seconds.
    pub cpu: Option<f64>,
    /// Median wall time in seconds.
    pub wall: Option<f64>,
    /// Largest peak of resident memory in MB (10⁶ bytes), pages of files included.
    pub peak: Option<f64>,
    /// Why there is no figure.
    pub problem: Option<String>,
    /// How far its answers are those of ours on one thread; `None` where they are not read.
    pub agreement: Option<Agreement>,
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The row's name.
    pub row: String,
    /// Size of the file in bytes.
    pub file_size: u64,
    /// How many addresses.
    pub count: usize,
    /// Ours is compared with this tool.
    pub reference: String,
    /// The target: CPU seconds, MB.
    pub target: (Option<f64>, Option<f64>),
    /// One for each tool.
    pub cells: Vec<Cell>,
}

/// The schema of the file with the measurements.
pub const SCHEMA: &str = "mpp-symbolization";
/// Rises when a field changes its meaning or goes away.
pub const VERSION: u32 = 1;

/// All of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`].
    pub schema_version: u32,
    /// How it was started.
    pub command: String,
    /// On what.
    pub machine: Machine,
    /// How often each tool was asked.
    pub rounds: usize,
    /// The rows.
    pub rows: Vec<Measured>,
    /// Tools that are not installed.
    pub missing: Vec<String>,
}

/// How to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is asked.
    pub rows: Vec<Row>,
    /// Who is asked.
    pub tools: Vec<Tool>,
    /// How often.
    pub rounds: usize,
    /// Longest wall time of one run; a tool that takes longer is asked once only.
    pub limit: Duration,
    /// Draws the addresses.
    pub seed: u64,
    /// For inputs and outputs.
    pub folder: PathBuf,
}

/// Measures all rows.
///
/// # Errors
/// A sentence when a row's file or the folder cannot be used.
pub fn measure(plan: &Plan, watch: &mut dyn Watch) -> Result<Vec<Measured>, String> {
    watch.starts(plan.rows.len() * plan.tools.len() * plan.rounds);
    plan.rows.iter().map(|row| measure_row(plan, row, watch)).collect()
}

fn measure_row(plan: &Plan, row: &Row, watch: &mut dyn Watch) -> Result<Measured, String> {
    let addresses = draw(text_of(&row.file)?, row.count, row.spread, plan.seed);
    let input = plan.folder.join("addresses");
    let text: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    std::fs::write(&input, text).map_err(|error| format!("{}: {error}", input.display()))?;
    let mut figures: Vec<Figures> = plan.tools.iter().map(|_| Figures::default()).collect();
    // One round that is not counted, of ours alone: it brings the file into the page cache.
    // What fails here fails again below, and is told there.
    let _ = ask(plan, row, &plan.tools[0], &input, &addresses)?;
    for _ in 0..plan.rounds {
        for (tool, figures) in plan.tools.iter().zip(&mut figures) {
            watch.runs(&row.name, &tool.name);
            if figures.problem.is_none() {
                figures.add(ask(plan, row, tool, &input, &addresses)?);
            }
        }
    }
    let ours = figures[0].answers.take();
    let cell = |(tool, figures): (&Tool, Figures)| {
        let agreement = match (&ours, &figures.answers) {
            (Some(ours), Some(theirs)) => Some(Agreement::of(ours, theirs)),
            _ => None,
        };
        Cell { tool: tool.name.clone(), agreement, ..figures.cell() }
    };
    Ok(Measured {
        row: row.name.clone(),
        file_size: std::fs::metadata(&row.file).map_or(0, |data| data.len()),
        count: row.count,
        reference: row.reference.to_owned(),
        target: row.target,
        cells: plan.tools.iter().zip(figures).map(cell).collect(),
    })
}

/// What the runs of one tool came to.
#[derive(Default)]
struct Figures {
    cpu: Vec<f64>,
    wall: Vec<f64>,
    peak: f64,
    answers: Option<Vec<Vec<Frame>>>,
    problem: Option<String>,
}

/// One run: CPU and wall time in seconds, peak in MB, answers; or why there are none.
type Asked = Result<(f64, f64, Option<f64>, Option<Vec<Vec<Frame>>>), String>;

impl Figures {
    fn add(&mut self, asked: Asked) {
        match asked {
            Ok((cpu, wall, peak, answers)) => {
                self.cpu.push(cpu);
                self.wall.push(wall);
                self.peak = self.peak.max(peak.unwrap_or(0.0));
                self.answers = answers;
            }
            Err(problem) => self.problem = Some(problem),
        }
    }

    fn cell(&self) -> Cell {
        let median = |values: &[f64]| Scatter::of(values).ok().map(|scatter| scatter.median);
        Cell {
            cpu: median(&self.cpu),
            wall: median(&self.wall),
            peak: Some(self.peak).filter(|peak| *peak > 0.0),
            problem: self.problem.clone(),
            ..Cell::default()
        }
    }
}

fn ask(plan: &Plan, row: &Row, tool: &Tool, input: &Path, addresses: &[u64]) -> Result<Asked, String> {
    let output = plan.folder.join("answers");
    let mut arguments = tool.arguments_for(&row.file);
    // Of a tool that does not read them from its standard input.
    if arguments.last().is_some_and(|last| last == "@ADDRESSES") {
        arguments.pop();
        arguments.extend(addresses.iter().map(|address| format!("{address:#x}")));
    }
    let job = Job {
        program: tool.program.clone(),
        arguments,
        environment: vec![("DEBUGINFOD_URLS".to_owned(), String::new())],
        input: Some(input.to_owned()),
        folder: None,
        output: output.clone(),
        limit: plan.limit,
        client: None,
    };
    let usage = run(&job).map_err(|error| format!("{}: {error}", tool.program.display()))?;
    Ok(match usage.end {
        End::Status(0) => {
            let text = std::fs::read(&output).map_err(|error| error.to_string())?;
            let answers = tool.read(&String::from_utf8_lossy(&text));
            let peak = usage.peak_rss.map(|peak| peak as f64 / 1e6);
            Ok((usage.cpu.as_secs_f64().max(1e-4), usage.wall.as_secs_f64().max(1e-4), peak, answers))
        }
        End::Status(status) => Err(format!("exit status {status}{}", last_words(&output))),
        End::Signal(signal) => Err(format!("killed by signal {signal}")),
        End::TimedOut => Err(format!("not done after {} s", plan.limit.as_secs())),
    })
}
