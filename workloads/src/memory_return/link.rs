//! How subject and observer talk: notes of a fixed size on the subject's standard output, single bytes on its standard input.
//!
//! The subject allocates nothing for it.

use std::io::{self, Read};

use crate::driver::clock;

/// What a note says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Tables are mapped, nothing is allocated yet. The value is the address of `malloc`. The subject waits for an answer.
    Start = 1,
    /// A thread of the program: its number.
    Thread,
    /// Everything is allocated. The subject waits for an answer.
    Peak,
    /// All but the survivors are freed. The subject goes on without an answer; the next one tells it to come to its end.
    Drained,
    /// A figure with a name.
    Figure,
    /// All was read back: the value is the number of damaged blocks.
    End,
}

impl Kind {
    const fn of(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Start,
            2 => Self::Thread,
            3 => Self::Peak,
            4 => Self::Drained,
            5 => Self::Figure,
            6 => Self::End,
            _ => return None,
        })
    }
}

/// Bytes of a note; short enough that a pipe takes it as a whole.
const BYTES: usize = 64;
/// Bytes of a figure's name at most.
const NAME: usize = 40;

/// A note as the observer reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// What it says.
    pub kind: Kind,
    /// Nanoseconds on the clock that only goes forward, when it was written.
    pub time: u64,
    /// The name of a figure, else empty.
    pub name: String,
    /// A number, or the bits of a figure.
    pub value: u64,
}

impl Note {
    fn encode(kind: Kind, name: &str, value: u64) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&(kind as u32).to_le_bytes());
        bytes[8..16].copy_from_slice(&clock::wall().to_le_bytes());
        bytes[16..24].copy_from_slice(&value.to_le_bytes());
        let length = name.len().min(NAME);
        bytes[24..24 + length].copy_from_slice(&name.as_bytes()[..length]);
        bytes
    }

    fn decode(bytes: &[u8; BYTES]) -> Option<Self> {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let name = bytes[24..].split(|&byte| byte == 0).next().unwrap_or_default();
        Some(Self {
            kind: Kind::of(number(0) as u32)?,
            time: number(8),
            name: String::from_utf8_lossy(name).into_owned(),
            value: number(16),
        })
    }

    /// Reads the next note; `None` at the end.
    ///
    /// # Errors
    /// When what comes is no note, for example because a library prints.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut bytes = [0; BYTES];
        let mut length = 0;
        while length < BYTES {
            match from.read(&mut bytes[length..]) {
                Ok(0) if length == 0 => return Ok(None),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Self::decode(&bytes).map(Some).ok_or_else(|| io::Error::other("the subject printed something else"))
    }
}

/// The subject's end. There is one; its methods may be called by any thread.
#[derive(Clone, Copy, Debug)]
pub struct Link(());

impl Link {
    /// The subject's end of the link. Only a process that an observer started has one.
    #[must_use]
    pub fn of_subject() -> Self {
        Self(())
    }

    /// Says something.
    pub fn say(self, kind: Kind, value: u64) {
        send(&Note::encode(kind, "", value));
    }

    /// Tells a figure.
    pub fn figure(self, name: &str, value: f64) {
        send(&Note::encode(Kind::Figure, name, value.to_bits()));
    }

    /// Tells that the calling thread is one of the program's.
    pub fn thread(self) {
        // SAFETY: a system call without arguments.
        self.say(Kind::Thread, unsafe { libc::syscall(libc::SYS_gettid) } as u64);
    }

    /// Says something and waits for the answer.
    pub fn ask(self, kind: Kind, value: u64) {
        self.say(kind, value);
        self.wait();
    }

    /// Waits for the next byte from the observer. Without an observer there is nothing left to do.
    pub fn wait(self) {
        let mut byte = 0u8;
        loop {
            // SAFETY: one valid byte.
            match unsafe { libc::read(0, (&raw mut byte).cast(), 1) } {
                1 => return,
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                // SAFETY: ends the process at once.
                _ => unsafe { libc::_exit(1) },
            }
        }
    }

    /// Whether [`Link::wait`] would return at once.
    #[must_use]
    pub fn is_answered(self) -> bool {
        let mut poll = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
    }
}

fn send(bytes: &[u8; BYTES]) {
    // SAFETY: the bytes are valid. An observer that has gone away is met at the next `wait`.
    unsafe { libc::write(1, bytes.as_ptr().cast(), BYTES) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_arrive_as_they_were_sent() {
        let long = "a".repeat(100);
        let mut bytes = Note::encode(Kind::Drained, "", 7).to_vec();
        bytes.extend(Note::encode(Kind::Figure, &long, 1.5f64.to_bits()));
        let mut from = bytes.as_slice();
        let note = Note::read(&mut from).unwrap().unwrap();
        assert_eq!((note.kind, note.value, note.name.as_str()), (Kind::Drained, 7, ""));
        let note = Note::read(&mut from).unwrap().unwrap();
        assert_eq!((note.kind, note.value, note.name), (Kind::Figure, 1.5f64.to_bits(), "a".repeat(NAME)));
        assert_eq!(Note::read(&mut from).unwrap(), None);
        assert!(Note::read(&mut &bytes[..9]).is_err() && Note::read(&mut [9; BYTES].as_slice()).is_err());
    }
}
