//! What looking up addresses costs, here and in other tools, and whether the answers agree.
//!
//! [`addresses`] draws the questions, [`tools`] says who is asked and how, [`frames`] reads the answers, [`measure`] runs it all, and
//! [`table`] writes what came out.

pub mod addresses;
pub mod frames;
pub mod measure;
pub mod table;
pub mod tools;
