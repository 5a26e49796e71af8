//! Runs a plan. Whoever crashes, hangs, damages blocks or is not what it should be is noted, and the rest goes on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use mpp_workloads::memory_return::calls::Counted;
use mpp_workloads::memory_return::record::Record;
use serde_json::Value;

use super::plan::Task;
use super::results::{Cell, Counts, Row};
use crate::child::{self, End, Job};
use crate::peers::Peer;
use crate::performance::plan::schedule;
use crate::progress::Watch;

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rows.
    pub tasks: Vec<Task>,
    /// The allocators, and ours with other options.
    pub contenders: Vec<Peer>,
    /// How often each pair of both is measured.
    pub rounds: usize,
    /// Decides the order, and the operations of workloads.
    pub seed: u64,
    /// Wall time of one run at most.
    pub limit: Duration,
    /// The program `mpp-workload`.
    pub workload: PathBuf,
    /// For output of programs.
    pub folder: PathBuf,
}

/// Measures. Returns the rows, with cells in the order of the contenders.
pub fn measure(plan: &Plan, watch: &mut dyn Watch) -> Vec<Row> {
    let mut rows: Vec<_> = plan.tasks.iter().map(|task| empty_row(task, plan.contenders.len())).collect();
    let takes_part = |row: usize, peer: usize| plan.tasks[row].contenders.contains(&peer);
    let runs = schedule(plan.tasks.len(), plan.contenders.len(), plan.rounds, plan.seed).into_iter();
    let runs: Vec<_> = runs.filter(|run| takes_part(run.row, run.peer) && !plan.tasks[run.row].is_idle).collect();
    let idle: usize = plan.tasks.iter().filter(|task| task.is_idle).map(|task| task.contenders.len()).sum();
    watch.starts(runs.len() + idle);
    for run in runs {
        let (task, peer) = (&plan.tasks[run.row], &plan.contenders[run.peer]);
        watch.runs(task.name, &peer.name);
        let cell = &mut rows[run.row].cells[run.peer];
        if cell.problem.is_some() {
            continue;
        }
        let line = if run.round == 0 { &task.first_arguments } else { &task.arguments };
        note(cell, record(plan, line, peer), task, peer, watch);
        if run.round == 0 && task.is_traced && cell.problem.is_none() {
            match counts(plan, &task.arguments, peer) {
                Ok(counts) => cell.calls = Some(counts),
                Err(problem) => watch.notes(&format!("{}, {}: calls not counted: {problem}", task.name, peer.name)),
            }
        }
    }
    for (task, row) in plan.tasks.iter().zip(&mut rows).filter(|(task, _)| task.is_idle) {
        all_at_once(plan, task, row, watch);
    }
    rows
}

fn empty_row(task: &Task, contenders: usize) -> Row {
    let line: Vec<_> = task.arguments.iter().map(String::as_str).collect();
    Row {
        name: task.name.to_owned(),
        group: task.group.name().to_owned(),
        line: format!("mpp-workload {}", line.join(" ")),
        cells: vec![Cell::default(); contenders],
    }
}

fn note(cell: &mut Cell, seen: Result<Record, String>, task: &Task, peer: &Peer, watch: &mut dyn Watch) {
    match seen {
        Ok(record) => cell.records.push(record),
        Err(problem) => {
            watch.notes(&format!("{}, {}: not measured: {problem}", task.name, peer.name));
            cell.problem = Some(problem);
        }
    }
}

/// A row in which nobody computes, under all contenders at the same time.
fn all_at_once(plan: &Plan, task: &Task, row: &mut Row, watch: &mut dyn Watch) {
    let line = &task.arguments;
    let seen: Vec<_> = std::thread::scope(|scope| {
        let run = |&at: &usize| (at, scope.spawn(move || record(plan, line, &plan.contenders[at])));
        let running: Vec<_> = task.contenders.iter().map(run).collect();
        let join = |(at, thread): (usize, std::thread::ScopedJoinHandle<'_, _>)| {
            (at, thread.join().unwrap_or_else(|_| Err("the harness failed".to_owned())))
        };
        running.into_iter().map(join).collect()
    });
    for (at, seen) in seen {
        watch.runs(task.name, &plan.contenders[at].name);
        note(&mut row.cells[at], seen, task, &plan.contenders[at], watch);
    }
}

/// Runs a line and reads what it saw.
fn record(plan: &Plan, line: &[String], peer: &Peer) -> Result<Record, String> {
    let [(_, value)] = run(plan, line, &[], peer)?
        .try_into()
        .map_err(|lines: Vec<_>| format!("it printed {} lines, not one", lines.len()))?;
    let record: Record = serde_json::from_value(value).map_err(|error| format!("its line: {error}"))?;
    if !peer.is_in(&record.malloc_from) {
        return Err(format!("its malloc is in {}", record.malloc_from));
    }
    Ok(record)
}

/// Runs a line once more and counts system calls.
fn counts(plan: &Plan, line: &[String], peer: &Peer) -> Result<Counts, String> {
    let lines: BTreeMap<_, _> = run(plan, line, &["--trace"], peer)?.into_iter().collect();
    let read = |kind: &str| {
        let value = lines.get(kind).cloned();
        value.map(|value| serde_json::from_value::<Counted>(value).map_err(|error| error.to_string())).transpose()
    };
    let all = read("calls")?.ok_or("it printed no counts")?;
    let empty = read("calls-of-empty-run")?.map(|counted| counted.calls);
    Ok(Counts { all: all.calls, empty, marked: all.marked })
}

/// Runs a line to its good end. Returns what it printed, by kind.
fn run(plan: &Plan, line: &[String], more: &[&str], peer: &Peer) -> Result<Vec<(String, Value)>, String> {
    let seed = ["--seed".to_owned(), plan.seed.to_string()];
    let job = Job {
        program: plan.workload.clone(),
        arguments: line.iter().cloned().chain(seed).chain(more.iter().map(|&word| word.to_owned())).collect(),
        environment: peer.environment(),
        input: None,
        folder: None,
        output: plan.folder.join(format!("output-{}", peer.name)),
        limit: plan.limit,
        client: None,
    };
    let usage = child::run(&job).map_err(|error| format!("{}: {error}", job.program.display()))?;
    let words = || child::last_words(&job.output);
    match usage.end {
        End::Status(0) => {}
        End::Status(status) => return Err(format!("ended with status {status}{}", words())),
        End::Signal(signal) => return Err(format!("killed by signal {signal}{}", words())),
        End::TimedOut => return Err(format!("hung: no end after {:?}", job.limit)),
    }
    let text = std::fs::read_to_string(&job.output).map_err(|error| error.to_string())?;
    // A library may print something of its own.
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| {
            let value: Value = serde_json::from_str(line).map_err(|error| format!("its line is no JSON: {error}"))?;
            Ok((value["kind"].as_str().unwrap_or_default().to_owned(), value))
        })
        .collect()
}
