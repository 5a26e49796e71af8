//! What a line asks for.

/// A line in words. Words are separated by blanks; what is in double quotes is one word, with `\"` and `\\` in it for `"` and `\`.
pub(super) struct Words<'a> {
    rest: &'a [u8],
}

/// A word as it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Word<'a> {
    text: &'a [u8],
    quoted: bool,
}

impl<'a> Words<'a> {
    pub(super) fn of(line: &'a [u8]) -> Words<'a> {
        Words { rest: line }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let rest = self.rest.trim_ascii_start();
        if rest.is_empty() {
            return None;
        }
        if let Some(inside) = rest.strip_prefix(b"\"") {
            let mut escaped = false;
            let end = inside.iter().position(|&byte| {
                let ends = byte == b'"' && !escaped;
                escaped = byte == b'\\' && !escaped;
                ends
            });
            let length = end.unwrap_or(inside.len());
            self.rest = inside.get(length + 1..).unwrap_or_default();
            return Some(Word { text: &inside[..length], quoted: true });
        }
        let length = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        self.rest = &rest[length..];
        Some(Word { text: &rest[..length], quoted: false })
    }
}

impl<'a> Word<'a> {
    /// As it was written, but for quotes around it.
    pub(super) fn plain(&self) -> &'a [u8] {
        self.text
    }

    /// What it means, piece by piece.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &'a [u8]> {
        let quoted = self.quoted;
        let mut rest = self.text;
        core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            if quoted && rest.len() > 1 && rest[0] == b'\\' {
                let piece = &rest[1..2];
                rest = &rest[2..];
                return Some(piece);
            }
            let next = rest.iter().skip(1).position(|&byte| byte == b'\\').filter(|_| quoted);
            let (piece, behind) = rest.split_at(next.map_or(rest.len(), |next| next + 1));
            rest = behind;
            Some(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec::Vec;

    fn words(line: &str) -> Vec<String> {
        let word = |word: Word<'_>| String::from_utf8(word.pieces().flatten().copied().collect()).unwrap();
        Words::of(line.as_bytes()).map(word).collect()
    }

    #[test]
    fn lines() {
        assert_eq!(words("  dump  /a/b\r text "), ["dump", "/a/b", "text"]);
        assert_eq!(words(r#"mark "a b" c\d "#), ["mark", "a b", r"c\d"]);
        assert_eq!(words(r#"mark "say \"hi\" \\ \n" x"#), ["mark", r#"say "hi" \ n"#, "x"]);
        assert_eq!(words(r#"mark "never ends \"#), ["mark", r"never ends \"]);
        assert_eq!(words("\"\""), [""]);
        assert!(words(" \t ").is_empty());
    }
}
