//! `mpp man`: manual pages, from the same definitions as `--help`.

use std::path::PathBuf;

use anyhow::Context;
use clap::builder::Resettable;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Cli, CommonArgs};
use crate::exit::{Code, Failure};
use crate::{message, output};

const EXAMPLES: &str = "\
Examples:
  mpp man | man -l -              the page of mpp
  mpp man top | man -l -          that of a verb
  mpp man -o ~/.local/share/man/man1      all of them into a folder; then `man mpp-top`";

/// The flags of `mpp man`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// A verb [default: the page that names them all]
    #[arg(value_name = "VERB")]
    verb: Option<String>,
    /// Write the pages of all verbs into this folder
    #[arg(short, long, value_name = "DIR", conflicts_with = "verb")]
    output: Option<PathBuf>,
    /// Replace pages that exist
    #[arg(long, requires = "output")]
    force: bool,
}

/// Runs the verb.
///
/// # Errors
/// If there is no such verb, or a page cannot be written.
pub(crate) fn man(args: &ManArgs, common: CommonArgs) -> Result<(), Failure> {
    let mut command = Cli::command();
    command.build();
    let Some(folder) = &args.output else {
        let of_verb = args.verb.as_deref().map(|verb| {
            let why = || Failure::new(Code::Usage, format!("there is no verb {verb}; `mpp help` names them all"));
            command.find_subcommand(verb).ok_or_else(why)
        });
        let page = page(of_verb.transpose()?.unwrap_or(&command).clone(), args.verb.as_deref())?;
        return Ok(output::to_stdout(&page)?);
    };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
    let pages = std::iter::once((None, &command)).chain(verbs.map(|verb| (Some(verb.get_name()), verb)));
    let mut written = 0;
    for (verb, command) in pages {
        let name = verb.map_or_else(|| "mpp.1".to_owned(), |verb| format!("mpp-{verb}.1"));
        output::to_file(&folder.join(name), &page(command.clone(), verb)?, || args.force)?;
        written += 1;
    }
    message::note(common, format!("{written} pages written to {}", folder.display()));
    Ok(())
}

fn page(command: Command, verb: Option<&str>) -> anyhow::Result<Vec<u8>> {
    let name = verb.map_or_else(|| "mpp".to_owned(), |verb| format!("mpp-{verb}"));
    // Examples are lines, and stay lines.
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let command = command.name(name.clone()).version(env!("CARGO_PKG_VERSION")).after_help(Resettable::Reset);
    let mut page = Vec::new();
    Man::new(command).title(name.to_uppercase()).render(&mut page)?;
    if !examples.is_empty() {
        page.extend_from_slice(b".SH NOTES\n.nf\n");
        for line in examples.lines() {
            page.extend_from_slice(plain(line).as_bytes());
        }
        page.extend_from_slice(b".fi\n");
    }
    Ok(page)
}

/// A line in which nothing is markup.
fn plain(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    let guard = if text.starts_with('.') { "\\&" } else { "" };
    format!("{guard}{text}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_what_they_are() {
        assert_eq!(plain(".x -a 'b' \\ `c`"), "\\&.x \\-a \\(aqb\\(aq \\e \\(gac\\(ga\n");
    }
}
