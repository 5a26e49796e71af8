//! Programs in the shape of well-known allocator benchmarks, written anew from what is published about them. Their figures
//! compare allocators with each other; they are not the figures of the originals.
//!
//! | file | shapes | what they are known for |
//! |---|---|---|
//! | [`cache`] | cache-scratch, cache-thrash | false sharing: blocks of different threads on one cache line (Berger and others, *Hoard*, 2000) |
//! | [`larson`] | larson, larson-sized | a server: a thread's blocks are inherited by the next thread (Larson and Krishnan, 1998) |
//! | [`xmalloc`] | xmalloc-test | some threads allocate, others free (Lever and Boreham, 2000) |
//! | [`mstress`] | mstress | bursts of every size, survivors, and blocks that wander between threads |
//! | [`sh`] | sh6bench, sh8bench | small blocks in rows, freed part in order and part backwards (MicroQuill) |
//! | [`random`] | alloc-test | a large random working set that is also used |
//! | [`glibc`] | glibc-simple, glibc-thread | the C library's own two benchmarks |
//! | [`espresso`] | espresso | a logic minimiser: many small sets with nested lifetimes (Zorn and Grunwald, 1992) |
//! | [`large`] | malloc-large | random buffers of 5 to 25 MiB |
//! | [`leak`] | mleak | generations of threads that leave their blocks to the next |

pub mod cache;
pub mod espresso;
pub mod glibc;
pub mod large;
pub mod larson;
pub mod leak;
pub mod mstress;
pub mod random;
pub mod sh;
pub mod xmalloc;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::measured::catalogue::{Group, rows};
    use crate::measured::family::Family;
    use crate::measured::timing::{Pin, Settings};

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        family: Family,
        #[arg(long, global = true, default_value_t = 1)]
        threads: u32,
        #[arg(long, global = true, default_value = "no")]
        pin: Pin,
    }

    /// Runs a row of the catalogue, small.
    fn run(arguments: &[String], seed: u64) -> crate::measured::timing::Figures {
        // Few live blocks are enough to see whether they are whole.
        let few = |argument: &String| if argument.ends_with("0000") { "500".to_owned() } else { argument.clone() };
        let arguments = std::iter::once("row".to_owned()).chain(arguments.iter().map(few));
        let line = Line::try_parse_from(arguments).unwrap();
        let settings = Settings {
            seed,
            threads: line.threads.min(4),
            scale: 0.002,
            repeats: 1,
            repeat_ms: 0.01,
            budget_ms: 60_000,
            turns: None,
            pin: line.pin,
        };
        line.family.run(&settings).unwrap()
    }

    #[test]
    fn every_row_runs_and_reads_back_what_its_seed_says() {
        for row in rows() {
            let figures = run(&row.arguments, 1);
            assert!(figures.damaged == 0 && figures.operations > 0 && figures.ns > 0.0, "{}: {figures:?}", row.name);
            let again = run(&row.arguments, 1);
            assert_eq!(figures.checksum, again.checksum, "{}", row.name);
            if row.group != Group::Micro {
                assert_eq!(figures.operations, again.operations, "{}", row.name);
            }
        }
    }

    #[test]
    fn names_of_rows_are_unique() {
        let mut names: Vec<_> = rows().into_iter().map(|row| row.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
