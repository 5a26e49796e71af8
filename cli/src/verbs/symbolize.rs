//! `mpp symbolize`: a profile with the names of its functions in it; or functions, files and lines of addresses of a file.

mod addresses;
mod answers;
mod profile;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::{CommonArgs, NamesChoice, OutputArgs, SymbolArgs};
use crate::exit::Failure;

const EXAMPLES: &str = "\
Examples:
  mpp symbolize app.heap -o app.pb.gz          for pprof and for other machines: names, files, lines, inlined functions
  mpp symbolize -e ./app 0x1139 0x4a20         what is at these addresses of ./app
  nm ./app | cut -d' ' -f1 | mpp symbolize -e ./app
  mpp symbolize -e ./app --format json - < addresses | jq .addresses[0].frames

Without -e, INPUT is a profile or recording, and the result is a profile.proto with what is known about its addresses.

With -e, each INPUT is an address, hexadecimal, with or without 0x; it counts as the headers of the file, nm and objdump
do. Each answer is the functions at that address, the innermost inlined one first, each with its file and line below it,
and a blank line. All addresses are looked up together: the first answer is printed when the last address has been read.

Exit codes: 0 done (what is not known is ??), 1 I/O error, 2 usage, 13 no such file or one that cannot be used.";

/// The flags of `mpp symbolize`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SymbolizeArgs {
    /// A heap profile, a recording folder, or `-` for standard input [default: the newest recording below this folder];
    /// with -e the addresses, `-` or none reads them from standard input, one a line
    #[arg(value_name = "INPUT")]
    inputs: Vec<String>,
    /// Look up addresses of this executable, library or debug file
    #[arg(short, long, value_name = "FILE", env = "MPP_EXE", hide_env_values = true)]
    exe: Option<PathBuf>,
    /// The process of a recording [default: the one that was started]
    #[arg(long, value_name = "PID", env = "MPP_PID", hide_env_values = true, conflicts_with = "all")]
    pid: Option<u32>,
    /// All processes of a recording as one
    #[arg(long, env = "MPP_ALL", hide_env_values = true)]
    all: bool,
    /// With -e: print each address above its answer
    #[arg(short = 'a', long = "addresses", env = "MPP_ADDRESSES", hide_env_values = true)]
    print_addresses: bool,
    /// With -e: leave out functions that the compiler inlined
    #[arg(long, env = "MPP_NO_INLINES", hide_env_values = true)]
    no_inlines: bool,
    /// With -e: how to write function names: type and function; with namespaces and template arguments; in full; or as
    /// the linker knows them
    #[arg(long, value_enum, value_name = "STYLE", default_value = "full", env = "MPP_NAMES", hide_env_values = true)]
    names: NamesChoice,
    /// With -e: at most this many threads at once [default: as many as the machine has processors]
    #[arg(long, value_name = "N", env = "MPP_THREADS", hide_env_values = true)]
    threads: Option<NonZeroUsize>,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// How to write the result [default: proto-gz, with -e text]
    #[arg(long, value_enum, value_name = "FORMAT", env = "MPP_SYMBOLIZE_FORMAT", hide_env_values = true)]
    format: Option<Format>,
}

/// See [`SymbolizeArgs::format`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// pprof's profile.proto
    Proto,
    /// The same packed with gzip, as pprof has it
    ProtoGz,
    /// With -e: a line for the function, a line for its place, a blank line after each address
    Text,
    /// With -e: for programs: schema, schema_version, plain integers
    Json,
}

/// Runs the verb.
///
/// # Errors
/// If there is no file with symbols, or no profile, something is not an address, or the result cannot be written.
pub(crate) fn symbolize(args: &SymbolizeArgs, common: CommonArgs) -> Result<(), Failure> {
    match &args.exe {
        Some(file) => addresses::symbolize(file, args, common),
        None => profile::symbolize(args, common),
    }
}
