//! Which template arguments tell something: defaults of the standard libraries are left out of names in the normal style.

/// Namespaces that only version a library's binary interface; source code never writes them.
const INLINE_NAMESPACES: [&str; 4] = ["__cxx11", "__1", "__ndk1", "_V2"];

/// Whether a part of a path is a namespace that people never see.
pub(super) fn is_inline_namespace(name: &str) -> bool {
    INLINE_NAMESPACES.contains(&name)
}

/// Templates of the standard library that have an everyday name when their first argument is `char`. With `wchar_t`
/// the everyday name starts with `w`, and so on.
const CHARACTER_TEMPLATES: [(&str, &str); 16] = [
    ("basic_string", "string"),
    ("basic_string_view", "string_view"),
    ("basic_ios", "ios"),
    ("basic_streambuf", "streambuf"),
    ("basic_istream", "istream"),
    ("basic_ostream", "ostream"),
    ("basic_iostream", "iostream"),
    ("basic_stringbuf", "stringbuf"),
    ("basic_istringstream", "istringstream"),
    ("basic_ostringstream", "ostringstream"),
    ("basic_stringstream", "stringstream"),
    ("basic_filebuf", "filebuf"),
    ("basic_ifstream", "ifstream"),
    ("basic_ofstream", "ofstream"),
    ("basic_fstream", "fstream"),
    ("basic_regex", "regex"),
];

/// Character types, and what their everyday names start with.
const CHARACTERS: [(&str, &str); 5] =
    [("char", ""), ("wchar_t", "w"), ("char8_t", "u8"), ("char16_t", "u16"), ("char32_t", "u32")];

/// Called when `out` ends with a template and its arguments, but for the closing bracket: closes it, without default
/// arguments, and with the everyday name of what has one (`std::string`).
///
/// `open` is where the `<` is in `out`, `arguments` where each argument starts; between two stands `, `. Gives up to where
/// the text is as it was.
pub(super) fn close_template(out: &mut String, open: usize, arguments: &[usize]) -> usize {
    let trimmed = out.trim_end().len();
    out.truncate(trimmed.max(open + 1));
    let mut count = arguments.len();
    while count >= 2 && is_default(out, open, &arguments[..count]) {
        count -= 1;
        out.truncate(arguments[count]);
        let end = out.trim_end_matches([',', ' ']).len();
        out.truncate(end.max(open + 1));
    }
    if count == 1
        && let Some((start, name)) = everyday_name(out, open, arguments[0])
    {
        out.truncate(start);
        out.push_str(name.0);
        out.push_str(name.1);
        return start;
    }
    let kept = out.len();
    out.push('>');
    kept
}

/// The everyday name, in two parts, and where in `out` it belongs.
fn everyday_name(out: &str, open: usize, argument: usize) -> Option<(usize, (&'static str, &'static str))> {
    let template = out.get(..open)?;
    let start =
        template.trim_end_matches(|character: char| character.is_ascii_alphanumeric() || character == '_').len();
    let before = template[..start].strip_suffix("std::")?;
    if before.ends_with(|character: char| character == ':' || super::walk::is_word(character)) {
        return None;
    }
    let (_, name) = CHARACTER_TEMPLATES.iter().find(|(template_name, _)| *template_name == &template[start..])?;
    let character = out.get(argument..)?;
    let (_, prefix) = CHARACTERS.iter().find(|(name, _)| *name == character)?;
    Some((start, (prefix, name)))
}

/// Whether the last of the arguments is what it would be if nobody had given it.
fn is_default(out: &str, open: usize, arguments: &[usize]) -> bool {
    let (Some(&first), Some(&second), Some(&last)) = (arguments.first(), arguments.get(1), arguments.last()) else {
        return false;
    };
    let Some(argument) = out.get(last..) else { return false };
    let argument = without_keyword(argument.trim());
    if matches!(
        argument,
        "alloc::alloc::Global" | "std::hash::random::RandomState" | "std::collections::hash::map::RandomState"
    ) {
        return true;
    }
    let Some((template, inner)) = argument.strip_suffix('>').and_then(|text| text.split_once('<')) else {
        return false;
    };
    let is_whole = is_balanced(inner);
    let first = without_keyword(out[first..second].trim_end_matches([',', ' ']));
    let is_first = || without_keyword(inner.trim()) == first;
    match template {
        "std::allocator" | "std::char_traits" => is_whole,
        "std::less" | "std::equal_to" | "std::hash" | "std::default_delete" => is_first(),
        "std::deque" => is_first() && (out[..open].ends_with("std::queue") || out[..open].ends_with("std::stack")),
        "std::vector" => is_first() && out[..open].ends_with("std::priority_queue"),
        "std::regex_traits" => is_first(),
        _ => false,
    }
}

/// Microsoft's names say `class` and `struct` before each.
fn without_keyword(text: &str) -> &str {
    ["class ", "struct ", "enum "].iter().find_map(|keyword| text.strip_prefix(keyword)).unwrap_or(text)
}

/// Whether no bracket closes that did not open.
fn is_balanced(text: &str) -> bool {
    let mut walk = super::walk::Walk::new(text);
    while let Some(step) = walk.step() {
        if step == super::walk::Step::Character && text.as_bytes()[walk.at() - 1] == b'>' {
            return false;
        }
    }
    walk.depth() == 0
}
