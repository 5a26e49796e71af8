//! `mpp symbolize`: functions, files and lines of addresses of a file.

mod addresses;
mod answers;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::{CommonArgs, NamesChoice, OutputArgs, SymbolArgs};
use crate::exit::Failure;

const EXAMPLES: &str = "\
Examples:
  mpp symbolize -e ./app 0x1139 0x4a20         what is at these addresses of ./app
  nm ./app | cut -d' ' -f1 | mpp symbolize -e ./app
  mpp symbolize -e ./app --format json - < addresses | jq .addresses[0].frames

Addresses are hexadecimal, with or without 0x, and count as the headers of the file, nm and objdump do. Each answer is
the functions at that address, the innermost inlined one first, each with its file and line below it, and a blank line.
All addresses are looked up together: the first answer is printed when the last address has been read.

Exit codes: 0 done (what is not known is ??), 1 I/O error, 2 usage, 13 no such file, not one with symbols, or no address.";

/// The flags of `mpp symbolize`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SymbolizeArgs {
    /// The executable, library or debug file that the addresses are in
    #[arg(short, long, value_name = "FILE", env = "MPP_EXE", hide_env_values = true)]
    exe: PathBuf,
    /// The addresses; `-` or none reads them from standard input, one a line
    #[arg(value_name = "ADDR")]
    addresses: Vec<String>,
    /// Print each address above its answer
    #[arg(short = 'a', long = "addresses", env = "MPP_ADDRESSES", hide_env_values = true)]
    print_addresses: bool,
    /// Leave out functions that the compiler inlined
    #[arg(long, env = "MPP_NO_INLINES", hide_env_values = true)]
    no_inlines: bool,
    /// How to write function names: without template arguments, in full, or as the linker knows them
    #[arg(long, value_enum, value_name = "STYLE", default_value = "full", env = "MPP_NAMES", hide_env_values = true)]
    names: NamesChoice,
    /// At most this many threads at once [default: as many as the machine has processors]
    #[arg(long, value_name = "N", env = "MPP_THREADS", hide_env_values = true)]
    threads: Option<NonZeroUsize>,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// How to print the answers
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text", env = "MPP_FORMAT", hide_env_values = true)]
    format: Format,
}

/// See [`SymbolizeArgs::format`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line for the function, a line for its place, a blank line after each address
    Text,
    /// For programs: schema, schema_version, plain integers
    Json,
}

/// Runs the verb.
///
/// # Errors
/// If there is no file with symbols, something is not an address, or the answers cannot be written.
pub(crate) fn symbolize(args: &SymbolizeArgs, common: CommonArgs) -> Result<(), Failure> {
    addresses::symbolize(args, common)
}
