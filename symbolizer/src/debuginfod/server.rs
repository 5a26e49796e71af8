//! The servers, and which of them are not worth asking again.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ureq::http::Uri;

use super::get::Failure;

/// Most servers that are asked; people list one to three.
const MAX_SERVERS: usize = 32;

/// A server that has as many strikes is not asked any more. Each failure costs time, and a profile has a hundred files.
const STRIKES: u32 = 4;

/// One server.
#[derive(Debug)]
pub(super) struct Server {
    url: String,
    shown: String,
    /// Why it is never asked.
    unusable: Option<&'static str>,
    strikes: AtomicU32,
}

/// The servers in a list like that of `DEBUGINFOD_URLS`, without doubles.
pub(super) fn parse(words: &[String]) -> Vec<Server> {
    let mut servers: Vec<Server> = Vec::new();
    let mut must_be_signed = false;
    for word in words {
        if let Some(policy) = word.strip_prefix("ima:") {
            must_be_signed = policy == "enforcing";
        } else if servers.len() < MAX_SERVERS && servers.iter().all(|server| server.url != *word) {
            let unusable = if must_be_signed {
                Some("its files must be signed (ima:enforcing), and signatures cannot be checked here")
            } else {
                (!is_address(word)).then_some("not an http or https address")
            };
            servers.push(Server { url: word.clone(), shown: without_user(word), unusable, strikes: AtomicU32::new(0) });
        }
    }
    servers
}

/// Whether this is the address of something on a server that can be asked.
pub(super) fn is_address(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let Some(authority) = uri.authority() else { return false };
    let after_user = authority.as_str().rsplit('@').next().unwrap_or_default();
    let port = after_user.strip_prefix(authority.host()).unwrap_or_default();
    let port_is_sound = port.is_empty() || authority.port_u16().is_some();
    matches!(uri.scheme_str(), Some("http" | "https")) && !authority.host().is_empty() && port_is_sound
}

/// An address as it may be shown: without user name and password, control characters escaped.
pub(super) fn without_user(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find('/').map_or(url.len(), |at| start + at);
    let host = url[start..end].rfind('@').map_or(start, |at| start + at + 1);
    format!("{}{}", &url[..start], &url[host..]).escape_debug().to_string()
}

impl Server {
    /// Its address, as given.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Its address for messages.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// Why it should not be asked, if so.
    pub(super) fn is_down(&self) -> Option<&'static str> {
        let gave_up = (self.strikes.load(Relaxed) >= STRIKES).then_some("not asked again after it failed");
        self.unusable.or(gave_up)
    }

    /// Remembers how an answer went.
    pub(super) fn note(&self, failure: Option<&Failure>) {
        let strikes = match failure {
            None | Some(Failure::NotThere) => {
                self.strikes.store(0, Relaxed);
                return;
            }
            Some(Failure::Unreachable(_)) => STRIKES,
            Some(Failure::TimedOut(_) | Failure::TooSlow) => STRIKES / 2,
            Some(Failure::Broken(_) | Failure::Status(_) | Failure::Refused(_)) => 1,
            Some(Failure::TooLarge { .. } | Failure::CannotStore(_) | Failure::Skipped(_) | Failure::OutOfTime(_)) => 0,
        };
        self.strikes.fetch_add(strikes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, parse, without_user};

    #[test]
    fn lists_with_policies_doubles_and_nonsense() {
        let words = "http://a http://a ima:ignore https://u:p@b:8/x http://[::1]:80 file:///etc ftp://c http:// http://h:99999 http://h:x \
                     nonsense ima:enforcing http://d \
                     ima:permissive http://e";
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let servers = parse(&words);
        let usable: Vec<&str> = servers.iter().filter(|s| s.is_down().is_none()).map(|s| s.url()).collect();
        assert_eq!(usable, ["http://a", "https://u:p@b:8/x", "http://[::1]:80", "http://e"]);
        assert_eq!(servers.len(), 11);
        let many: Vec<String> = (0..1000).map(|i| format!("http://h{i}")).collect();
        assert_eq!(parse(&many).len(), 32);
    }

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(without_user("http://user:p@ss@host:8/x@y"), "http://host:8/x@y");
        assert_eq!(without_user("http://host/x@y"), "http://host/x@y");
        assert_eq!(without_user("user@host\u{1b}"), "host\\u{1b}");
    }

    #[test]
    fn failures_add_up_until_an_answer() {
        let servers = parse(&["http://a".to_owned()]);
        let broken = Failure::Broken(String::new());
        for _ in 0..3 {
            servers[0].note(Some(&broken));
        }
        assert_eq!(servers[0].is_down(), None);
        servers[0].note(Some(&Failure::NotThere));
        servers[0].note(Some(&Failure::TooSlow));
        servers[0].note(Some(&broken));
        assert_eq!(servers[0].is_down(), None);
        servers[0].note(Some(&broken));
        assert!(servers[0].is_down().is_some());
    }
}
