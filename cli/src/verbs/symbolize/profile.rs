//! From a profile with addresses to one with names, as `profile.proto`.

use std::path::{Path, PathBuf};

use mpp_profile::Metric;
use mpp_profile::analysis::Quality;
use mpp_profile::formats::pprof;

use super::{Format, SymbolizeArgs};
use crate::args::{CommonArgs, InputArgs};
use crate::exit::{Code, Failure, OrExit};
use crate::{heading, input, message, output};

/// Where the profile goes without `-o`.
const DEFAULT_FILE: &str = "symbolized.pb.gz";

/// Writes the profile that the flags tell, with names.
pub(super) fn symbolize(args: &SymbolizeArgs, common: CommonArgs) -> Result<(), Failure> {
    let is_packed = match args.format {
        None | Some(Format::ProtoGz) => true,
        Some(Format::Proto) => false,
        Some(Format::Text | Format::Json) => {
            return Err(Failure::new(Code::Usage, "a profile is written as proto or proto-gz; see --format"));
        }
    };
    let input = match args.inputs.as_slice() {
        [] => None,
        [only] => Some(PathBuf::from(only)),
        [_, second, ..] => {
            let why = format!("one profile at a time; for addresses of a file name it with -e (found {second:?})");
            return Err(Failure::new(Code::Usage, why));
        }
    };
    let loaded =
        input::load(&InputArgs { input, pid: args.pid, all: args.all, ..InputArgs::default() }, &args.symbols, common)?;
    let mut content = Vec::new();
    let written = match is_packed {
        true => pprof::write_packed(&loaded.profile, &mut content),
        false => pprof::write(&loaded.profile, &mut content),
    };
    written.or_exit(Code::Input)?;
    message::note(common, heading::quality(&Quality::of(&loaded.profile, Metric::Live)));
    let path = match args.output.output.as_deref() {
        Some(path) if path == Path::new("-") => return Ok(output::to_stdout(&content)?),
        Some(path) => path,
        None => Path::new(DEFAULT_FILE),
    };
    output::to_file(path, &content, || args.output.force)?;
    Ok(output::to_stdout(format!("{}\n", path.display()).as_bytes())?)
}
