//! Names that tell nothing, but are the same for the same name.
//!
//! A pseudonym is the beginning of SHA-256 of the salt, the kind of name and the name. Without a salt of the user's it is
//! made from 32 random bytes that are kept nowhere, so nobody can find out names by trying likely ones.

use std::fs::File;
use std::io::Read;

use anyhow::Context;
use sha2::{Digest, Sha256};

/// Makes pseudonyms.
pub(super) struct Pseudonyms {
    /// The state after the salt.
    salted: Sha256,
}

/// What a name is the name of. Equal names of different kinds have different pseudonyms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    Source,
    Module,
    BuildId,
    Argument,
    Folder,
    Variable,
    Thread,
}

impl Kind {
    fn prefix(self) -> &'static str {
        match self {
            Kind::Function => "fn",
            Kind::Source => "src",
            Kind::Module => "mod",
            Kind::BuildId => "id",
            Kind::Argument => "arg",
            Kind::Folder => "dir",
            Kind::Variable => "VAR",
            Kind::Thread => "thread",
        }
    }
}

impl Pseudonyms {
    /// Those of a text that the user gives.
    pub(super) fn with_salt(salt: &[u8]) -> Self {
        let mut salted = Sha256::new();
        // With its length, so that no end of the salt can be taken for a beginning of the name.
        salted.update((salt.len() as u64).to_le_bytes());
        salted.update(salt);
        Pseudonyms { salted }
    }

    /// Those that nobody can make again.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(super) fn random() -> anyhow::Result<Self> {
        let mut salt = [0; 32];
        let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut salt));
        read.context("/dev/urandom: no random numbers; give a --salt of your own")?;
        Ok(Self::with_salt(&salt))
    }

    /// `fn_0123456789abcdef`.
    pub(super) fn of(&self, kind: Kind, name: &str) -> String {
        let hash = self.hash(kind, name.as_bytes());
        let digits: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{}_{digits}", kind.prefix())
    }

    /// As many bytes as a usual build id has.
    pub(super) fn build_id(&self, id: &[u8]) -> Vec<u8> {
        self.hash(Kind::BuildId, id)[..20].to_vec()
    }

    fn hash(&self, kind: Kind, name: &[u8]) -> Vec<u8> {
        let mut hash = self.salted.clone();
        hash.update(kind.prefix());
        hash.update([0]);
        hash.update(name);
        hash.finalize().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_salt_kind_and_name_give_the_same() {
        let of = |salt: &str, kind, name| Pseudonyms::with_salt(salt.as_bytes()).of(kind, name);
        let one = of("salt", Kind::Function, "acme::run");
        assert_eq!(one, of("salt", Kind::Function, "acme::run"));
        assert!(one.starts_with("fn_") && one.len() == 19, "{one}");
        assert_ne!(one, of("salt", Kind::Function, "acme::ran"));
        assert_ne!(one, of("pepper", Kind::Function, "acme::run"));
        assert_ne!(one[3..], of("salt", Kind::Module, "acme::run")[4..]);
        let random = || Pseudonyms::random().expect("random numbers").of(Kind::Function, "acme::run");
        assert_ne!(random(), random());
    }

    /// Against `printf '\4\0\0\0\0\0\0\0saltfn\0main' | sha256sum`.
    #[test]
    fn it_is_what_it_says() {
        assert_eq!(Pseudonyms::with_salt(b"salt").of(Kind::Function, "main"), EXPECTED);
    }

    const EXPECTED: &str = "fn_77aba5fa1a24b1e6";
}
