//! The options as the program sees them, and the page that documents them.

use super::*;
use std::string::{String, ToString};
use std::vec::Vec;

#[test]
fn numbers_are_those_of_the_interface() {
    assert_eq!(COUNT, 65);
    for (name, number) in [
        (Name::ShowErrors, 0),
        (Name::PurgeDelay, 15),
        (Name::GuardedMin, 29),
        (Name::AllowThp, 43),
        (Name::Prof, 47),
        (Name::ProfMaxBytes, 52),
        (Name::LargeSpanMax, 64),
    ] {
        assert_eq!(name as usize, number, "{name:?}");
    }
}

/// The name of the variant is the name of the option.
#[test]
fn variants_and_names_agree() {
    let header = include_str!("../../include/mimalloc.h");
    let mut numbered = header.split("typedef enum mi_option_e {").nth(1).unwrap().lines().map(str::trim);
    for definition in &TABLE {
        let expected = std::format!("mi_option_{}", definition.name);
        let found = numbered.find(|line| line.starts_with("mi_option_") && !line.contains("= mi_option_")).unwrap();
        assert_eq!(found.trim_end_matches(','), expected);
        assert!(definition.name.len() + PREFIX.len() <= NAME && definition.legacy.len() + PREFIX.len() <= NAME);
    }
}

#[test]
fn a_value_that_is_set_wins_over_defaults() {
    const N: usize = Name::PageMaxCandidates as usize;
    assert_eq!(get(Name::PageMaxCandidates), 4);
    set_default_number(N, 7);
    assert_eq!(get(Name::PageMaxCandidates), 7);
    set_number(N, i64::MIN);
    assert_eq!(get(Name::PageMaxCandidates), i64::MIN + 1);
    set_default_number(N, 5);
    assert_eq!(get(Name::PageMaxCandidates), i64::MIN + 1);
    assert_eq!(get_positive(Name::PageMaxCandidates), None);
    set_number(COUNT, 1);
    set_default_number(usize::MAX, 1);
    assert_eq!(get_number(COUNT), 0);
}

#[test]
fn guarded_bounds_stay_in_order() {
    let bounds = || (get(Name::GuardedMin), get(Name::GuardedMax));
    set_number(Name::GuardedMin as usize, 2 << 30);
    assert_eq!(bounds(), (2 << 30, 2 << 30));
    set_number(Name::GuardedMax as usize, 100);
    assert_eq!(bounds(), (100, 100));
}

/// The rows of `docs/options.md` say what the table says.
#[test]
fn the_page_has_every_option() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/options.md");
    let page = std::fs::read_to_string(path).unwrap();
    let rows: Vec<Vec<String>> = page
        .lines()
        .filter(|line| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit())
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect())
        .collect();
    assert_eq!(rows.len(), COUNT);
    for (number, (row, definition)) in rows.iter().zip(&TABLE).enumerate() {
        let unit = match definition.unit {
            Unit::KiB => " KiB",
            Unit::Bytes => " bytes",
            _ => "",
        };
        let other = [definition.alias, definition.legacy].concat();
        let expected = [
            number.to_string(),
            std::format!("`{}`", definition.name),
            std::format!("{}{unit}", definition.default),
            if other.is_empty() { String::new() } else { std::format!("`{other}`") },
        ];
        assert_eq!(row[..4], expected, "{path}: option {number}");
        assert!(["yes", "no"].contains(&row[4].as_str()) && !row[5].is_empty(), "{path}: option {number}");
    }
}

/// The variant of an option's name: `prof_seed` is `ProfSeed`.
fn variant(name: &str) -> String {
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    name.split('_').map(capital).collect()
}

/// The page says that an option has an effect if and only if code outside this folder reads it.
#[test]
fn the_page_tells_which_options_are_read() {
    fn read(folder: &std::path::Path, code: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap();
            if entry.is_dir() && name != "options" && name != "tests" {
                read(&entry, code);
            } else if entry.extension().is_some_and(|extension| extension == "rs") && name != "tests.rs" {
                let text = std::fs::read_to_string(&entry).unwrap();
                text.lines().for_each(|line| code.extend([line.split("//").next().unwrap(), "\n"]));
            }
        }
    }
    let mut code = String::new();
    read(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut code);
    let words: Vec<&str> = code.split(|c: char| !c.is_alphanumeric() && c != ':').collect();
    let page = include_str!("../../../docs/options.md");
    for (number, definition) in TABLE.iter().enumerate() {
        let row = page.lines().find(|line| line.starts_with(&std::format!("| {number} | "))).unwrap();
        let effect = row.split('|').map(str::trim).nth(5).unwrap();
        let wanted = std::format!("Name::{}", variant(definition.name));
        let is_read = words.iter().any(|word| word.ends_with(&wanted));
        assert_eq!(effect == "yes", is_read, "docs/options.md: {row}");
    }
}
