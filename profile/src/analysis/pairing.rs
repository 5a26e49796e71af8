//! Which rows of two tables are the same, also if the program was built anew in between.

use std::collections::HashMap;
use std::hash::Hash;

use super::Row;

/// The numbers of an old and a new row that are the same; one of them is missing where a row has no partner.
pub(super) type Pair = (Option<usize>, Option<usize>);

/// Pairs rows by name, file, line (where there is one for the whole row) and module; what is left by less and less of that, in the end
/// by name alone. A key counts only where it occurs once in each table. In no order that means anything.
pub(super) fn paired(old: &[&Row], new: &[&Row]) -> Vec<Pair> {
    let file = |row: &Row| row.place.as_ref().map(|(file, _)| file.clone());
    let line = |row: &Row| row.place.as_ref().filter(|_| row.places == 1).map(|(_, line)| *line);
    let mut left = Left { old: numbered(old), new: numbered(new), pairs: Vec::new() };
    // From what is sure to what is likely.
    left.take(|row| (row.name.clone(), file(row), line(row), row.module.clone()));
    left.take(|row| (row.name.clone(), file(row), row.module.clone()));
    left.take(|row| row.name.clone());
    let Left { old, new, mut pairs } = left;
    pairs.extend(old.into_iter().map(|(number, _)| (Some(number), None)));
    pairs.extend(new.into_iter().map(|(number, _)| (None, Some(number))));
    pairs
}

fn numbered<'a>(rows: &[&'a Row]) -> Vec<(usize, &'a Row)> {
    rows.iter().copied().enumerate().collect()
}

/// What has no partner yet.
struct Left<'a> {
    old: Vec<(usize, &'a Row)>,
    new: Vec<(usize, &'a Row)>,
    pairs: Vec<Pair>,
}

impl Left<'_> {
    /// Pairs what has a key that occurs once in each.
    fn take<K: Eq + Hash>(&mut self, key: impl Fn(&Row) -> K) {
        let (of_old, of_new) = (unique(&self.old, &key), unique(&self.new, &key));
        let pairs = of_old.iter().filter_map(|(key, old)| Some((Some((*old)?), Some((*of_new.get(key)?)?))));
        let mut pairs: Vec<Pair> = pairs.collect();
        pairs.sort_unstable();
        let taken =
            |side: fn(&Pair) -> Option<usize>| pairs.iter().filter_map(side).collect::<std::collections::HashSet<_>>();
        let (old, new) = (taken(|pair| pair.0), taken(|pair| pair.1));
        self.old.retain(|(number, _)| !old.contains(number));
        self.new.retain(|(number, _)| !new.contains(number));
        self.pairs.append(&mut pairs);
    }
}

/// The row of each key; `None` where there are several.
fn unique<K: Eq + Hash>(rows: &[(usize, &Row)], key: impl Fn(&Row) -> K) -> HashMap<K, Option<usize>> {
    let mut seen: HashMap<K, Option<usize>> = HashMap::with_capacity(rows.len());
    for (number, row) in rows {
        seen.entry(key(row)).and_modify(|known| *known = None).or_insert(Some(*number));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::super::Sum;
    use super::*;

    fn row(name: &str, place: &str, module: &str) -> Row {
        let place = place.split_once(':').map(|(file, line)| (file.into(), line.parse().expect("a line")));
        let (flat, cumulative) = (Sum::default(), Sum::default());
        Row { name: name.into(), place, places: 1, module: Some(module.into()), named: true, flat, cumulative }
    }

    #[test]
    fn another_build_has_the_same_functions() {
        let old = [
            row("moved", "a.c:10", "app"),
            row("other_folder", "/old/b.c:1", "app"),
            row("new_library", "c.c:1", "libc.so.1"),
            row("init", "d.c:1", "app"),
            row("init", "e.c:1", "app"),
        ];
        let new = [
            row("init", "e.c:9", "app"),
            row("init", "f.c:1", "app"),
            row("moved", "a.c:99", "app"),
            row("other_folder", "/new/b.c:2", "app"),
            row("new_library", "c.c:1", "libc.so.2"),
        ];
        let mut pairs = paired(&old.iter().collect::<Vec<_>>(), &new.iter().collect::<Vec<_>>());
        pairs.sort_unstable();
        let expected =
            [(Some(0), Some(2)), (Some(1), Some(3)), (Some(2), Some(4)), (Some(3), Some(1)), (Some(4), Some(0))];
        assert_eq!(pairs, expected);
    }

    #[test]
    fn names_that_occur_twice_are_no_partners() {
        let old = [row("init", "a.c:1", "app"), row("init", "b.c:1", "app")];
        let new = [row("init", "c.c:1", "app"), row("init", "d.c:1", "app")];
        let pairs = paired(&old.iter().collect::<Vec<_>>(), &new.iter().collect::<Vec<_>>());
        assert_eq!(pairs.iter().filter(|(old, new)| old.is_some() && new.is_some()).count(), 0);
        assert_eq!(pairs.len(), 4);
    }
}
