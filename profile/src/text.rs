//! Making text from an input safe to show.
//!
//! Function names, paths and comments come from files that anyone may have written. They can hold terminal escape
//! sequences, line breaks and direction marks that make a name look like another; nothing of that may reach a terminal.

use std::fmt;

/// Prints `text` with everything escaped that is not plainly visible: control characters (also the C1 set), line and
/// paragraph separators, direction overrides and other invisible formatting characters.
pub fn escaped(text: &str) -> Escaped<'_> {
    Escaped(text)
}

/// The result of [`escaped`]: use it with `{}` or `to_string()`.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut visible = 0;
        for (index, character) in self.0.char_indices().filter(|&(_, character)| is_hidden(character)) {
            f.write_str(&self.0[visible..index])?;
            write!(f, "{}", character.escape_default())?;
            visible = index + character.len_utf8();
        }
        f.write_str(&self.0[visible..])
    }
}

/// True for characters that must not be sent to a terminal as they are.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A short, escaped, quoted excerpt of raw bytes for an error message.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    const LONGEST: usize = 60;
    let shown = &bytes[..bytes.len().min(LONGEST)];
    let ellipsis = if bytes.len() > LONGEST { "…" } else { "" };
    format!("\"{}{ellipsis}\"", escaped(&String::from_utf8_lossy(shown)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_spelled_out() {
        assert_eq!(escaped("plain ünïcode 漢字 a\\b").to_string(), "plain ünïcode 漢字 a\\b");
        assert_eq!(escaped("\u{1b}[31mred\n\u{9b}x\u{202e}").to_string(), "\\u{1b}[31mred\\n\\u{9b}x\\u{202e}");
        assert_eq!(escaped("").to_string(), "");
    }

    #[test]
    fn excerpts_are_short() {
        assert_eq!(excerpt(b"a\xffb"), "\"a\u{fffd}b\"");
        assert_eq!(excerpt(&[b'x'; 1000]).chars().count(), 63);
    }
}
