//! Numbers over time as one short line.

/// Characters of a line.
pub(crate) const WIDTH: usize = 16;

/// A block for each number, as high as its part of the largest; nothing is a space. Of more than [`WIDTH`] numbers some are left out,
/// evenly, but neither the first nor the last.
pub(crate) fn spark(values: &[u64]) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().max().unwrap_or(0);
    let shown = values.len().min(WIDTH);
    let value = |place: usize| if shown < 2 { values[place] } else { values[place * (values.len() - 1) / (shown - 1)] };
    let height = |value: u64| match value {
        0 => ' ',
        value => HEIGHTS[(((value as f64 / most as f64) * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    (0..shown).map(value).map(height).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights() {
        assert_eq!(spark(&[0, 1, 2, 3, 4, 5, 6, 7, 8]), " ▁▂▃▄▅▆▇█");
        assert_eq!((spark(&[]), spark(&[0, 0]), spark(&[7])), (String::new(), "  ".to_owned(), "█".to_owned()));
        let many: Vec<u64> = (0..=1000).collect();
        let line = spark(&many);
        assert_eq!((line.chars().count(), line.chars().next(), line.chars().last()), (WIDTH, Some(' '), Some('█')));
        assert_eq!(spark(&[1, u64::MAX]), "▁█");
    }
}
