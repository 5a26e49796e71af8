//! Flame graphs as SVG, drawn by `inferno`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, ensure};
use inferno::flamegraph::{self, Direction, Options, Palette, color::BasicPalette};

use crate::selection::Names;

/// Stands in every graph of ours, so that the next one may replace it.
const MARK: &str = "made by mpp flame";

/// What is written on the graph. Text from files in it is escaped.
#[derive(Clone, Debug)]
pub(crate) struct Captions {
    /// Above all.
    pub(crate) title: String,
    /// Below the title.
    pub(crate) subtitle: String,
    /// What is counted, in the plural.
    pub(crate) unit: &'static str,
}

/// How the boxes are piled up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// The allocating functions at the root.
    pub(crate) inverted: bool,
    /// The root at the top.
    pub(crate) flip: bool,
}

/// Draws folded stacks. The same stacks give the same bytes: colours depend on the names only.
///
/// # Errors
/// If the weights are too large to be added up, or nothing can be drawn.
pub(crate) fn draw(captions: &Captions, lines: &[String], layout: Layout) -> anyhow::Result<Vec<u8>> {
    let mut options = options(captions, layout);
    let total = lines.iter().map(|line| weight(line)).try_fold(0_u64, u64::checked_add);
    ensure!(total.is_some_and(|total| total < 1 << 62), "the numbers are too large to be added up");
    let reversed = if layout.inverted { Some(reversed(lines)) } else { None };
    let lines = reversed.as_deref().unwrap_or(lines);
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg).context("cannot be drawn")?;
    Ok(svg)
}

/// Draws what changed: each stack with what there was and what there is. Widths are what there is; in red a function
/// itself has allocated more, in blue less, the more the stronger; the title of a box has the change in percent of what there is in all. What is gone has no width: say so in the captions.
///
/// # Errors
/// As [`draw`].
pub(crate) fn draw_difference(
    captions: &Captions,
    stacks: &[(String, u64, u64)],
    layout: Layout,
) -> anyhow::Result<Vec<u8>> {
    let mut options = options(captions, layout);
    let total = |weight: fn(&(String, u64, u64)) -> u64| stacks.iter().map(weight).try_fold(0_u64, u64::checked_add);
    let fits = |total: Option<u64>| total.is_some_and(|total| total < 1 << 62);
    ensure!(fits(total(|stack| stack.1)) && fits(total(|stack| stack.2)), "the numbers are too large to be added up");
    let stack = |stack: &str| match layout.inverted {
        true => stack.split(';').rev().collect::<Vec<_>>().join(";"),
        false => stack.to_owned(),
    };
    let mut lines: Vec<String> = stacks.iter().map(|(path, old, new)| format!("{} {old} {new}", stack(path))).collect();
    lines.sort_unstable();
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg).context("cannot be drawn")?;
    Ok(svg)
}

fn options(captions: &Captions, layout: Layout) -> Options<'static> {
    let mut options = Options::default();
    options.title.clone_from(&captions.title);
    options.subtitle = Some(captions.subtitle.clone());
    captions.unit.clone_into(&mut options.count_name);
    options.notes = MARK.to_owned();
    options.colors = Palette::Basic(BasicPalette::Mem);
    options.deterministic = true;
    options.direction = if layout.flip { Direction::Inverted } else { Direction::Straight };
    options
}

/// The stacks with the innermost function first, in order. Lines keep their line ends.
pub(crate) fn reversed(lines: &[String]) -> Vec<String> {
    let reverse = |line: &String| {
        let (stack, weight) = line.rsplit_once(' ').unwrap_or((line, "0\n"));
        let frames: Vec<&str> = stack.split(';').rev().collect();
        format!("{} {weight}", frames.join(";"))
    };
    let mut lines: Vec<String> = lines.iter().map(reverse).collect();
    lines.sort_unstable();
    lines
}

fn weight(line: &str) -> u64 {
    line.trim_end().rsplit_once(' ').and_then(|(_, weight)| weight.parse().ok()).unwrap_or(0)
}

/// The name of a frame of folded stacks. It has been escaped, and stays fit for a folded line: a name that ends in a
/// space and a number would be taken for one with two weights.
pub(crate) fn frame_name(name: &str, names: Names<'_>) -> String {
    // Addresses and `[truncated: …]` are not names of functions.
    let is_name = !name.starts_with('[') && !name.contains("+0x") && !name.starts_with("0x");
    let mut shown = if is_name { names.of(name).replace(';', ",") } else { name.to_owned() };
    if let Some((start, end)) = shown.rsplit_once(' ')
        && end.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        shown = format!("{start}_{end}");
    }
    shown
}

/// Whether a file is a graph that `mpp` drew, and so may be drawn anew.
pub(crate) fn is_ours(path: &Path) -> bool {
    /// The mark stands in a comment after the XML header.
    const ENOUGH: u64 = 4096;
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(ENOUGH).read_to_end(&mut head));
    read.is_ok() && head.starts_with(b"<?xml") && head.windows(MARK.len()).any(|part| part == MARK.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { inverted: false, flip: false };

    fn captions() -> Captions {
        Captions { title: "t <&>".to_owned(), subtitle: "s".to_owned(), unit: "bytes" }
    }

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn draws_the_same_bytes_each_time() -> anyhow::Result<()> {
        let lines = lines(&["main;a 10", "main;b 20"]);
        let svg = draw(&captions(), &lines, LAYOUT)?;
        assert_eq!(svg, draw(&captions(), &lines, LAYOUT)?);
        let text = String::from_utf8(svg)?;
        assert!(text.contains("b (20 bytes, 66.67%)") && text.contains("t &lt;&amp;&gt;"), "{text}");
        Ok(())
    }

    #[test]
    fn knows_its_own_graphs() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("x.svg");
        std::fs::write(&path, draw(&captions(), &lines(&["main 1"]), LAYOUT)?)?;
        assert!(is_ours(&path));
        std::fs::write(&path, "<?xml version=\"1.0\"?><svg/>")?;
        assert!(!is_ours(&path));
        Ok(())
    }

    #[test]
    fn reverses_stacks() {
        assert_eq!(reversed(&lines(&["a;b 1", "c;a 2"])), lines(&["a;c 2", "b;a 1"]));
    }

    #[test]
    fn absurd_weights_are_refused() {
        let absurd = lines(&[&format!("a {}", u64::MAX), "b 1"]);
        assert!(draw(&captions(), &absurd, LAYOUT).is_err());
    }
}
