//! Only servers that the machine trusts are believed to be who they are.

mod common;
#[path = "common/fetching.rs"]
mod fetching;
#[path = "common/web.rs"]
mod web;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use common::run;
use fetching::Fixture;
use mpp_symbolizer::{Debuginfod, DebuginfodFile, DebuginfodSettings};
use web::{ok, status};

/// `openssl` serving whole answers from a folder by https, with a certificate that nobody has heard of.
struct SecureServer {
    child: Child,
    port: u16,
}

impl SecureServer {
    fn new(fixture: &Fixture) -> Self {
        let (key, certificate) = (fixture.folder.path("key.pem"), fixture.folder.path("certificate.pem"));
        let subject = [
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ];
        run(Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
            .args(subject)
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate));
        let file = fixture.folder.path("buildid").join(fixture.id_text()).join("debuginfo");
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, ok(&fixture.bytes)).expect("written");
        let away = status(302, "Location: http://127.0.0.1:1/\r\n");
        fs::write(file.with_file_name("executable"), away).expect("written");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
        let child = Command::new("openssl")
            .args(["s_server", "-HTTP", "-quiet", "-accept", &format!("127.0.0.1:{port}"), "-key"])
            .arg(&key)
            .arg("-cert")
            .arg(&certificate)
            .current_dir(fixture.folder.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl starts");
        let server = SecureServer { child, port };
        for _ in 0..1000 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return server;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("openssl does not listen");
    }
}

impl Drop for SecureServer {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("openssl can be ended");
    }
}

/// Which authorities are trusted is read from the environment, so the test runs itself with another one.
const TRUSTING: &str = "MPP_TEST_TRUSTED_SERVER";

#[test]
fn only_trusted_servers_over_https() {
    if let Ok(server) = std::env::var(TRUSTING) {
        let (url, id) = server.split_once(' ').expect("two words");
        let id: Vec<u8> = (0..id.len() / 2).map(|i| u8::from_str_radix(&id[2 * i..][..2], 16).expect("hex")).collect();
        let fixture = Fixture::new();
        let with = |url: &str| DebuginfodSettings { servers: vec![url.to_owned()], ..fixture.settings(&[]) };
        let path = Debuginfod::new(with(url)).find(&id, &DebuginfodFile::Debuginfo).expect("the file");
        assert!(fs::metadata(path).expect("the file").len() > 1000);
        let error = Debuginfod::new(with(url)).find(&id, &DebuginfodFile::Executable).expect_err("not by http");
        assert!(error.to_string().contains("from https to http"), "{error}");
        // The right certificate for another name.
        let other = url.replace("127.0.0.1", "localhost");
        let error = Debuginfod::new(with(&other)).find(&id, &DebuginfodFile::Executable).expect_err("another name");
        assert!(error.to_string().contains("certificate"), "{error}");
        return;
    }
    let fixture = Fixture::new();
    let server = SecureServer::new(&fixture);
    let url = format!("https://127.0.0.1:{}", server.port);
    let settings =
        DebuginfodSettings { servers: vec![url.clone()], timeout: Duration::from_secs(20), ..fixture.settings(&[]) };
    let error = Debuginfod::new(settings).find(&fixture.id, &DebuginfodFile::Debuginfo).expect_err("not trusted");
    assert!(error.to_string().contains("cannot be reached") && error.to_string().contains("certificate"), "{error}");
    assert_eq!(fixture.stored(), Vec::<PathBuf>::new());
    run(Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "only_trusted_servers_over_https"])
        .env(TRUSTING, format!("{url} {}", fixture.id_text()))
        .env("SSL_CERT_FILE", fixture.folder.path("certificate.pem"))
        .env_remove("SSL_CERT_DIR"));
}
