//! Prints what is at addresses of a file, as `addr2line -fiaC` does; for comparisons and for trying things out.
//!
//! `symbolize FILE [ADDRESS...]`: addresses are those of the file's own headers, in hex; without any, they are read
//! from standard input, one a line. The report goes to standard error.

use std::error::Error;
use std::io::{Read as _, Write as _};

use mpp_symbolizer::{Options, Symbolizer};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = std::fs::canonicalize(arguments.next().ok_or("usage: symbolize FILE [ADDRESS...]")?)?;
    let mut words: Vec<String> = arguments.collect();
    if words.is_empty() {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        words = text.split_whitespace().map(str::to_owned).collect();
    }
    let parse = |word: &String| u64::from_str_radix(word.trim_start_matches("0x"), 16);
    let addresses: Vec<u64> = words.iter().map(parse).collect::<Result<_, _>>()?;

    let mut symbolizer = Symbolizer::new(Options::default());
    let answers = symbolizer.symbolize_file(&path, &addresses)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for (address, answer) in addresses.iter().zip(answers) {
        writeln!(out, "{address:#018x}")?;
        if answer.frames.is_empty() {
            writeln!(out, "??\n??:0")?;
        }
        for frame in answer.frames {
            writeln!(out, "{}", frame.function.as_ref().map_or("??", |name| &name.demangled))?;
            writeln!(out, "{}:{}", frame.file.as_deref().unwrap_or("??"), frame.line)?;
        }
    }
    for report in symbolizer.report() {
        let (lines, names, nothing) = (report.with_lines, report.with_name, report.unresolved);
        eprintln!("{:?}: {lines} with lines, {names} with a name, {nothing} unresolved", report.source);
        for problem in &report.problems {
            eprintln!("  {problem}");
        }
    }
    out.flush()?;
    Ok(())
}
