//! Where the kernel keeps what it knows of this process's control group, and how its files read. Nothing here allocates, and nothing is
//! taken that is longer than expected.

use core::ffi::CStr;

/// Longest path of a group's folder; a longer one is not looked at.
const LONGEST_FOLDER: usize = 1024;
/// With a file's name behind it.
const LONGEST_PATH: usize = LONGEST_FOLDER + 64;
/// Groups around a group that are looked at, itself among them.
const MOST_LEVELS: usize = 16;

/// The two kinds of hierarchies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    /// One for each controller; ours is that of memory.
    V1,
    /// One for all.
    V2,
}

/// The path in a hierarchy that `/proc/self/cgroup` gives for this process.
pub(super) fn group_in(text: &[u8], version: Version) -> Option<&[u8]> {
    text.split(|&c| c == b'\n').find_map(|line| {
        let mut parts = line.splitn(3, |&c| c == b':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let ours = match version {
            Version::V1 => controllers.split(|&c| c == b',').any(|controller| controller == b"memory"),
            Version::V2 => number == b"0" && controllers.is_empty(),
        };
        (ours && path.starts_with(b"/")).then_some(path)
    })
}

/// If a line of `/proc/self/mountinfo` mounts such a hierarchy: the group that is mounted, and where.
pub(super) fn mount_in(line: &[u8], version: Version) -> Option<(&[u8], &[u8])> {
    let mut fields = line.split(|&c| c == b' ');
    let (root, place) = (fields.nth(3)?, fields.next()?);
    fields.find(|&field| field == b"-")?;
    let (kind, options) = (fields.next()?, fields.nth(1)?);
    let ours = match version {
        Version::V1 => kind == b"cgroup" && options.split(|&c| c == b',').any(|option| option == b"memory"),
        Version::V2 => kind == b"cgroup2",
    };
    // A backslash begins a blank and the like in a path.
    (ours && place.starts_with(b"/") && !place.contains(&b'\\')).then_some((root, place))
}

/// A group's folder, and so the folders of the groups around it as far as they are mounted.
pub(super) struct Folder {
    path: [u8; LONGEST_FOLDER],
    length: usize,
    /// Length of the folder of the outermost group.
    outermost: usize,
}

impl Folder {
    pub(super) const NONE: Folder = Folder { path: [0; LONGEST_FOLDER], length: 0, outermost: 0 };

    /// The folder of a group in a hierarchy of which the group `root` is mounted at `place`.
    pub(super) fn new(root: &[u8], place: &[u8], group: &[u8]) -> Option<Folder> {
        let root = root.strip_suffix(b"/").unwrap_or(root);
        let place = place.strip_suffix(b"/").unwrap_or(place);
        // A group that is not below the mounted one (`/..`, or a container that sees its own folder alone): what is mounted is the
        // nearest that can be seen.
        let below = match group.strip_prefix(root) {
            Some(below) if below.starts_with(b"/") && !below.split(|&c| c == b'/').any(|name| name == b"..") => below,
            _ => b"",
        };
        let below = below.strip_suffix(b"/").unwrap_or(below);
        let mut folder = Folder { length: place.len() + below.len(), outermost: place.len(), ..Folder::NONE };
        folder.path.get_mut(..place.len())?.copy_from_slice(place);
        folder.path.get_mut(place.len()..folder.length)?.copy_from_slice(below);
        Some(folder)
    }

    /// The folders from the group's own to the outermost.
    pub(super) fn levels(&self) -> impl Iterator<Item = &[u8]> {
        let own = (self.length > 0).then(|| &self.path[..self.length]);
        core::iter::successors(own, |folder| {
            let shorter = folder.iter().rposition(|&c| c == b'/')?;
            (shorter >= self.outermost && shorter > 0).then(|| &folder[..shorter])
        })
        .take(MOST_LEVELS)
    }
}

/// Room for the path of a file.
pub(super) struct Path([u8; LONGEST_PATH]);

impl Path {
    pub(super) const fn new() -> Path {
        Path([0; LONGEST_PATH])
    }

    /// The path of a file in a folder.
    pub(super) fn of(&mut self, folder: &[u8], name: &[u8]) -> Option<&CStr> {
        let length = folder.len() + 1 + name.len();
        let path = self.0.get_mut(..length + 1)?;
        path[..folder.len()].copy_from_slice(folder);
        path[folder.len()] = b'/';
        path[folder.len() + 1..length].copy_from_slice(name);
        path[length] = 0;
        CStr::from_bytes_until_nul(path).ok()
    }
}

/// The number that a file consists of. `max`, and what nobody has bytes for, is the largest.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    if text == b"max" { Some(u64::MAX) } else { digits(text) }
}

/// The number behind a name at the start of a line (`memory.stat`).
pub(super) fn value_of(text: &[u8], name: &[u8]) -> Option<u64> {
    let mut lines = text.split(|&c| c == b'\n');
    digits(lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(b" "))?.trim_ascii())
}

/// Hundredths of a per cent of the last ten seconds in which some task waited for memory (`memory.pressure`).
pub(super) fn some_waited(text: &[u8]) -> Option<u64> {
    let line = text.split(|&c| c == b'\n').find_map(|line| line.strip_prefix(b"some "))?;
    let share = line.split(|&c| c == b' ').find_map(|field| field.strip_prefix(b"avg10="))?;
    let mut parts = share.splitn(2, |&c| c == b'.');
    let (whole, hundredths) = (digits(parts.next()?)?, parts.next()?);
    if hundredths.len() != 2 {
        return None;
    }
    whole.checked_mul(100)?.checked_add(digits(hundredths)?)
}

fn digits(text: &[u8]) -> Option<u64> {
    if !text.first()?.is_ascii_digit() {
        return None; // a sign
    }
    core::str::from_utf8(text).ok()?.parse().ok()
}

/// Give each line of a text that comes in pieces to `see`, until it has found what it looks for; lines without room in `buffer` are left
/// out.
pub(super) fn find_line<T>(
    buffer: &mut [u8],
    mut read: impl FnMut(&mut [u8]) -> Option<usize>,
    mut see: impl FnMut(&[u8]) -> Option<T>,
) -> Option<T> {
    let (mut held, mut too_long) = (0, false);
    loop {
        let got = read(&mut buffer[held..]).unwrap_or(0);
        held += got;
        let mut at = 0;
        while let Some(length) = buffer[at..held].iter().position(|&c| c == b'\n') {
            let line = &buffer[at..at + length];
            if !core::mem::take(&mut too_long)
                && let Some(found) = see(line)
            {
                return Some(found);
            }
            at += length + 1;
        }
        if got == 0 {
            return None;
        }
        buffer.copy_within(at..held, 0);
        held -= at;
        if held == buffer.len() {
            (held, too_long) = (0, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec::Vec;

    const HYBRID: &[u8] = b"9:name=systemd:/\n8:pids:/\n4:memory:/api/a92\n2:cpuacct,cpu:/\n0::/app.slice\n";

    #[test]
    fn groups() {
        assert_eq!(group_in(b"0::/user.slice/a:b.scope\n", Version::V2), Some(b"/user.slice/a:b.scope".as_slice()));
        assert_eq!(group_in(b"0::/\n", Version::V1), None);
        assert_eq!(group_in(HYBRID, Version::V2), Some(b"/app.slice".as_slice()));
        assert_eq!(group_in(HYBRID, Version::V1), Some(b"/api/a92".as_slice()));
        assert_eq!(group_in(b"7:cpu,memory:/x", Version::V1), Some(b"/x".as_slice()));
        for garbage in [b"".as_slice(), b"\n\n", b"0:", b"0::", b"0::x\n", b"memory:/", b"4:memoryx:/a", b"\xff:\xff"] {
            assert_eq!((group_in(garbage, Version::V1), group_in(garbage, Version::V2)), (None, None));
        }
    }

    #[test]
    fn mounts() {
        let v1 = b"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory";
        let v2 = b"41 31 0:38 /docker/1 /sys/fs/cgroup rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate";
        let other = b"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu";
        assert_eq!(mount_in(v1, Version::V1), Some((b"/".as_slice(), b"/sys/fs/cgroup/memory".as_slice())));
        assert_eq!(mount_in(v2, Version::V2), Some((b"/docker/1".as_slice(), b"/sys/fs/cgroup".as_slice())));
        assert_eq!((mount_in(v1, Version::V2), mount_in(v2, Version::V1)), (None, None));
        assert_eq!((mount_in(other, Version::V1), mount_in(other, Version::V2)), (None, None));
        for garbage in [b"".as_slice(), b" ", b"- - - -", b"1 2 3 / /a - cgroup2", b"1 2 3 / /a\\040b - cgroup2 x y"] {
            assert_eq!(mount_in(garbage, Version::V2), None);
        }
    }

    fn levels(root: &str, place: &str, group: &str) -> Vec<String> {
        let folder = Folder::new(root.as_bytes(), place.as_bytes(), group.as_bytes()).unwrap();
        folder.levels().map(|level| String::from_utf8(level.to_vec()).unwrap()).collect()
    }

    #[test]
    fn folders_and_those_around_them() {
        assert_eq!(levels("/", "/cg", "/a/b"), ["/cg/a/b", "/cg/a", "/cg"]);
        assert_eq!(levels("/", "/cg", "/"), ["/cg"]);
        // A container: its own folder is what is mounted, with the names of the host or with its own.
        assert_eq!(levels("/docker/1", "/cg", "/docker/1/x"), ["/cg/x", "/cg"]);
        assert_eq!(levels("/docker/1", "/cg", "/docker/1"), ["/cg"]);
        assert_eq!(levels("/docker/1", "/cg", "/docker/12"), ["/cg"]);
        assert_eq!(levels("/", "/cg", "/../../other"), ["/cg"]);
        let deep = "/x".repeat(40);
        assert_eq!(levels("/", "/cg", &deep).len(), MOST_LEVELS);
        assert!(Folder::NONE.levels().next().is_none());
        assert!(Folder::new(b"/", b"/cg", "/long".repeat(300).as_bytes()).is_none());
        assert!(Folder::new(b"/", "/long".repeat(300).as_bytes(), b"/").is_none());
    }

    #[test]
    fn paths() {
        assert_eq!(Path::new().of(b"/cg/a", b"memory.max"), Some(c"/cg/a/memory.max"));
        assert_eq!(Path::new().of(&[b'x'; LONGEST_PATH], b"memory.max"), None);
    }

    #[test]
    fn numbers() {
        assert_eq!(number(b"4096\n"), Some(4096));
        assert_eq!(number(b"max\n"), Some(u64::MAX));
        assert_eq!(number(b"9223372036854771712\n"), Some(9_223_372_036_854_771_712));
        for garbage in [b"".as_slice(), b"\n", b"-1\n", b"+1", b"1x", b"99999999999999999999999", b"maximum", b"\xff"] {
            assert_eq!(number(garbage), None);
        }
        let stat = b"anon 10\nfile 20\ninactive_file 30\ntotal_inactive_file 40\nlast 5";
        assert_eq!(value_of(stat, b"inactive_file"), Some(30));
        assert_eq!(value_of(stat, b"total_inactive_file"), Some(40));
        assert_eq!(value_of(stat, b"last"), Some(5));
        assert_eq!((value_of(stat, b"fil"), value_of(b"", b"file"), value_of(b"file x", b"file")), (None, None, None));
    }

    #[test]
    fn waiting() {
        let text =
            b"some avg10=12.34 avg60=0.00 avg300=0.00 total=0\nfull avg10=99.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(some_waited(text), Some(1234));
        assert_eq!(some_waited(b"some avg10=0.00 avg60=5.00"), Some(0));
        assert_eq!(some_waited(b"some avg60=5.00 avg10=100.00\n"), Some(10_000));
        for garbage in
            [b"".as_slice(), b"full avg10=1.00", b"some avg10=", b"some avg10=1", b"some avg10=1.2", b"some avg10=x.00"]
        {
            assert_eq!(some_waited(garbage), None);
        }
    }

    #[test]
    fn lines_in_pieces() {
        let text = b"one\ntwo is far too long for it\nthree\n\nfour";
        for piece in 1..=16 {
            let (mut at, mut seen) = (0, Vec::new());
            let read = |room: &mut [u8]| {
                let n = piece.min(room.len()).min(text.len() - at);
                room[..n].copy_from_slice(&text[at..at + n]);
                at += n;
                Some(n)
            };
            let found = find_line(&mut [0; 16], read, |line| {
                seen.push(line.to_vec());
                None::<()>
            });
            assert_eq!(found, None);
            assert_eq!(seen, [b"one".as_slice(), b"three", b""], "pieces of {piece}");
        }
        let mut once = Some(b"a\nb\n");
        let read = |room: &mut [u8]| once.take().map(|text| room[..4].copy_from_slice(text)).map(|()| 4);
        assert_eq!(find_line(&mut [0; 8], read, |line| (line == b"b").then_some(7)), Some(7));
        assert_eq!(find_line(&mut [0; 8], |_| None, |_| Some(())), None);
    }
}
