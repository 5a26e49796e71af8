//! A web server that does what a test tells it to, however wrong.

#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// It listens on the loopback interface until it is dropped.
pub(crate) struct Web {
    address: SocketAddr,
    paths: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Web {
    /// Calls `answer` with the path of each request; the connection is closed when it returns.
    pub(crate) fn new(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (paths, is_over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (seen, stop, answer) = (Arc::clone(&paths), Arc::clone(&is_over), Arc::new(answer));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(SeqCst) {
                    break;
                }
                let (Ok(mut stream), seen, answer) = (stream, Arc::clone(&seen), Arc::clone(&answer)) else { continue };
                thread::spawn(move || {
                    let Some(path) = request(&mut stream) else { return };
                    seen.lock().expect("a lock").push(path.clone());
                    answer(&path, &mut stream);
                });
            }
        });
        Web { address, paths, is_over, thread: Some(thread) }
    }

    /// One that answers everything with these bytes.
    pub(crate) fn saying(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::new(move |_, stream| _ = stream.write_all(&bytes))
    }

    /// Its address, for `DEBUGINFOD_URLS`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The paths that were asked for, so far.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.paths.lock().expect("a lock").clone()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.is_over.store(true, SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server did not panic");
        }
    }
}

/// The path in the request line, when the request is there.
fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        (stream.read(&mut byte).ok()? == 1 && bytes.len() < 64 << 10).then_some(())?;
        bytes.push(byte[0]);
    }
    String::from_utf8_lossy(&bytes).split(' ').nth(1).map(str::to_owned)
}

/// Waits until the other side closes the connection.
pub(crate) fn stall(stream: &mut TcpStream) {
    while stream.read(&mut [0; 64]).is_ok_and(|length| length > 0) {}
}

/// A sound answer.
pub(crate) fn ok(body: &[u8]) -> Vec<u8> {
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).into_bytes();
    answer.extend(body);
    answer
}

/// An answer without a body.
pub(crate) fn status(code: u16, headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 {code} Whatever\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
}
