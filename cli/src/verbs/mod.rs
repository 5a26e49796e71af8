//! One file per verb: parse the flags, call the crates that know, render.

pub(crate) mod bundle;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod convert;
pub(crate) mod ctl;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod flame;
pub(crate) mod growth;
pub(crate) mod heapmap;
pub(crate) mod leaks;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod modules;
pub(crate) mod peek;
pub(crate) mod run;
pub(crate) mod stats;
pub(crate) mod symbolize;
pub(crate) mod timeline;
pub(crate) mod top;
pub(crate) mod tree;
