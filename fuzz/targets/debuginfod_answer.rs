//! Any bytes are what a debuginfod server answers. A file that is taken has the build id that was asked for.

#![no_main]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use mpp_symbolizer::{Debuginfod, DebuginfodFile, DebuginfodMode, DebuginfodSettings};

/// The build id of the program in the seeds.
const BUILD_ID: [u8; 8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];

/// What the server says.
static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

static SERVER: LazyLock<SocketAddr> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The client may have had enough at any time.
            drop(serve(stream));
        }
    });
    address
});

/// One cache for each fuzzing process.
static CACHE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("mpp-fuzz-debuginfod-{}", std::process::id())));

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut bytes = [0; 1024];
        let length = stream.read(&mut bytes)?;
        if length == 0 {
            return Ok(());
        }
        request.extend_from_slice(&bytes[..length]);
    }
    let answer = ANSWER.lock().expect("a lock").clone();
    stream.write_all(&answer)
}

fuzz_target!(|data: &[u8]| {
    // A redirect may lead back to the server, but not to others.
    if data.windows(3).any(|three| three == b"://") {
        return;
    }
    data.clone_into(&mut ANSWER.lock().expect("a lock"));
    let debuginfod = Debuginfod::new(DebuginfodSettings {
        mode: DebuginfodMode::On,
        servers: vec![format!("http://{}", *SERVER)],
        cache_dir: Some(CACHE.clone()),
        timeout: Duration::from_secs(5),
        max_size: 1 << 20,
        ..DebuginfodSettings::default()
    });
    match debuginfod.find(&BUILD_ID, &DebuginfodFile::Debuginfo) {
        Ok(path) => {
            let file = std::fs::read(path).expect("the file is there");
            assert!(file.windows(8).any(|eight| eight == BUILD_ID));
        }
        Err(error) => assert!(!error.to_string().chars().any(char::is_control), "{error}"),
    }
    drop(std::fs::remove_dir_all(&*CACHE));
});
