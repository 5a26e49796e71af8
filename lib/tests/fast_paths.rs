//! The fast paths of `malloc` and `free`, as they stand in the library: how many instructions, no call, no lock.

mod support;
use support::{library, machine_code};

fn check(function: &str, most: usize) {
    let mut way = machine_code::straight_way(library(), function);
    // A conditional jump over the way to the medium classes is on the path, that way itself is not.
    way.retain(|instruction| !instruction.starts_with("jmp"));
    machine_code::check(function, &way, most);
    assert!(!way.iter().any(|instruction| instruction.starts_with("call")), "{function}\n{}", way.join("\n"));
}

#[test]
fn malloc_is_short() {
    check("malloc", 14);
}

#[test]
fn free_is_short() {
    check("free", 18);
}
