//! What holds, and which mutants are refuted.

use super::super::explore::explore;
use super::{Claim, Mutant};

const LIMIT: usize = 6_000_000;

#[test]
fn no_live_page_is_discarded_and_no_block_lost() {
    for (name, model) in [("straddling", Claim::STRADDLE), ("two slices", Claim::SLICED), ("a tail", Claim::TAIL)] {
        explore(&model, LIMIT).must_hold(&format!("claim: {name}"));
        explore(&Claim { forks: true, ..model }, LIMIT).must_hold(&format!("claim: {name}, with a fork"));
    }
    explore(&Claim::SHARED, LIMIT).must_hold("claim: a shared page");
}

#[test]
fn zones() {
    let model = Claim { zone: true, ..Claim::TAIL };
    explore(&model, LIMIT).must_hold("claim: a zone");
    explore(&Claim { forks: true, ..model }, LIMIT).must_hold("claim: a zone, with a fork");
}

#[test]
fn mutants_are_refuted() {
    use Mutant::*;
    let alone = Claim::STRADDLE;
    let forked = Claim { forks: true, ..alone };
    let zone = Claim { zone: true, ..Claim::TAIL };
    let zone_forked = Claim { forks: true, ..zone };
    for (mutant, model) in [
        (RecordAfterClear, forked),
        (RecordClearedFirst, forked),
        (RecordClearedLate, forked),
        (ClaimUnlocked, alone),
        (MadviseFirst, alone),
        (ReturnedThoughRefused, alone),
        (RefusedForgotten, alone),
        (CandidateKept, alone),
        (ClaimedCountAsFresh, Claim::SHARED),
        (CountedEarly, alone),
        (EmptyClaimed, alone),
        (NotListed, alone),
        (UnlockBeforeList, alone),
        (FlagAfterLook, alone),
        (TouchBeforeLock, alone),
        (CreateForgets, alone),
        (KeptForgotten, alone),
        (TailForgotten, Claim { zone: true, ..Claim::TAIL }),
        (SliceBySlice, Claim::SLICED),
        (SkipForgets, forked),
        (RepairForgetsRecords, forked),
        (RepairSetsLocked, forked),
        (RepairForgetsFlag, forked),
        (RecordsOverwritten, forked),
        (RecordsNotFound, forked),
        (EndIgnoresPurge, zone),
        (EndKeepsRecords, zone_forked),
        (FinishIgnoresPurge, zone_forked),
    ] {
        explore(&Claim { mutant, ..model }, LIMIT).must_fail(&format!("claim: {mutant:?}"));
    }
}
