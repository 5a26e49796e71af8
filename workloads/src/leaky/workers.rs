//! Worker threads: half of them end before the program does, the others are alive, and idle, at its exit.

use std::alloc::Layout;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::mpsc;
use std::thread;

use super::block::{Chain, Made};
use super::place::{Place, place};
use super::stream::{self, Outcome, Share};
use super::{LeakyError, Options};

#[inline(never)]
pub(super) fn keep_list(seed: u64) -> Made {
    let (at, list) = (place!(), vec![seed | 1; 48]);
    Made::from_vec(list, at)
}

type Mail = [u64; 56];
pub(super) const MAIL_BYTES: u64 = size_of::<Mail>() as u64;

#[inline(never)]
pub(super) fn make_mail(seed: u64) -> Made {
    let (at, mail) = (place!(), Box::new([seed; 56]));
    Made::from_box::<Mail>(mail, at)
}

/// Where threads leave blocks of [`make_mail`] for each other.
static MAILBOX: [AtomicPtr<u8>; 64] = [const { AtomicPtr::new(ptr::null_mut()) }; 64];

/// Leaves `made` in the box that `choice` picks, and frees what lay there.
pub(super) fn post(made: Made, choice: u64) {
    let (memory, layout) = made.into_raw();
    assert_eq!(layout, Layout::new::<Mail>(), "only mail is posted");
    free_mail(MAILBOX[choice as usize % MAILBOX.len()].swap(memory, Ordering::AcqRel));
}

/// Empties the mailbox. Call it when no thread posts any more.
pub(super) fn empty_mailbox() {
    MAILBOX.iter().for_each(|mail| free_mail(mail.swap(ptr::null_mut(), Ordering::AcqRel)));
}

fn free_mail(memory: *mut u8) {
    if !memory.is_null() {
        // SAFETY: `post` put a block of this layout there, and the swap made us its only owner.
        unsafe { Made::from_raw(memory, Layout::new::<Mail>(), place!()) }.free();
    }
}

/// A thread that was started.
pub(super) struct Worker {
    /// The name of the thread.
    pub(super) name: String,
    outcome: mpsc::Receiver<Outcome>,
    /// The handle, if the thread ends after its work.
    ends: Option<thread::JoinHandle<()>>,
}

impl Worker {
    /// Starts worker `number`; its rows begin at `first_row`.
    pub(super) fn start(
        number: u32,
        options: &Options,
        first_row: u64,
        seed: u64,
        chain: &'static Chain,
    ) -> Result<Self, LeakyError> {
        let stays = number % 2 == 1;
        let name = format!("{}-{number}", if stays { "alive" } else { "ended" });
        let (sender, outcome) = mpsc::channel();
        let mut shares = Share::of(&super::site::WORKER, options);
        let handle = thread::Builder::new()
            .name(name.clone())
            .spawn(move || {
                let done = stream::run(&mut shares, first_row, seed, chain);
                // Nobody listens only if the main thread failed, and then the process ends anyway.
                let _ = sender.send(done);
                if stays {
                    loop {
                        thread::park();
                    }
                }
            })
            .map_err(LeakyError::Thread)?;
        Ok(Self { name, outcome, ends: (!stays).then_some(handle) })
    }

    /// Waits until the worker has done its work, and, if it is one that ends, has ended.
    pub(super) fn finish(self) -> Result<Outcome, LeakyError> {
        let outcome = self.outcome.recv().map_err(|_| LeakyError::Worker(self.name.clone()))?;
        if let Some(handle) = self.ends {
            handle.join().map_err(|_| LeakyError::Worker(self.name))?;
        }
        Ok(outcome)
    }
}
