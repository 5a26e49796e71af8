//! Steps through the text of a demangled name with an eye on its brackets.

/// What one step went over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// `<`, `(`, `[` or `{`, after which the text is one level deeper.
    Open(u8),
    /// The bracket that ends a level.
    Close(u8),
    /// The whole of `operator<<`, `operator()` and the like; `operator` alone where a word follows.
    Operator,
    /// MSVC's quoted names: `` `anonymous namespace' ``.
    Quoted,
    /// The `::` between two parts of a name.
    Scope,
    /// One character of anything else.
    Character,
}

/// A walk over a text. Signs that only look like brackets (`->`, `operator<`, `(a)<(b)`) are not taken for them.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    text: &'a str,
    at: usize,
    open: Vec<u8>,
    after_operator: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Walk { text, at: 0, open: Vec::new(), after_operator: false }
    }

    /// Levels of brackets around the present place.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Where the next step starts.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Goes on at a later place, on the present level.
    pub(super) fn skip_to(&mut self, at: usize) {
        self.at = at;
    }

    /// Goes on at a later place, where the level that was just entered has ended.
    pub(super) fn skip_over_level(&mut self, at: usize) {
        self.at = at;
        self.open.pop();
    }

    /// Takes a step; `None` at the end.
    pub(super) fn step(&mut self) -> Option<Step> {
        let rest = self.text.get(self.at..)?;
        let first = *rest.as_bytes().first()?;
        let (step, length) = match first {
            b'o' if operator_length(self.text, self.at) > 0 => (Step::Operator, operator_length(self.text, self.at)),
            b':' if rest.starts_with("::") => (Step::Scope, 2),
            b'`' => rest.find('\'').map_or((Step::Character, 1), |end| (Step::Quoted, end + 1)),
            b'<' if self.text[..self.at].ends_with(')') && !self.after_operator => (Step::Character, 1),
            b'<' | b'(' | b'[' | b'{' => {
                self.open.push(first);
                (Step::Open(first), 1)
            }
            b'>' | b')' | b']' | b'}' if self.closes(first) => (Step::Close(first), 1),
            _ => (Step::Character, rest.chars().next().map_or(1, char::len_utf8)),
        };
        self.at += length;
        self.after_operator = step == Step::Operator;
        Some(step)
    }

    /// Leaves a level if `bracket` ends one. A `>` in parentheses is a comparison or half of `->`.
    fn closes(&mut self, bracket: u8) -> bool {
        let opening = match bracket {
            b'>' if self.text[..self.at].ends_with('-') => return false,
            b'>' => b'<',
            b')' => b'(',
            b']' => b'[',
            _ => b'{',
        };
        if bracket == b'>' {
            return self.open.pop_if(|open| *open == opening).is_some();
        }
        match self.open.iter().rposition(|open| *open == opening) {
            Some(level) => {
                self.open.truncate(level);
                true
            }
            None => false,
        }
    }
}

/// Whether the character can be part of an identifier.
pub(super) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

/// The length of the C++ operator name that starts at `at`, with its sign; 0 when there is none.
fn operator_length(text: &str, at: usize) -> usize {
    const WORD: &str = "operator";
    const SIGNS: [&str; 15] =
        [" new[]", " delete[]", "()", "[]", "<<=", ">>=", "<=>", "->*", "->", "<<", ">>", "<=", ">=", "<", ">"];
    let Some(rest) = text[at..].strip_prefix(WORD) else { return 0 };
    if text[..at].ends_with(is_word) || rest.starts_with(is_word) {
        return 0;
    }
    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).map_or(0, |sign| sign.len());
    WORD.len() + sign
}
