use super::*;

#[test]
fn names_of_formats() {
    for (name, format) in [
        ("text", Some(Format::Text)),
        ("PROTO", Some(Format::Proto)),
        ("1", Some(Format::Proto)),
        ("proto-gz", Some(Format::ProtoGz)),
        ("pb", None),
    ] {
        assert_eq!(Format::named(name.as_bytes()), format);
    }
}
