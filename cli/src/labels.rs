//! Names of rows: short, unless two functions would look the same.

use std::collections::{HashMap, HashSet};

use crate::selection::Names;

/// The label of each item, given its name and whether that is a function's; others (files, addresses) are what they are. Where short
/// names would make two functions look the same, they are given in full. Not escaped.
pub(crate) fn labels(items: &[(&str, bool)], names: Names<'_>) -> Vec<String> {
    let mut styled: HashMap<&str, String> = HashMap::new();
    for &(name, is_function) in items {
        if is_function {
            styled.entry(name).or_insert_with(|| names.of(name));
        }
    }
    let mut owners: HashMap<&str, &str> = HashMap::new();
    let mut clashes: HashSet<&str> = HashSet::new();
    for (&name, label) in &styled {
        if *owners.entry(label).or_insert(name) != name {
            clashes.insert(label);
        }
    }
    let label = |&(name, is_function): &(&str, bool)| match styled.get(name).filter(|_| is_function) {
        Some(label) if !clashes.contains(label.as_str()) => label.clone(),
        _ => name.to_owned(),
    };
    items.iter().map(label).collect()
}
