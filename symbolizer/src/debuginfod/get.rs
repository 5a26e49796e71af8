//! One file from one server, by HTTP.
//!
//! Redirects are followed here, by rules of our own: few, to plain addresses, never from `https` to `http`.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ureq::http::{Response, header::LOCATION};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::server::{is_address, without_user};
use super::settings::{DebuginfodSettings, Download};

/// A server that sends less than this in the time it is given is too slow: the measure of elfutils.
const PIECE: u64 = 100 << 10;

/// Most redirects that are followed; a server in front of a store needs one.
const MAX_REDIRECTS: usize = 5;

/// How often a server is asked when the connection breaks.
const TRIES: usize = 2;

/// Most bytes of headers in an answer.
const MAX_HEADERS: usize = 32 << 10;

/// Time between two calls that tell of progress.
const PROGRESS: Duration = Duration::from_millis(100);

/// Why a server gave no file.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("it does not have the file")]
    NotThere,
    #[error("it answers with status {0}")]
    Status(u16),
    #[error("{0}")]
    TimedOut(String),
    #[error("it sends too slowly")]
    TooSlow,
    #[error("the file has {size} bytes, more than the limit of {limit}")]
    TooLarge { size: u64, limit: u64 },
    #[error("{0}")]
    Broken(String),
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    #[error("what it sends is refused: {0}")]
    Refused(String),
    #[error("{0}")]
    CannotStore(String),
    #[error("{0}")]
    Skipped(&'static str),
    #[error("not asked: fetching files took {} s already", .0.as_secs())]
    OutOfTime(Duration),
}

/// Connections to servers.
#[derive(Debug, Default)]
pub(super) struct Fetcher {
    plain: OnceLock<Agent>,
    /// With the certificates that this machine trusts, or why there are none.
    secure: OnceLock<Result<Agent, String>>,
}

/// What does not change while one file is fetched.
struct Job<'a> {
    url: &'a str,
    shown: String,
    deadline: Instant,
    limit: Duration,
    settings: &'a DebuginfodSettings,
}

impl Fetcher {
    /// Writes the file at `url` to `target` in at most `limit`.
    pub(super) fn get(
        &self,
        url: &str,
        target: &mut File,
        limit: Duration,
        settings: &DebuginfodSettings,
    ) -> Result<(), Failure> {
        let job = Job { url, shown: without_user(url), deadline: Instant::now() + limit, limit, settings };
        let mut result = Err(Failure::NotThere);
        for _ in 0..TRIES {
            job.tell(0, None, false);
            result = self.try_get(&job, target);
            if !matches!(result, Err(Failure::Broken(_))) {
                break;
            }
        }
        let received = *result.as_ref().unwrap_or(&0);
        job.tell(received, result.is_ok().then_some(received), true);
        result.map(|_| ())
    }

    fn try_get(&self, job: &Job<'_>, target: &mut File) -> Result<u64, Failure> {
        target.set_len(0).and_then(|()| target.rewind()).map_err(|error| Failure::CannotStore(error.to_string()))?;
        let mut url = job.url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.ask(job, &url)?;
            match response.status().as_u16() {
                200 => return job.receive(response, target),
                404 => return Err(Failure::NotThere),
                301 | 302 | 303 | 307 | 308 => url = next_address(&url, &response)?,
                status => return Err(Failure::Status(status)),
            }
        }
        Err(Failure::Refused("it redirects too often".to_owned()))
    }

    fn ask(&self, job: &Job<'_>, url: &str) -> Result<Response<Body>, Failure> {
        let agent = if url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:")) {
            let secure = self.secure.get_or_init(|| secure_agent(job.settings));
            secure.as_ref().map_err(|reason| Failure::Unreachable(reason.clone()))?
        } else {
            self.plain.get_or_init(|| agent(job.settings, TlsConfig::default()))
        };
        let left = job.left()?;
        let request = agent.get(url).config().timeout_global(Some(left)).build();
        request.call().map_err(|error| job.failure(error))
    }
}

impl Job<'_> {
    fn left(&self) -> Result<Duration, Failure> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(self.out_of_time()) } else { Ok(left) }
    }

    fn out_of_time(&self) -> Failure {
        Failure::TimedOut(format!("the file took more than {} s", self.limit.as_secs_f32()))
    }

    fn tell(&self, received: u64, total: Option<u64>, is_done: bool) {
        if let Some(progress) = &self.settings.progress {
            progress(&Download { url: &self.shown, received, total, is_done });
        }
    }

    /// Writes the body of an answer to `target`, and returns its size.
    fn receive(&self, response: Response<Body>, target: &mut File) -> Result<u64, Failure> {
        let told = response.headers().get("x-debuginfod-size").and_then(|size| size.to_str().ok()?.parse().ok());
        let total = response.body().content_length().or(told);
        let limit = self.settings.max_size;
        if let Some(size) = total.filter(|&size| size > limit) {
            return Err(Failure::TooLarge { size, limit });
        }
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; 64 << 10];
        let (mut received, mut at_mark) = (0, 0);
        let (mut mark, mut told_at) = (Instant::now(), Instant::now());
        loop {
            let length = body.read(&mut buffer).map_err(|error| self.failure(error.into()))?;
            if length == 0 {
                break;
            }
            received += length as u64;
            if received > limit {
                return Err(Failure::TooLarge { size: received, limit });
            }
            let write = target.write_all(&buffer[..length]);
            write.map_err(|error| Failure::CannotStore(format!("cannot write to the cache: {error}")))?;
            if mark.elapsed() >= self.settings.timeout {
                if received - at_mark < PIECE {
                    return Err(Failure::TooSlow);
                }
                (mark, at_mark) = (Instant::now(), received);
            }
            if told_at.elapsed() >= PROGRESS {
                told_at = Instant::now();
                self.tell(received, total, false);
            }
        }
        match total {
            Some(total) if total != received => {
                Err(Failure::Broken(format!("the connection ended after {received} of {total} bytes")))
            }
            _ => Ok(received),
        }
    }

    fn failure(&self, error: ureq::Error) -> Failure {
        use ureq::Timeout;
        let text = escaped(&error.to_string());
        match error {
            ureq::Error::Timeout(Timeout::Global) => self.out_of_time(),
            ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
                Failure::Unreachable(format!("no connection within {} s", self.settings.timeout.as_secs_f32()))
            }
            ureq::Error::Timeout(_) => {
                Failure::TimedOut(format!("it sends nothing for {} s", self.settings.timeout.as_secs_f32()))
            }
            ureq::Error::HostNotFound
            | ureq::Error::ConnectionFailed
            | ureq::Error::ConnectProxyFailed(_)
            | ureq::Error::InvalidProxyUrl
            | ureq::Error::Tls(_)
            | ureq::Error::Rustls(_) => Failure::Unreachable(text),
            ureq::Error::Io(error) if is_no_connection(&error) => Failure::Unreachable(text),
            _ => Failure::Broken(text),
        }
    }
}

/// Whether nobody is there, or nobody who can be trusted; otherwise an error is one of a connection that there was.
fn is_no_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, InvalidData, TimedOut, UnexpectedEof};
    let broken = [BrokenPipe, ConnectionAborted, ConnectionReset, InvalidData, TimedOut, UnexpectedEof];
    !broken.contains(&error.kind()) || error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
}

/// Where an answer redirects to.
fn next_address(url: &str, response: &Response<Body>) -> Result<String, Failure> {
    let refused = |what: &str| Failure::Refused(format!("it redirects {what}"));
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    let location = location.ok_or_else(|| refused("to nowhere"))?;
    let next = if location.starts_with('/') && !location.starts_with("//") {
        let host = url.find("://").map_or(0, |at| at + 3);
        let end = url[host..].find('/').map_or(url.len(), |at| host + at);
        format!("{}{location}", &url[..end])
    } else {
        location.to_owned()
    };
    if !is_address(&next) {
        return Err(refused("to what is not an http or https address"));
    }
    let is_secure = |url: &str| url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
    if is_secure(url) && !is_secure(&next) {
        return Err(refused("from https to http"));
    }
    Ok(next)
}

fn agent(settings: &DebuginfodSettings, tls: TlsConfig) -> Agent {
    let timeout = Some(settings.timeout);
    Agent::config_builder()
        .user_agent(concat!("mpp/", env!("CARGO_PKG_VERSION")))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_response_header_size(MAX_HEADERS)
        .timeout_connect(timeout)
        .timeout_recv_response(timeout)
        .timeout_per_read(timeout)
        .timeout_per_write(timeout)
        .tls_config(tls)
        .build()
        .new_agent()
}

/// An agent that believes the certificate authorities that this machine does (`SSL_CERT_FILE`, `SSL_CERT_DIR`, else
/// the distribution's).
fn secure_agent(settings: &DebuginfodSettings) -> Result<Agent, String> {
    let found = rustls_native_certs::load_native_certs();
    let roots: Vec<Certificate<'static>> =
        found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    if roots.is_empty() {
        let why = found.errors.first().map_or_else(String::new, |error| format!(": {}", escaped(&error.to_string())));
        return Err(format!("this machine trusts no certificates{why}; install ca-certificates or set SSL_CERT_FILE"));
    }
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    Ok(agent(settings, tls))
}

/// A message that may quote what a server sent: one short line.
fn escaped(text: &str) -> String {
    text.chars().take(200).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn messages_are_short_and_harmless() {
        assert_eq!(escaped("plain"), "plain");
        assert_eq!(escaped("\u{1b}[2J\n"), "\\u{1b}[2J\\n");
        assert_eq!(escaped(&"x".repeat(10_000)).len(), 200);
    }
}
