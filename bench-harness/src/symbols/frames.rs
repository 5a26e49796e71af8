//! The answers of a tool, and how far two tools agree.

use serde::{Deserialize, Serialize};

/// One function at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The function, or nothing.
    pub function: String,
    /// The source file without its folders, or nothing.
    pub file: String,
    /// The line, 0 if unknown.
    pub line: u32,
}

/// Reads what LLVM's symbolizer and ours print: for each frame the function and `file:line[:column]`, after each address an
/// empty line.
#[must_use]
pub fn of_llvm_style(text: &str) -> Vec<Vec<Frame>> {
    let (mut answers, mut frames) = (Vec::new(), Vec::new());
    let mut lines = text.lines();
    while let Some(function) = lines.next() {
        if function.is_empty() {
            answers.push(std::mem::take(&mut frames));
            continue;
        }
        frames.push(frame(function, lines.next().unwrap_or_default()));
    }
    if !frames.is_empty() {
        answers.push(frames);
    }
    answers
}

/// Reads what binutils and elfutils print with `-a`: the address, then for each frame two lines.
#[must_use]
pub fn of_gnu_style(text: &str) -> Vec<Vec<Frame>> {
    let mut answers: Vec<Vec<Frame>> = Vec::new();
    let mut lines = text.lines();
    while let Some(function) = lines.next() {
        if function.starts_with("0x") {
            answers.push(Vec::new());
        } else if let Some(frames) = answers.last_mut() {
            // elfutils marks what was inlined: `name inlined at file:line in caller`.
            let function = function.split(" inlined at ").next().unwrap_or(function);
            frames.push(frame(function, lines.next().unwrap_or_default()));
        }
    }
    answers
}

fn frame(function: &str, place: &str) -> Frame {
    let known = |text: &str| if text.starts_with("??") { String::new() } else { text.to_owned() };
    let place = place.split(" (discriminator").next().unwrap_or(place);
    let (mut path, mut line) = place.rsplit_once(':').unwrap_or((place, "0"));
    // A column after the line.
    if let Some((shorter, number)) = path.rsplit_once(':')
        && number.parse::<u32>().is_ok()
    {
        (path, line) = (shorter, number);
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    Frame { function: known(function), file: known(file), line: line.parse().unwrap_or(0) }
}

/// How far two tools agree about the same addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// Addresses.
    pub addresses: usize,
    /// Of those, with as many frames in both.
    pub depth: usize,
    /// With the same files and lines in all frames.
    pub lines: usize,
    /// With the same names in all frames.
    pub names: usize,
}

impl Agreement {
    /// Compares two lists of answers; an answer that is missing agrees with none.
    #[must_use]
    pub fn of(ours: &[Vec<Frame>], theirs: &[Vec<Frame>]) -> Self {
        let mut sum = Self { addresses: ours.len().max(theirs.len()), ..Self::default() };
        for (ours, theirs) in ours.iter().zip(theirs) {
            let same = |test: fn(&Frame, &Frame) -> bool| {
                ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(one, other)| test(one, other))
            };
            sum.depth += usize::from(ours.len() == theirs.len());
            sum.lines += usize::from(same(|one, other| (one.line, &one.file) == (other.line, &other.file)));
            sum.names += usize::from(same(|one, other| one.function == other.function));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_styles_say_the_same() {
        let llvm = of_llvm_style("leaf(int)\n/src/a.h:3:9\nmain\n/src/a.c:10:0\n\n??\n??:0:0\n\n");
        let gnu = of_gnu_style(
            "0x0000000000001000\nleaf(int) inlined at /src/a.c:10 in main\n/src/a.h:3\nmain\n/src/a.c:10 (discriminator 2)\n0x2000\n??\n??:0\n",
        );
        assert_eq!(llvm, gnu);
        assert_eq!(llvm.len(), 2);
        assert_eq!(llvm[0][0], Frame { function: "leaf(int)".into(), file: "a.h".into(), line: 3 });
        assert_eq!(llvm[1], [Frame::default()]);
        let agreement = Agreement::of(&llvm, &gnu);
        assert_eq!(agreement, Agreement { addresses: 2, depth: 2, lines: 2, names: 2 });
    }

    #[test]
    fn what_differs_is_counted_apart() {
        let ours = of_llvm_style("f\na.c:1\n\ng\na.c:2\n\nh\na.c:3\n\n");
        let theirs = of_llvm_style("f\na.c:2\n\nG\na.c:2\n\nh\na.c:3\nmain\na.c:9\n\n");
        assert_eq!(Agreement::of(&ours, &theirs), Agreement { addresses: 3, depth: 2, lines: 1, names: 1 });
        assert_eq!(Agreement::of(&ours, &theirs[..1]), Agreement { addresses: 3, depth: 1, lines: 0, names: 1 });
    }
}
