//! Local stream sockets for one of our threads, which waits for them and for being called.
//!
//! Descriptors here belong to the table of the thread that makes them: see [`leave_descriptors`](super::leave_descriptors).

use super::syscall::{CLOSE, UNLINK, syscall};
use core::ffi::CStr;

const POLL: usize = 7;
const SOCKET: usize = 41;
const CONNECT: usize = 42;
const SENDTO: usize = 44;
const RECVFROM: usize = 45;
const BIND: usize = 49;
const LISTEN: usize = 50;
const GETSOCKOPT: usize = 55;
const FCHMOD: usize = 91;
const GETEUID: usize = 107;
const TGKILL: usize = 234;
const NEWFSTATAT: usize = 262;
const ACCEPT4: usize = 288;
const SIGNALFD4: usize = 289;

const AF_UNIX: u16 = 1;
/// A stream whose calls do not wait, closed by exec.
const STREAM: usize = 1 | CLOEXEC | NONBLOCK;
const CLOEXEC: usize = 0o2_000_000;
const NONBLOCK: usize = 0o4000;
const EINTR: isize = -4;
const EAGAIN: isize = -11;
const ECONNREFUSED: isize = -111;

/// There is something to read, or a connection to accept.
pub(crate) const READABLE: i16 = 1;
/// There is room to write.
pub(crate) const WRITABLE: i16 = 4;

/// A descriptor, closed when dropped.
pub(crate) struct Socket(usize);

impl Socket {
    fn from(result: isize) -> Option<Socket> {
        usize::try_from(result).ok().map(Socket)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: ours, and not used again.
        unsafe { syscall(CLOSE, [self.0, 0, 0, 0, 0, 0]) };
    }
}

/// An address: a path of less than 108 bytes.
#[repr(C)]
struct Address {
    family: u16,
    path: [u8; 108],
}

fn address(path: &CStr) -> Option<Address> {
    let mut address = Address { family: AF_UNIX, path: [0; 108] };
    let path = path.to_bytes_with_nul();
    address.path.get_mut(..path.len())?.copy_from_slice(path);
    Some(address)
}

/// What came of [`listen`].
pub(crate) enum Listening {
    Yes(Socket),
    /// Somebody answers under this name already.
    Taken,
    /// It cannot be done.
    No,
}

/// Listen under this name, for the user alone. What a process has left there that is gone is removed.
pub(crate) fn listen(path: &CStr) -> Listening {
    let Some(address) = address(path) else { return Listening::No };
    let place = [&raw const address as usize, size_of::<Address>()];
    // SAFETY: the kernel reads an address of this size, and paths that are C strings.
    unsafe {
        let result = syscall(SOCKET, [AF_UNIX as usize, STREAM, 0, 0, 0, 0]);
        let Some(socket) = Socket::from(result) else { return Listening::No };
        // Before it has a name, this is what the file will have: nobody can be too early.
        syscall(FCHMOD, [socket.0, 0o600, 0, 0, 0, 0]);
        let bind = || syscall(BIND, [socket.0, place[0], place[1], 0, 0, 0]);
        let mut bound = bind();
        if bound < 0 {
            match connect(path) {
                Ok(_) => return Listening::Taken,
                Err(ECONNREFUSED) => {
                    syscall(UNLINK, [path.as_ptr() as usize, 0, 0, 0, 0, 0]);
                    bound = bind();
                }
                Err(_) => {}
            }
        }
        if bound < 0 {
            return Listening::No;
        }
        let listening = syscall(LISTEN, [socket.0, 64, 0, 0, 0, 0]);
        if listening == 0 { Listening::Yes(socket) } else { Listening::No }
    }
}

fn connect(path: &CStr) -> Result<Socket, isize> {
    let address = address(path).ok_or(ECONNREFUSED - 1)?;
    // SAFETY: the kernel reads an address of this size.
    unsafe {
        let result = syscall(SOCKET, [AF_UNIX as usize, STREAM, 0, 0, 0, 0]);
        let socket = Socket::from(result).ok_or(result)?;
        match syscall(CONNECT, [socket.0, &raw const address as usize, size_of::<Address>(), 0, 0, 0]) {
            // As many as may wait do: somebody listens.
            0 | EAGAIN => Ok(socket),
            error => Err(error),
        }
    }
}

/// The next connection that waits, and the user at its other end.
pub(crate) fn accept(listener: &Socket) -> Option<(Socket, u32)> {
    const SOL_SOCKET: usize = 1;
    const SO_PEERCRED: usize = 17;
    // SAFETY: no address is wanted; the kernel writes three words.
    unsafe {
        let client = Socket::from(syscall(ACCEPT4, [listener.0, 0, 0, CLOEXEC | NONBLOCK, 0, 0]))?;
        let (mut who, mut length) = ([u32::MAX; 3], size_of::<[u32; 3]>() as u32);
        let (at, size) = (who.as_mut_ptr() as usize, &raw mut length as usize);
        syscall(GETSOCKOPT, [client.0, SOL_SOCKET, SO_PEERCRED, at, size, 0]);
        Some((client, who[1]))
    }
}

/// What a call on a connection has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moved {
    /// So many bytes; at least one.
    Bytes(usize),
    /// Nothing can be moved at present.
    Nothing,
    /// The other end has closed, or the connection is broken.
    Over,
}

fn moved(result: isize) -> Moved {
    match result {
        EAGAIN | EINTR => Moved::Nothing,
        1.. => Moved::Bytes(result as usize),
        _ => Moved::Over,
    }
}

pub(crate) fn receive(from: &Socket, buffer: &mut [u8]) -> Moved {
    // SAFETY: the kernel writes at most the buffer's length.
    moved(unsafe { syscall(RECVFROM, [from.0, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]) })
}

/// Without a signal if nobody reads.
pub(crate) fn send(to: &Socket, bytes: &[u8]) -> Moved {
    const NOSIGNAL: usize = 0x4000;
    // SAFETY: the kernel reads at most the slice's length.
    moved(unsafe { syscall(SENDTO, [to.0, bytes.as_ptr() as usize, bytes.len(), NOSIGNAL, 0, 0]) })
}

/// Something to wait for.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    descriptor: i32,
    wanted: i16,
    come: i16,
}

impl Waiting {
    /// Never comes.
    pub(crate) const NOTHING: Waiting = Waiting { descriptor: -1, wanted: 0, come: 0 };

    pub(crate) fn on(descriptor: &Socket, wanted: i16) -> Waiting {
        Waiting { descriptor: descriptor.0 as i32, wanted, come: 0 }
    }

    /// What was wanted is so, or the descriptor is of no use any more.
    pub(crate) fn has_come(&self) -> bool {
        self.come != 0
    }
}

/// Wait until something has come, at most so many nanoseconds.
pub(crate) fn wait_for(what: &mut [Waiting], time: Option<u64>) {
    let milliseconds = time.map_or(-1, |time| time.div_ceil(1_000_000).min(i32::MAX as u64) as i32);
    // SAFETY: the kernel changes the slice's elements only.
    let come = unsafe { syscall(POLL, [what.as_mut_ptr() as usize, what.len(), milliseconds as usize, 0, 0, 0]) };
    if come < 0 {
        what.iter_mut().for_each(|one| one.come = 0);
    }
}

/// The signal that calls a thread of ours: blocked there as all are, it is seen by its descriptor only. Ignored wherever else it may get.
const CALL: usize = 23;

/// Becomes [`READABLE`] when the calling thread is [called](call_thread). `None`: the kernel cannot.
pub(crate) fn calls() -> Option<Socket> {
    let mask = 1u64 << (CALL - 1);
    // SAFETY: the kernel reads a mask of 8 bytes.
    Socket::from(unsafe { syscall(SIGNALFD4, [usize::MAX, &raw const mask as usize, 8, CLOEXEC | NONBLOCK, 0, 0]) })
}

/// Call a thread of ours, by its kernel's number.
pub(crate) fn call_thread(id: u32) {
    // SAFETY: a signal to a thread of this process; if it has ended, to nobody.
    unsafe { syscall(TGKILL, [super::process_id() as usize, id as usize, CALL, 0, 0, 0]) };
}

pub(crate) fn effective_user() -> u32 {
    // SAFETY: no arguments, no effect.
    unsafe { syscall(GETEUID, [0; 6]) as u32 }
}

/// A folder (no link to one) of this user's that nobody else may change.
pub(crate) fn is_own_folder(path: &CStr, user: u32) -> bool {
    const AT_FDCWD: usize = -100isize as usize;
    const NOFOLLOW: usize = 0x100;
    const FOLDER: u32 = 0o040_000;
    // Mode, user and group are the words 6 to 8 of 36.
    let mut status = [0u32; 36];
    // SAFETY: the kernel fills a `struct stat`, which is 144 bytes.
    let found = unsafe {
        syscall(NEWFSTATAT, [AT_FDCWD, path.as_ptr() as usize, status.as_mut_ptr() as usize, NOFOLLOW, 0, 0])
    };
    let (mode, owner) = (status[6], status[7]);
    found == 0 && mode & 0o170_000 == FOLDER && mode & 0o022 == 0 && owner == user
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    fn place(name: &str) -> CString {
        let path = std::env::temp_dir().join(std::format!("mimalloc-pprof-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        CString::new(path.to_str().unwrap()).unwrap()
    }

    #[test]
    fn a_conversation() {
        let path = place("socket");
        let Listening::Yes(listener) = listen(&path) else { panic!("it cannot listen") };
        let file = path.to_str().unwrap();
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(listen(&path), Listening::Taken));
        while accept(&listener).is_some() {} // that was a look
        let mut peer = UnixStream::connect(file).unwrap();
        let mut waiting = [Waiting::NOTHING, Waiting::on(&listener, READABLE)];
        wait_for(&mut waiting, None);
        assert!(waiting[1].has_come() && !waiting[0].has_come());
        let (client, user) = accept(&listener).unwrap();
        assert_eq!(user, effective_user());
        let mut buffer = [0; 10];
        assert_eq!(receive(&client, &mut buffer), Moved::Nothing);
        peer.write_all(b"abc").unwrap();
        assert_eq!(receive(&client, &mut buffer), Moved::Bytes(3));
        assert_eq!(send(&client, b"defg"), Moved::Bytes(4));
        assert_eq!(peer.read(&mut buffer).unwrap(), 4);
        drop(peer);
        assert_eq!(receive(&client, &mut buffer), Moved::Over);
        assert_eq!(send(&client, b"x"), Moved::Over);
        drop((client, listener));
        // What is left of one that is gone is in nobody's way.
        assert!(matches!(listen(&path), Listening::Yes(_)));
        std::fs::remove_file(file).unwrap();
        assert!(matches!(listen(c"/no/such/folder/socket"), Listening::No));
    }

    #[test]
    fn a_thread_is_called() {
        let (told, id) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let _undisturbed = super::super::Undisturbed::begin();
            let calls = calls().unwrap();
            told.send(super::super::kernel_thread_id()).unwrap();
            let mut waiting = [Waiting::on(&calls, READABLE)];
            wait_for(&mut waiting, Some(10_000_000_000));
            waiting[0].has_come()
        });
        call_thread(id.recv().unwrap());
        assert!(thread.join().unwrap());
    }

    #[test]
    fn folders() {
        let user = effective_user();
        let path = place("folder");
        let file = path.to_str().unwrap();
        let _ = std::fs::remove_dir(file);
        std::fs::create_dir(file).unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(is_own_folder(&path, user) && !is_own_folder(&path, user + 1));
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_own_folder(&path, user));
        std::fs::remove_dir(file).unwrap();
        std::os::unix::fs::symlink("/", file).unwrap();
        assert!(!is_own_folder(&path, user) && !is_own_folder(c"/dev/null", user) && !is_own_folder(c"/nowhere", user));
        std::fs::remove_file(file).unwrap();
    }
}
