//! Rust crates, by the names of functions.

use super::runtime::{Role, role_of_function};
use super::symbol_name::{SymbolName, first_segment, root_of_type, split_impl};

/// The crate that a function is of: that of its path; of an implementation, that of the type or, if that is the standard library's, of
/// the trait. `None` for functions that are not in Rust's form.
pub(super) fn crate_of(function: &str) -> Option<&str> {
    let SymbolName { path, has_parameters } = SymbolName::parse(function);
    if has_parameters {
        return None;
    }
    let Some((self_type, of_trait, _)) = split_impl(path) else { return first_segment(path) };
    let of_type = root_of_type(self_type);
    let of_trait = of_trait.and_then(root_of_type);
    let is_user = |name: &&str| role_of_function(&format!("{name}::f")) == Role::User;
    of_type.filter(is_user).or(of_trait.filter(is_user)).or(of_type).or(of_trait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_known() {
        for (function, expected) in [
            ("app::parse::Tree::grow", Some("app")),
            ("<app::Tree as core::iter::Iterator>::next", Some("app")),
            ("<alloc::vec::Vec<u8> as app::Grow>::grow", Some("app")),
            ("<alloc::vec::Vec<u8> as core::clone::Clone>::clone", Some("alloc")),
            ("<&mut [serde_json::Value]>::iter", Some("serde_json")),
            ("ns::Tree::grow(int)", None),
            ("main", None),
        ] {
            assert_eq!(crate_of(function), expected, "{function}");
        }
    }
}
