//! From addresses that somebody typed, or that come in on standard input, to answers on standard output.

use std::io::{self, BufRead, Read};
use std::path::Path;

use mpp_profile::text::escaped;
use mpp_symbolizer::Symbolizer;

use super::answers::{self, Look};
use super::{Format, SymbolizeArgs};
use crate::args::CommonArgs;
use crate::exit::{Code, Failure};
use crate::progress::with_spinner;
use crate::symbols::{self, Found};
use crate::{message, output};

/// Longest line of standard input that is looked at, in bytes: an address has 18 at most, the rest is white space.
const LONGEST_LINE: u64 = 256;

/// Looks up the addresses that the flags tell, in `file`.
pub(super) fn symbolize(file: &Path, args: &SymbolizeArgs, common: CommonArgs) -> Result<(), Failure> {
    let is_json = match args.format {
        None | Some(Format::Text) => false,
        Some(Format::Json) => true,
        Some(Format::Proto | Format::ProtoGz) => {
            return Err(Failure::new(Code::Usage, "answers for addresses come as text or json; see --format"));
        }
    };
    let addresses = match args.inputs.as_slice() {
        [] => read(io::stdin().lock())?,
        [only] if only == "-" => read(io::stdin().lock())?,
        given => given.iter().map(|word| parse(word, Code::Usage)).collect::<Result<_, _>>()?,
    };
    let mut options = symbols::options(&args.symbols);
    options.threads = args.threads.map_or(0, usize::from);
    let mut symbolizer = Symbolizer::new(options);
    let look_up = || symbolizer.symbolize_file(file, &addresses);
    let answers = with_spinner("looking up functions and lines", common.quiet, look_up);
    // Its message has its cause in it already.
    let mut answers = answers.map_err(|error| Failure::new(Code::Input, error))?;
    for frame in answers.iter_mut().flat_map(|answer| &mut answer.frames) {
        let place = frame.file.as_ref().and_then(|file| symbols::moved_file(&args.symbols.source_dir, file));
        frame.file = place.map(Into::into).or(frame.file.take());
    }
    let found: Option<Found> = symbolizer.report().first().map(Found::of);
    if let Some(found) = &found {
        found.problems.iter().for_each(|problem| message::warning(common, problem));
        if common.verbose {
            message::note(common, found.note());
        }
    }
    let look = Look { names: args.names, inlines: !args.no_inlines, addresses: args.print_addresses };
    let text = if is_json { answers::json(&answers, look, found.as_ref())? } else { answers::text(&answers, look) };
    match args.output.output.as_deref().filter(|path| *path != Path::new("-")) {
        None => Ok(output::to_stdout(text.as_bytes())?),
        Some(path) => Ok(output::to_file(path, text.as_bytes(), || args.output.force)?),
    }
}

/// One address a line; blank lines say nothing.
fn read(mut input: impl BufRead) -> Result<Vec<u64>, Failure> {
    let mut addresses = Vec::new();
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let context = |error: io::Error| Failure::new(Code::Input, format!("standard input: {error}"));
        if input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(context)? == 0 {
            break;
        }
        let word = String::from_utf8_lossy(&line);
        let word = word.trim();
        if !word.is_empty() {
            let located = |failure: Failure| Failure {
                error: failure.error.context(format!("standard input, line {number}")),
                ..failure
            };
            addresses.push(parse(word, Code::Input).map_err(located)?);
        }
    }
    Ok(addresses)
}

/// A hexadecimal number, with or without `0x`.
fn parse(word: &str, code: Code) -> Result<u64, Failure> {
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word);
    // The parser would take a sign.
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let address = is_plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten();
    let wrong = || format!("expected a hexadecimal address of up to 64 bits, found \"{}\"", escaped(word));
    address.ok_or_else(|| Failure::new(code, wrong()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_and_without_prefix() {
        let input = b"0x1139\n\n  4A20 \r\nffffffffffffffff\n0X0";
        assert_eq!(read(&input[..]).expect("addresses"), [0x1139, 0x4a20, u64::MAX, 0]);
        assert_eq!(read(&b""[..]).expect("nothing"), Vec::<u64>::new());
    }

    #[test]
    fn what_is_no_address_is_refused_by_its_line() {
        for bad in ["0x", "+12", "main", "10000000000000000", "1 2", "0x-1", "\u{1b}[31m"] {
            let failure = read(format!("1\n{bad}\n").as_bytes()).expect_err(bad);
            let text = format!("{:#}", failure.error);
            assert!(text.starts_with("standard input, line 2: expected a hexadecimal address"), "{text}");
            assert_eq!(failure.code, Code::Input);
        }
        let endless = io::BufReader::new(io::repeat(b'1'));
        assert!(read(endless).is_err(), "a line without an end ends");
    }
}
