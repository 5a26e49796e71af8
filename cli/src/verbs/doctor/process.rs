//! A process that runs.

use std::path::PathBuf;

use super::Finding;
use crate::preload;
use crate::verbs::ctl;

pub(super) fn look(pid: u32) -> Vec<Finding> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    if !folder.is_dir() {
        return vec![Finding::bad("process", format!("there is no process {pid}"), "look for it with ps")];
    }
    let program = std::fs::read_link(folder.join("exe"));
    let named = program.as_ref().map_or_else(|error| error.to_string(), |program| program.display().to_string());
    let mut findings = vec![Finding::ok("process", named)];
    let again = program.map_or_else(|_| "PROGRAM".to_owned(), |program| program.display().to_string());
    match std::fs::read_to_string(folder.join("maps")) {
        Err(error) => {
            let advice = "run mpp as the user of the process";
            findings.push(Finding::bad("allocator", format!("its memory map cannot be read: {error}"), advice));
        }
        Ok(maps) if maps.contains(preload::FILE_NAME) => {
            findings.push(Finding::ok("allocator", "is preloaded"));
            findings.push(channel(pid));
        }
        Ok(_) => {
            let advice = format!(
                "a process that runs cannot be entered from outside without risk to it; restart it: mpp run --ctl -- {again}"
            );
            findings.push(Finding::bad("allocator", "is not in this process", advice));
        }
    }
    findings
}

fn channel(pid: u32) -> Finding {
    match ctl::status(pid) {
        Ok(status) => Finding::ok("control channel", format!("answers: {status}")),
        Err(why) => {
            Finding::hint("control channel", why, "start it with mpp run --ctl to be able to ask it while it runs")
        }
    }
}
