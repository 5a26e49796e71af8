//! The text of a frame: `0x1136: main (app.c:12)`, `0x48417b4: malloc (in /usr/lib/x.so)`, `0x7f00: ???`, `[root]`.

use crate::model::Frame;

/// What a text says.
#[derive(Debug, PartialEq)]
pub(super) struct Parsed {
    /// `None` for what is no code, as `[root]`.
    pub(super) address: Option<u64>,
    /// `None` where the name is not known.
    pub(super) frame: Option<Frame>,
}

pub(super) fn parse(text: &str) -> Parsed {
    let Some((address, rest)) = address(text) else {
        let (name, place) = split_place(text);
        let frame = match place.and_then(file_and_line) {
            Some((file, line)) if !name.is_empty() => Frame::named(name).at(file, line),
            _ => Frame::named(text),
        };
        return Parsed { address: None, frame: (!text.is_empty()).then_some(frame) };
    };
    let (name, place) = split_place(rest);
    let frame = (name != "???" && !name.is_empty()).then(|| match place.and_then(file_and_line) {
        Some((file, line)) => Frame::named(name).at(file, line),
        None => Frame::named(name),
    });
    Parsed { address: Some(address), frame }
}

fn address(text: &str) -> Option<(u64, &str)> {
    let (digits, rest) = text.strip_prefix("0x")?.split_once(':')?;
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let address = if is_hex { u64::from_str_radix(digits, 16).ok()? } else { return None };
    Some((address, rest.trim_start()))
}

/// The name and what is in the parentheses behind it. Names can have parentheses of their own, and paths as well.
fn split_place(text: &str) -> (&str, Option<&str>) {
    let Some(inner) = text.strip_suffix(')') else { return (text, None) };
    let open = inner.find(" (in /").or_else(|| inner.rfind(" ("));
    match open {
        Some(open) => {
            let place = &inner[open + 2..];
            let is_place = place.starts_with("in ") || file_and_line(place).is_some();
            if is_place { (&text[..open], Some(place)) } else { (text, None) }
        }
        None => (text, None),
    }
}

/// `FILE:LINE`, or `FILE:LINE:COLUMN`.
fn file_and_line(place: &str) -> Option<(&str, u32)> {
    if place.starts_with("in ") {
        return None;
    }
    let (rest, last) = place.rsplit_once(':')?;
    let last: u32 = last.parse().ok()?;
    match rest.rsplit_once(':').map(|(file, line)| (file, line.parse())) {
        Some((file, Ok(line))) if !file.is_empty() => Some((file, line)),
        _ => (!rest.is_empty()).then_some((rest, last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_writers() {
        let address = Some(0x1136);
        let frame = |frame| Parsed { address, frame: Some(frame) };
        assert_eq!(parse("0x1136: main (app.c:12)"), frame(Frame::named("main").at("app.c", 12)));
        let new = "operator new(unsigned long)";
        assert_eq!(parse(&format!("0x1136: {new} (vg.c:3)")), frame(Frame::named(new).at("vg.c", 3)));
        assert_eq!(parse(&format!("0x1136: {new}")), frame(Frame::named(new)));
        assert_eq!(parse("0x1136: f (in /a (b)/x.so)"), frame(Frame::named("f")));
        assert_eq!(
            parse("0x1136: a::b::{{closure}} (src/a.rs:7:13)"),
            frame(Frame::named("a::b::{{closure}}").at("src/a.rs", 7))
        );
        for unknown in ["0x1136: ??? (in /x.so)", "0x1136: ???", "0x1136:"] {
            assert_eq!(parse(unknown), Parsed { address, frame: None }, "{unknown}");
        }
        assert_eq!(parse("[root]"), Parsed { address: None, frame: Some(Frame::named("[root]")) });
        let bare = Frame::named("main").at("app.c", 12);
        assert_eq!(parse("main (app.c:12)"), Parsed { address: None, frame: Some(bare) });
        assert_eq!(parse("0xzz: x").address, None);
        assert_eq!(parse("0x11112222333344445: x").address, None);
        assert_eq!(parse(""), Parsed { address: None, frame: None });
    }
}
