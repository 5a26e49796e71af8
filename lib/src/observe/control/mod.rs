//! The control channel: a socket by which the user asks a process that runs, and tells it what to do. `docs/control.md` describes what is
//! said; `mpp ctl` says it.
//!
//! It is opened only where the environment asks for it, for the user alone, and served by a thread of its own, `mpp-control`, which allocates
//! nothing from the heap. What a client may take is bounded: a line's length, the time for it, and how many are served at once.

mod client;
mod commands;
mod json;
mod place;
mod request;

use super::files::{Remark, remark};
use crate::heap::{self, companion::Companion};
use crate::os::{self, Listening, Socket, Waiting};
use client::{Client, Room};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};

/// Clients that are served at once: who comes next takes the place of the one that has been silent for longest.
const CLIENTS: usize = 8;
/// Connections taken at once, so that those who are connected have their turn.
const ACCEPTED: usize = 2 * CLIENTS;

static COMPANION: Companion = Companion::new(c"mpp-control", run, threads_changed).called_by(call);
/// The channel is wanted.
static ON: AtomicBool = AtomicBool::new(false);
/// The thread as the kernel knows it.
static THREAD: AtomicU32 = AtomicU32::new(0);

/// Open the channel as soon as there is a thread.
pub(super) fn start() {
    place::remember();
    ON.store(true, Release);
}

/// A thread of the program has got its heap, or has left it. With no lock held.
pub(crate) fn threads_changed() {
    COMPANION.threads_changed(is_wanted, || {
        COMPANION.start();
    });
}

fn is_wanted() -> bool {
    ON.load(Relaxed) && heap::threads(1) >= 1
}

/// Whether there is to be a thread and is none: in a child that was forked a while ago.
pub(super) fn is_missing() -> bool {
    ON.load(Relaxed) && COMPANION.can_start()
}

/// The process ends: nobody is served any more, and the socket goes.
pub(super) fn stop() {
    ON.store(false, Relaxed);
    COMPANION.stop();
    place::remove();
}

/// The same, without waiting for anybody.
pub(super) fn stop_soon() {
    ON.store(false, Relaxed);
    place::remove();
}

/// In a forked child with one thread: it gets a channel of its own, if it is looked at like its parent.
pub(super) fn forked(follows: bool) {
    COMPANION.forked();
    place::forked();
    THREAD.store(0, Relaxed);
    if !follows {
        ON.store(false, Relaxed);
    }
}

fn call() {
    os::call_thread(THREAD.load(Acquire));
}

extern "C" fn run(_: *mut u8) -> *mut u8 {
    COMPANION.begin();
    THREAD.store(os::kernel_thread_id(), Release);
    // In the program's table it would be in the program's way: rather none.
    if os::leave_descriptors()
        && let Some(calls) = os::calls()
        && let Some(listener) = open()
    {
        serve(&calls, &listener);
        drop(listener);
        place::remove();
    }
    // Who wants it to end finds it here, not before: it would be made again.
    while !COMPANION.is_to_end() && heap::threads(1) != 0 {
        COMPANION.sleep(None, || false);
    }
    COMPANION.leave();
    core::ptr::null_mut()
}

/// The socket, in the first folder where it can be.
fn open() -> Option<Socket> {
    let mut taken = false;
    for candidate in 0..place::CANDIDATES {
        match place::choose(candidate, os::listen) {
            Some(Listening::Yes(socket)) => return Some(socket),
            Some(Listening::Taken) => taken = true,
            Some(Listening::No) | None => {}
        }
    }
    remark(if taken { Remark::ControlIsTaken } else { Remark::NoFolderForControl });
    None
}

fn serve(calls: &Socket, listener: &Socket) {
    let memory = os::map(CLIENTS * size_of::<Room>());
    if memory.is_null() {
        return;
    }
    let mut clients: [Option<Client>; CLIENTS] = [const { None }; CLIENTS];
    // A call may have come before it could be seen.
    while !COMPANION.is_to_end() && heap::threads(1) != 0 {
        let now = os::now();
        let mut waiting = [Waiting::NOTHING; CLIENTS + 2];
        waiting[0] = Waiting::on(calls, os::READABLE);
        waiting[1] = Waiting::on(listener, os::READABLE);
        for (client, waiting) in clients.iter().zip(&mut waiting[2..]) {
            if let Some(client) = client {
                *waiting = client.waits_for();
            }
        }
        let next = clients.iter().flatten().map(Client::ends).min();
        os::wait_for(&mut waiting, next.map(|next| next.saturating_sub(now)));
        if waiting[0].has_come() {
            break;
        }
        let now = os::now();
        for (index, place) in clients.iter_mut().enumerate() {
            let Some(client) = place else { continue };
            // SAFETY: a room for each place, mapped above, zero at first, and used by one client at a time.
            let room = unsafe { &mut *memory.cast::<Room>().add(index) };
            let goes_on = !waiting[index + 2].has_come() || client.serve(room, now);
            if !goes_on || now >= client.ends() {
                *place = None;
            }
        }
        if waiting[1].has_come() {
            take_in(&mut clients, listener, now);
        }
    }
    drop(clients);
    os::unmap(memory, CLIENTS * size_of::<Room>());
}

fn take_in(clients: &mut [Option<Client>; CLIENTS], listener: &Socket, now: u64) {
    for _ in 0..ACCEPTED {
        let Some((socket, user)) = os::accept(listener) else { return };
        if user != 0 && user != os::effective_user() {
            continue;
        }
        let place = clients.iter_mut().min_by_key(|client| client.as_ref().map_or(0, Client::ends));
        if let Some(place) = place {
            *place = Some(Client::new(socket, now));
        }
    }
}
