//! The control channel of a real process: what it answers, to whom, and what its clients cannot do to it.

mod support;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use support::{compile, preloaded};

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("control.c", &[]))
}

/// An empty folder with a short name, as a socket's path has to be short; for the user alone.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("mpp-control-{name}.{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

const SAMPLING: [(&str, &str); 2] = [("MIMALLOC_PROF", "1"), ("MIMALLOC_PROF_SAMPLE_RATE", "1000")];

/// A program that runs until its standard input ends. It is killed at the latest when the test ends.
struct Target {
    child: Child,
    folder: PathBuf,
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Target {
    fn start(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Target {
        let folder = folder(name);
        let mut command = preloaded(program());
        command.args(arguments).env("XDG_RUNTIME_DIR", &folder).env("MIMALLOC_CTL", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(variables.iter().copied());
        Target { child: command.spawn().unwrap(), folder }
    }

    fn sampling(name: &str) -> Target {
        Target::start(name, &["one"], &SAMPLING)
    }

    fn socket(&self) -> PathBuf {
        self.folder.join(format!("mpp-{}.sock", self.child.id()))
    }

    /// As soon as it listens.
    fn connect(&self) -> Connection {
        let socket = self.socket();
        wait_for(|| UnixStream::connect(&socket).is_ok());
        connect(&socket)
    }

    /// Its work goes on: a line in, a line out.
    fn goes_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        let mut byte = [0];
        self.child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }

    /// It ends by itself, and leaves no socket.
    fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let (mut out, mut err) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert!(self.child.wait().unwrap().success(), "{err}");
        assert!(!self.socket().exists());
        err
    }
}

#[track_caller]
fn wait_for(mut what: impl FnMut() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(10), "it never came to pass");
        std::thread::sleep(Duration::from_millis(5));
    }
}

struct Connection(BufReader<UnixStream>);

fn connect(socket: &Path) -> Connection {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    Connection(BufReader::new(stream))
}

impl Connection {
    fn send(&mut self, text: &[u8]) {
        self.0.get_mut().write_all(text).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(format!("{line}\n").as_bytes());
        self.line()
    }

    #[track_caller]
    fn agrees(&mut self, line: &str) -> String {
        let answer = self.ask(line);
        assert!(answer.starts_with("{\"ok\":true") && answer.ends_with('}'), "{line}: {answer}");
        answer
    }

    #[track_caller]
    fn refuses(&mut self, line: &str, why: &str) {
        let answer = self.ask(line);
        assert!(answer.starts_with("{\"ok\":false,\"error\":\"") && answer.contains(why), "{line}: {answer}");
    }
}

/// The number behind a key.
#[track_caller]
fn number(answer: &str, key: &str) -> u64 {
    let at = answer.find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no {key} in {answer}"));
    let digits: String = answer[at + key.len() + 3..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("{key} in {answer}"))
}

#[test]
fn commands() {
    let mut target = Target::sampling("commands");
    target.goes_on(); // it has allocated what it keeps
    let mut client = target.connect();
    let mode = fs::metadata(target.socket()).unwrap();
    assert!(mode.file_type().is_socket() && mode.permissions().mode() & 0o777 == 0o600);
    let status = client.agrees("status");
    assert_eq!(number(&status, "pid"), u64::from(target.child.id()));
    assert!(status.contains("\"sampling\":true") && number(&status, "sample_rate") == 1000, "{status}");
    assert!(number(&status, "estimated_live_bytes") > 3_000_000, "{status}");

    // Paths with everything in them.
    let dump = target.folder.join("a \"b\\c.prof");
    let quoted = dump.to_str().unwrap().replace('\\', "\\\\").replace('"', "\\\"");
    client.agrees("mark \"half way\"");
    let answer = client.agrees(&format!("dump \"{quoted}\" text"));
    assert!(answer.contains("a \\\"b\\\\c.prof\""), "{answer}");
    let text = fs::read_to_string(&dump).unwrap();
    assert!(
        text.starts_with("heap profile: ") && text.contains("\n# mark = ") && text.contains(" s half way\n"),
        "{text}"
    );
    client.refuses("dump relative.prof", "not absolute");
    client.refuses("dump /no/such/folder/at/all.prof text", "no such folder");
    client.refuses("dump /tmp/x what", "format");
    client.refuses("dump", "MIMALLOC_PROF_DUMP");
    client.refuses("", "no command");
    client.refuses("nonsense", "unknown command");
    client.refuses("status now", "too many words");
    client.refuses("mark", "needs a name");

    let stopped = client.agrees("stop");
    assert!(stopped.contains("\"was_sampling\":true"), "{stopped}");
    assert!(client.agrees("status").contains("\"sampling\":false"));
    client.refuses(&format!("dump {}/x.prof", target.folder.display()), "not sampling");
    client.refuses("reset", "not sampling");
    client.refuses("start soon", "rate");
    client.refuses("start 0", "rate");
    assert_eq!(number(&client.agrees("start 64KiB"), "sample_rate"), 65_536);
    assert!(client.agrees("start").contains("\"began\":false"));
    client.agrees("reset");

    assert!(number(&client.agrees("stats"), "live_bytes") > 3_000_000);
    assert!(client.agrees("purge").contains("\"complete\":true"));
    let options = client.agrees("options");
    assert!(number(&options, "prof_sample_rate") == 1000 && options.contains("\"purge_delay\":100"), "{options}");
    client.agrees("options purge_delay=250");
    assert_eq!(client.agrees("options purge_delay"), "{\"ok\":true,\"options\":{\"purge_delay\":250}}");
    client.refuses("options purge_delay=x", "value");
    client.refuses("options no_such", "unknown option");
    target.goes_on();
    assert_eq!(target.end(), "");
}

/// Without a profile from the start, and without a word in the environment.
#[test]
fn only_where_it_is_asked_for() {
    let mut target = Target::start("unasked", &["one"], &[("MIMALLOC_CTL", "0"), ("MIMALLOC_PROF", "1")]);
    target.goes_on();
    assert_eq!(fs::read_dir(&target.folder).unwrap().count(), 0);
    target.end();
    let target = Target::start("unsampled", &["one"], &[]);
    let mut client = target.connect();
    assert!(client.agrees("status").contains("\"sampling\":false"));
    assert!(client.agrees("start 1000").contains("\"began\":true"));
    target.end();
}

#[test]
fn hostile_clients() {
    let mut target = Target::sampling("hostile");
    drop(target.connect());
    let socket = target.socket();
    // Half a line, and silence.
    let mut half: Vec<Connection> = (0..4).map(|_| connect(&socket)).collect();
    half.iter_mut().for_each(|client| client.send(b"stat"));
    // A line without an end.
    let mut long = connect(&socket);
    let flood = vec![b'x'; 100_000];
    let _ = long.0.get_mut().write_all(&flood);
    assert!(long.line().contains("too long"));
    // Requests without end, and nobody who reads the answers.
    let deaf: Vec<_> = (0..3)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.set_nonblocking(true).unwrap();
            let lines = b"options\n".repeat(10_000);
            let _ = stream.write(&lines);
            stream
        })
        .collect();
    // Everything that there is, and nothing that makes sense.
    let mut odd = connect(&socket);
    odd.send(b"\0\xff\xfe status \x01\n\"\n\n");
    for _ in 0..3 {
        assert!(odd.line().starts_with("{\"ok\":false"));
    }
    target.goes_on();
    // A thousand at once; who comes now is served all the same.
    let crowd: Vec<_> = (0..1000)
        .filter_map(|_| {
            // As many as may wait do: then the kernel has this one wait, until some are taken.
            UnixStream::connect(&socket).ok()
        })
        .collect();
    assert!(crowd.len() > 900);
    target.goes_on();
    let mut client = target.connect();
    client.agrees("status");
    drop((half, deaf, crowd));
    client.agrees("status");
    drop(client);
    target.goes_on();
    assert_eq!(target.end(), "");
}

/// Who is silent for five seconds is cut off.
#[test]
fn patience() {
    let target = Target::sampling("patience");
    let mut client = target.connect();
    client.send(b"sta");
    let start = Instant::now();
    assert_eq!(client.line(), "");
    assert!((4..15).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    target.end();
}

#[test]
fn forked_children_have_their_own() {
    let target = Target::start("forks", &["fork"], &SAMPLING);
    target.connect().agrees("status");
    let sockets =
        || -> Vec<PathBuf> { fs::read_dir(&target.folder).unwrap().map(|entry| entry.unwrap().path()).collect() };
    wait_for(|| sockets().len() == 2);
    let child = sockets().into_iter().find(|socket| *socket != target.socket()).unwrap();
    wait_for(|| UnixStream::connect(&child).is_ok());
    let status = connect(&child).agrees("status");
    assert!(number(&status, "pid") != u64::from(target.child.id()), "{status}");
    assert!(number(&status, "inherited_samples") > 0, "{status}");
    target.connect().agrees("status");
    let folder = target.folder.clone();
    target.end();
    wait_for(|| fs::read_dir(&folder).map_or(0, Iterator::count) == 0);
}

#[test]
fn ends_that_leave_something() {
    // Killed, it leaves its socket; the next one of that number takes the place. The number cannot be had again at will: the file can.
    let mut target = Target::sampling("killed");
    target.connect().agrees("status");
    target.child.kill().unwrap();
    target.child.wait().unwrap();
    assert!(target.socket().exists());
    for how in ["_exit", "main_ends", "chdir_and_close"] {
        let target = Target::start(how, &[how], &[("MIMALLOC_PROF", "1")]);
        target.connect().agrees("status");
        target.end();
    }
    // No folder: the program runs, and the user hears of it at the end.
    let target = Target::start("nowhere", &["one"], &[("XDG_RUNTIME_DIR", "/dev/null")]);
    let elsewhere: Vec<String> = {
        let user = String::from_utf8(Command::new("id").arg("-u").output().unwrap().stdout).unwrap();
        [format!("/run/user/{}", user.trim()), format!("/tmp/mpp-{}", user.trim())]
            .map(|folder| format!("{folder}/mpp-{}.sock", target.child.id()))
            .into()
    };
    wait_for(|| elsewhere.iter().any(|socket| UnixStream::connect(socket).is_ok()));
    target.end();
    assert!(!elsewhere.iter().any(|socket| Path::new(socket).exists()));
}
