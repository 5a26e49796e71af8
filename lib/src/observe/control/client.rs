//! One connection: lines come in, lines go out, and neither takes longer than it may.

use super::commands;
use super::json::Answer;
use crate::os::{self, Moved, Socket, Waiting};

/// Longest line, in bytes: a path and a few words.
pub(super) const LINE: usize = 8 << 10;
/// Longest answer, in bytes.
const ANSWER: usize = 56 << 10;
/// Nanoseconds from one whole line, or the connection, to the next; and for an answer to be read.
const PATIENCE: u64 = 5_000_000_000;

/// The buffers of a connection. Not touched before they are needed.
pub(super) struct Room {
    line: [u8; LINE],
    answer: [u8; ANSWER],
}

pub(super) struct Client {
    socket: Socket,
    ends: u64,
    /// Bytes of a line that have come.
    come: usize,
    /// Bytes of an answer that are to go, and that have gone.
    to_go: usize,
    gone: usize,
    /// Nothing more is read.
    last: bool,
}

impl Client {
    pub(super) fn new(socket: Socket, now: u64) -> Client {
        Client { socket, ends: now + PATIENCE, come: 0, to_go: 0, gone: 0, last: false }
    }

    /// Until when it may take.
    pub(super) fn ends(&self) -> u64 {
        self.ends
    }

    pub(super) fn waits_for(&self) -> Waiting {
        Waiting::on(&self.socket, if self.to_go > 0 { os::WRITABLE } else { os::READABLE })
    }

    /// Do what can be done without waiting. False: the connection is over.
    pub(super) fn serve(&mut self, room: &mut Room, now: u64) -> bool {
        if self.to_go == 0 {
            match os::receive(&self.socket, &mut room.line[self.come..]) {
                Moved::Bytes(bytes) => self.come += bytes,
                Moved::Nothing => return true,
                Moved::Over => return false,
            }
            self.answer(room, now);
        }
        self.send(room, now)
    }

    /// Answer the first whole line that has come.
    fn answer(&mut self, room: &mut Room, now: u64) {
        let come = &room.line[..self.come];
        let mut answer = Answer::new(&mut room.answer);
        match come.iter().position(|&byte| byte == b'\n') {
            Some(length) => {
                commands::answer(&room.line[..length], &mut answer);
                room.line.copy_within(length + 1..self.come, 0);
                self.come -= length + 1;
            }
            None if self.come == LINE => {
                commands::refuse(&mut answer, b"the line is too long");
                self.last = true;
            }
            None => return,
        }
        self.to_go = answer.finish();
        self.gone = 0;
        // What the command took is not the client's fault.
        self.ends = os::now().max(now) + PATIENCE;
    }

    fn send(&mut self, room: &mut Room, now: u64) -> bool {
        while self.to_go > 0 {
            match os::send(&self.socket, &room.answer[self.gone..self.to_go]) {
                Moved::Bytes(bytes) => self.gone += bytes,
                Moved::Nothing => return true,
                Moved::Over => return false,
            }
            if self.gone == self.to_go {
                (self.gone, self.to_go) = (0, 0);
                if self.last {
                    return false;
                }
                // One line after the other, each only when the answer to the one before has gone.
                self.answer(room, now);
            }
        }
        true
    }
}
