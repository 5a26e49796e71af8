//! The real programs, run as a user or another test would run them.

mod churn;
mod cxx;
mod leaky;
mod support;
mod workload;
