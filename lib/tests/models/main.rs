//! Exhaustive models of the allocator's lock-free protocols: every interleaving of a few threads, a few blocks and a few
//! operations is looked at. `docs/models.md` says what each model covers and what it leaves out.
//!
//! A model is a transcription, kept beside the code by hand: whoever changes the order of loads and stores in
//! `heap/magazine.rs`, `watch.rs`, `steal.rs`, `shelf.rs`, `repair.rs`, `companion.rs`, `arena/spans.rs`, `regions.rs`,
//! `reclaim/scavenger.rs`, `observe/events/callbacks.rs`, `observe/modules/history.rs`, `observe/sampler/table.rs` or `os/users.rs`
//! changes it here as well. That the models can tell right from wrong is shown by *mutants*: small mistakes, each of which must be
//! refuted.

mod callbacks;
mod claim;
mod explore;
mod fork;
mod homes;
mod shelf;
mod sites;
mod steal;
mod unloadings;
mod users;
mod watch;
mod weak;
