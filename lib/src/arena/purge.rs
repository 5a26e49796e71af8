//! Giving free runs back to the kernel.
//!
//! A run that is being given back, or a part of it, is of [`Kind::Purge`] and in no bin; the arena is not locked meanwhile. A child that was
//! forked then takes it for a free run again.

use super::arenas::is_plain;
use super::bins::unlink;
use super::regions::REGION;
use super::spans::{self, LOCK, free_locked, pool_of};
use super::walk::walk;
use super::window::slice;
use super::{Kind, PAGES, Residence, counts, huge};
use crate::os;
use core::sync::atomic::{Ordering::*, compiler_fence};

/// Slices that are given back in one piece, at most (32 MiB): nobody can use them meanwhile.
const MOST: usize = 512;

/// A piece of a free run, which is now the caller's.
#[derive(Clone, Copy)]
pub(crate) struct Purged {
    pub(crate) index: usize,
    pub(crate) slices: usize,
}

/// Take the free runs that begin in a region, for the kernel: all that are in memory (`forced`), or those that were there at the last
/// sweep. `least` is the shortest run to take, in slices. At most one piece for each slice of a region. Returns whether others wait for the next sweep.
pub(crate) fn begin_purge(region: usize, forced: bool, least: usize, mut taken: impl FnMut(Purged)) -> bool {
    if LOCK.held_by_me() {
        return false;
    }
    let mut waits = false;
    LOCK.lock();
    for index in region * REGION..(region + 1) * REGION {
        if !spans::is_used(index) || !super::is_ours(index) {
            continue;
        }
        // SAFETY: the lock is held; the slice has metadata.
        unsafe {
            let Some((Kind::Free, length)) = (*slice(index)).run() else { continue };
            let mut residence = (*slice(index)).residence();
            let is_absent = residence.absent as usize >= length * PAGES;
            if residence.clean || is_absent || length < least || !is_plain(index) {
                continue;
            }
            if !residence.aged && !forced {
                (*slice(index)).set_residence(Residence { aged: true, ..residence });
                waits = true;
                continue;
            }
            unlink(index, length);
            let slices = length.min(MOST);
            if slices < length {
                let rest = residence.split_off(length, length - slices);
                (*slice(index + slices)).pool = pool_of(index);
                spans::release(index + slices, length - slices, rest);
            }
            (*slice(index)).set_residence(residence);
            compiler_fence(SeqCst);
            (*slice(index)).set_run(Kind::Purge, slices);
            taken(Purged { index, slices });
        }
    }
    LOCK.unlock();
    waits
}

/// Take what free runs that read zero have in a region. Where its memory is one huge page, that is in memory nevertheless.
pub(crate) fn begin_purge_of_untouched(region: usize, mut taken: impl FnMut(Purged)) {
    if LOCK.held_by_me() {
        return;
    }
    let (start, end) = (region * REGION, (region + 1) * REGION);
    LOCK.lock();
    let mut at = start;
    // SAFETY: the lock is held; slices that may begin runs have metadata.
    unsafe {
        while at < end && spans::is_used(at) && super::is_ours(at) {
            let run = match (*slice(at)).run() {
                Some((_, length)) if (*slice(at)).kind() != Kind::Free || !(*slice(at)).clean || !is_plain(at) => {
                    at += length;
                    continue;
                }
                Some(_) => at,
                // The region begins inside a run: whichever ends before its first head.
                None => {
                    let head = (at..end).find(|&next| spans::is_used(next) && (*slice(next)).run().is_some());
                    let before = head.and_then(|head| spans::free_run_before(head, super::Pool::COMMON));
                    match before.filter(|&run| (*slice(run)).clean && run < at) {
                        Some(run) => run,
                        None => match head {
                            Some(head) => {
                                at = head;
                                continue;
                            }
                            None => break,
                        },
                    }
                }
            };
            let (behind, mut left) = (run + (*slice(run)).length(), (*slice(run)).residence());
            let next = behind.min(end);
            unlink(run, behind - run);
            let of_piece = left.split_off(behind - run, next - at);
            if next < behind {
                let of_rear = left.split_off(at - run + behind - next, behind - next);
                (*slice(next)).pool = pool_of(run);
                spans::release(next, behind - next, of_rear);
            }
            (*slice(at)).pool = pool_of(run);
            (*slice(at)).set_residence(of_piece);
            compiler_fence(SeqCst);
            (*slice(at)).set_run(Kind::Purge, next - at);
            if run < at {
                spans::release(run, at - run, left);
            }
            taken(Purged { index: at, slices: next - at });
            at = next;
        }
    }
    LOCK.unlock();
}

/// The kernel has taken a piece, or refused it (not `done`): it is a free run again. Returns how many bytes are free that were not before.
/// `lazily`: it takes the pages when it needs them, and until then they read what they held.
pub(crate) fn end_purge(piece: Purged, done: bool, lazily: bool) -> usize {
    // SAFETY: the piece is the caller's.
    let before = unsafe { (*slice(piece.index)).residence() };
    let all = Residence::returned(piece.slices);
    let gained = if done { all.absent.saturating_sub(before.absent) as usize } else { 0 };
    if gained != 0 {
        counts::note_discard(gained);
    }
    if done && !lazily {
        huge::emptied(piece.index, piece.index + piece.slices);
    }
    LOCK.lock();
    // What was absent because it was never used has not been given back.
    let returned = (before.returned + gained as u32).min(all.returned);
    let returned = Residence { clean: !lazily, returned, ..all };
    // SAFETY: the lock is held; the piece is a run of its own.
    unsafe { free_locked(piece.index, if done { returned } else { before }) };
    LOCK.unlock();
    gained * os::PAGE
}

/// The least run whose metadata is worth a call, in slices (4 MiB of memory, 36 KiB of metadata).
const LEAST_METADATA: usize = 64;

/// Give back the metadata of free runs that read zero. Returns how many runs that were, and how many bytes. With the right to sweep.
pub(crate) fn purge_metadata() -> (usize, usize) {
    let (mut runs, mut bytes, mut from) = (0, 0, 0);
    while let Some(Purged { index, slices }) = take_clean_from(from) {
        from = index + slices;
        // All but the first and the last slice of a free run have nothing to say.
        let start = (slice(index + 1) as usize).next_multiple_of(os::PAGE);
        let end = slice(index + slices - 1) as usize / os::PAGE * os::PAGE;
        if os::discard(start as *mut u8, end - start) {
            (runs, bytes) = (runs + 1, bytes + (end - start));
        }
        LOCK.lock();
        // SAFETY: the lock is held; the run is the caller's.
        unsafe { free_locked(index, (*slice(index)).residence()) };
        LOCK.unlock();
    }
    (runs, bytes)
}

/// The next long run of the window that reads zero, as a piece.
fn take_clean_from(from: usize) -> Option<Purged> {
    if LOCK.held_by_me() {
        return None;
    }
    LOCK.lock();
    let mut found = None;
    walk(|run, kind| {
        // SAFETY: the lock is held; this is the head of a run.
        unsafe {
            let length = (*slice(run)).length();
            let is_wanted = kind == Kind::Free && (*slice(run)).clean && pool_of(run) == super::Pool::COMMON;
            if found.is_none() && run >= from && run < super::SLICES && length >= LEAST_METADATA && is_wanted {
                found = Some(Purged { index: run, slices: length });
            }
        }
    });
    if let Some(Purged { index, slices }) = found {
        // SAFETY: as above.
        unsafe {
            unlink(index, slices);
            (*slice(index)).set_run(Kind::Purge, slices);
        }
    }
    LOCK.unlock();
    found
}

/// Pieces of a sweeper that this process does not have. False: this thread was interrupted in the arena, and it is to be done later.
///
/// They are free runs again, and in memory for all that is known. One sweeper at most, and none at the moment.
pub(crate) fn repair_purges() -> bool {
    if LOCK.held_by_me() {
        return false;
    }
    LOCK.lock();
    loop {
        let mut found = None;
        walk(|run, kind| found = found.or((kind == Kind::Purge).then_some(run)));
        let Some(run) = found else { break };
        // SAFETY: the lock is held, and nobody knows the piece.
        unsafe { free_locked(run, Residence { aged: false, ..(*slice(run)).residence() }) };
    }
    LOCK.unlock();
    true
}
