//! `mpp completions`: what a shell needs to complete verbs, flags and values.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::Failure;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  mpp completions bash > ~/.local/share/bash-completion/completions/mpp
  mpp completions zsh > ~/.zfunc/_mpp          (with ~/.zfunc in fpath)
  mpp completions fish > ~/.config/fish/completions/mpp.fish";

/// The flags of `mpp completions`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Runs the verb.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "mpp", &mut script);
    Ok(output::to_stdout(&script)?)
}
