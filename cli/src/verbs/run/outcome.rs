//! Why nothing was captured, in words that say what to do.

use crate::sys::child::End;
use crate::sys::signals;

use super::watch::Seen;

/// What is known of a run that left no profile.
#[derive(Clone, Debug)]
pub(crate) struct Facts<'a> {
    /// How the target ended.
    pub(crate) end: End,
    /// Whether the library was in it.
    pub(crate) seen: &'a Seen,
}

/// The cause, as a sentence without the name of the program in front.
pub(crate) fn no_profile(facts: &Facts<'_>) -> String {
    match (facts.end, facts.seen) {
        (_, Seen::Missing(executable)) => format!("the allocator was not active: {}", not_loaded(executable)),
        (End::Signalled(signal), _) => format!(
            "{} ended it before it could write its profile, which happens at exit and, after a second, now and then \
             when it allocates (see --snapshot). Let it end by itself (a handler that calls exit will do)",
            signals::name(signal)
        ),
        (End::Exited(_), Seen::Active) => "the allocator was active, but the program ended without a word to it (by a \
             system call of its own, by _exit in a signal handler, or by exec of a program without the allocator), or \
             could not write to the recording (rights or root given up), so there is no profile"
            .to_owned(),
        (End::Exited(_), Seen::Unknown) => {
            "it ended without a profile: either the allocator was not loaded into it (a \
             program that starts a static, set-user-id or sandboxed one does not pass it on; --follow none leaves out \
             all but the first), or it ended without a word to it (by a system call of its own)"
                .to_owned()
        }
    }
}

/// Why a preload can be missing from a program that passed all checks before the start.
pub(crate) fn not_loaded(executable: &std::path::Path) -> String {
    format!(
        "its library is not mapped in {}. Either this is a static or set-user-id program that the command started, or \
         a security policy (AppArmor, SELinux), another container or a cleared environment kept the library out",
        executable.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_cause() {
        let cause = |end, seen: Seen| no_profile(&Facts { end, seen: &seen });
        assert!(cause(End::Signalled(libc::SIGKILL), Seen::Active).starts_with("SIGKILL ended it"));
        assert!(cause(End::Exited(0), Seen::Active).contains("system call of its own"));
        assert!(cause(End::Exited(0), Seen::Missing("/bin/x".into())).contains("not mapped in /bin/x"));
        assert!(cause(End::Exited(0), Seen::Unknown).contains("either"));
    }
}
