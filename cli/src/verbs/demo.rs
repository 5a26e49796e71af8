//! `mpp demo`: a recording of a program that everybody has, because it is in `mpp`: to see what it is like.

mod program;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;
use clap::Args;

use crate::args::CommonArgs;
use crate::exit::{Code, Failure};
use crate::input::shell_word;
use crate::{message, output};

pub(crate) use program::run as run_program;

const EXAMPLES: &str = "\
Examples:
  mpp demo                 records a small web shop that leaks, and asks the first questions
  mpp demo -o /tmp/demo    somewhere else

Nothing is sent anywhere. The recording stays, to be asked more: mpp tree, mpp flame, mpp check.";

/// The flags of `mpp demo`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// The folder of the recording
    #[arg(short, long, value_name = "DIR", default_value = "mpp-demo")]
    output: PathBuf,
}

/// The hidden verb that is the program.
pub(crate) const PROGRAM: &str = "demo-program";

/// Runs the verb.
///
/// # Errors
/// If the recording cannot be made.
pub(crate) fn demo(args: &DemoArgs, common: CommonArgs) -> Result<(), Failure> {
    let own = std::env::current_exe().context("cannot find mpp itself")?;
    let folder = shell_word(&args.output);
    let show = |words: &[&str]| -> Result<(), Failure> {
        output::to_stdout(format!("\n$ mpp {}\n", words.join(" ")).as_bytes())?;
        let status = Command::new(&own).args(words).stdin(Stdio::null()).status().context("cannot start mpp")?;
        match status.success() {
            true => Ok(()),
            false => Err(Failure::new(Code::Internal, format!("mpp {} has failed", words.join(" ")))),
        }
    };
    message::note(common, format!("recording a small web shop (it is inside mpp) into {folder}"));
    let mut command = Command::new(&own);
    command.args(["run", "--sample", "16KiB", "-o"]).arg(&args.output).arg("--").arg(&own).arg(PROGRAM);
    let status = command.stdin(Stdio::null()).status().context("cannot start mpp")?;
    if !status.success() {
        return Err(Failure::new(Code::Internal, "the recording has failed; see above"));
    }
    let Some(recording) = args.output.to_str() else {
        return Err(Failure::new(Code::Usage, "name a folder in UTF-8"));
    };
    show(&["leaks", recording, "--limit", "3"])?;
    show(&["top", recording, "--metric", "temp", "--limit", "3"])?;
    show(&["tree", recording, "--metric", "peak", "--min-percent", "10"])?;
    let text = format!(
        "\nremember_session leaks: each request keeps a session for ever. render_page makes a buffer that it throws away at once.\n\
         load_catalogue is what is needed. Next:\n  mpp flame {folder} --open\n  mpp timeline {folder}\n  mpp run -- YOUR-PROGRAM\n"
    );
    Ok(output::to_stdout(text.as_bytes())?)
}
