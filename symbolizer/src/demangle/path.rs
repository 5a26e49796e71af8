//! Takes the text of a demangled C++ name apart: what is the path of the function, what its parameters, and what each
//! part of the path is.

use super::walk::{Step, Walk};

/// The path within a name: `ns::Class<int>::method` out of `void ns::Class<int>::method(int) const`.
///
/// For a text that is not understood it is the whole text.
pub(super) fn path_of(text: &str) -> &str {
    let mut walk = Walk::new(text);
    let mut start = 0;
    // After `operator` at the outermost level, spaces belong to the name: `operator new`, `operator int const*`.
    let mut in_operator = false;
    // The outermost parenthesis that is open, and the level it is on.
    let mut parenthesis = None;
    // The level of the name: 1 in `void (*f(int))(char)`, a function that returns a pointer to a function.
    let mut level = 0;
    loop {
        let at = walk.at();
        let Some(step) = walk.step() else { break };
        match step {
            Step::Open(b'(') if walk.depth() == level + 1 => {
                let is_pointer = text[walk.at()..].starts_with(['*', '&']);
                if at == start && at > 0 && is_pointer && !in_operator && level == 0 {
                    level = 1;
                    start = walk.at() + 1;
                    walk.skip_to(start);
                } else {
                    parenthesis = Some(at);
                }
            }
            Step::Close(b')') if walk.depth() == level => {
                let Some(open) = parenthesis.take() else { continue };
                let after = without_qualifiers(&text[walk.at()..]);
                if are_parameters(&text[start..open], after) {
                    return &text[start..open];
                }
                // `f(int) const::{lambda()#1}`: the qualifiers belong to the part before them.
                if after.starts_with("::") {
                    walk.skip_to(text.len() - after.len());
                }
            }
            _ if walk.depth() != level => {}
            Step::Operator => in_operator = true,
            Step::Character if text.as_bytes()[at] == b' ' && !in_operator => start = at + 1,
            _ => {}
        }
    }
    let path = &text[start..];
    if path.is_empty() { text } else { path }
}

/// Whether parentheses between `before` and `after` hold the parameters of the function that is named, as opposed to
/// `(anonymous namespace)`, `decltype(…)`, the parameters of an enclosing function (`f(int)::{lambda()#1}`) and Go's
/// `main.(*T).method`.
fn are_parameters(before: &str, after: &str) -> bool {
    let is_named = !before.is_empty() && !before.ends_with("::") && !before.ends_with('.');
    is_named && before != "decltype" && !after.starts_with("::")
}

/// The rest of a text after the words that may follow a parameter list.
pub(super) fn without_qualifiers(mut text: &str) -> &str {
    const WORDS: [&str; 6] = [" const", " volatile", " restrict", " &&", " &", " noexcept"];
    while let Some(rest) = WORDS.iter().find_map(|word| text.strip_prefix(word)) {
        text = rest;
    }
    text
}

/// One part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    /// The name alone: `vector`, `operator<<`, `~vector`, `{lambda(int)#1}`, `(anonymous namespace)`, `<impl T>`.
    pub(super) name: &'a str,
    /// Its template arguments, with the brackets; empty when there are none.
    pub(super) arguments: &'a str,
}

/// The parts of a path, in order. Parameters, tags (`[abi:cxx11]`) and Rust's crate hashes are left out.
pub(super) fn segments(path: &str) -> Vec<Segment<'_>> {
    let mut segments = Vec::new();
    let mut walk = Walk::new(path);
    let mut start = 0;
    // Ends of the name and of the arguments of the segment at hand.
    let (mut name_end, mut arguments) = (None, None);
    // A conversion operator is named by a type, with all its `::` and spaces.
    let mut in_conversion = false;
    loop {
        let at = walk.at();
        let step = walk.step();
        let at_end = step.is_none();
        match step {
            Some(Step::Scope) if walk.depth() == 0 && !in_conversion => {}
            None => {}
            Some(Step::Operator) if walk.depth() == 0 => {
                in_conversion = path[walk.at()..].starts_with(' ') && !path[walk.at()..].starts_with(" <");
                continue;
            }
            Some(Step::Open(b'<')) if walk.depth() == 1 && !in_conversion && at > start => {
                name_end.get_or_insert(at);
                arguments.get_or_insert((at, at));
                continue;
            }
            Some(Step::Close(b'>')) if walk.depth() == 0 && !in_conversion => {
                if let Some((from, to)) = arguments.as_mut()
                    && from == to
                {
                    *to = walk.at();
                }
                continue;
            }
            Some(Step::Open(b'(' | b'[')) if walk.depth() == 1 && at > start && !path[..at].ends_with('.') => {
                name_end.get_or_insert(at);
                in_conversion = false;
                continue;
            }
            _ => continue,
        }
        let end = if at_end { path.len() } else { at };
        let name = path[start..name_end.unwrap_or(end).min(end)].trim_end();
        let arguments_text = arguments.map_or("", |(from, to)| &path[from..if from == to { end } else { to }]);
        if !name.is_empty() {
            segments.push(Segment { name, arguments: arguments_text });
        }
        if at_end {
            return segments;
        }
        start = walk.at();
        (name_end, arguments) = (None, None);
    }
}
