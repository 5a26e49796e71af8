//! Answers that are kept: in a form that travels to another machine, and in a cache on disk.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{FUNCTIONS, Folder, build_id, instructions, run, symbolize_with};
use mpp_symbolizer::{Options, Quality, StoredSymbols, SymbolSource, Symbolized, Symbolizer};

/// A program, its addresses, and what is known of them without anything stored.
struct Subject {
    folder: Folder,
    program: PathBuf,
    id: Option<Vec<u8>>,
    addresses: Vec<u64>,
    truth: Vec<Symbolized>,
}

impl Subject {
    fn new(id: &str) -> Self {
        let folder = Folder::new();
        let program = folder.program("app", &["-pie", "-fPIE", id]);
        let id = (id != "-Wl,--build-id=none").then(|| build_id(&program));
        let mut addresses = instructions(&program, &FUNCTIONS);
        addresses.push(instructions(&program, &["_start"])[0]);
        let truth = symbolize_with(&mut Symbolizer::new(Options::default()), &program, &addresses, id.as_deref());
        assert!(truth.iter().any(|answer| answer.frames.len() > 2), "some are inlined two deep");
        assert!(truth.iter().any(|answer| answer.quality == Quality::Name), "_start has no lines");
        Subject { folder, program, id, addresses, truth }
    }

    /// The answers for all addresses with the mapping that the program had at first, and where they come from.
    fn ask(&self, options: &Options) -> (Vec<Symbolized>, SymbolSource) {
        let mut symbolizer = Symbolizer::new(options.clone());
        let answers = symbolizer.symbolize(&self.modules(), &self.moved());
        (answers, symbolizer.report()[0].source.clone())
    }

    /// Mapped as the tests map everything. The program must be there when this is first called.
    fn modules(&self) -> Vec<mpp_symbolizer::Module> {
        let kept = self.folder.path("kept");
        if !kept.exists() {
            std::fs::copy(&self.program, &kept).expect("a copy");
        }
        let mut modules = common::mapped(&kept, BIAS);
        for module in &mut modules {
            module.path.clone_from(&self.program);
            module.build_id.clone_from(&self.id);
        }
        modules
    }

    fn moved(&self) -> Vec<u64> {
        self.addresses.iter().map(|address| address + BIAS).collect()
    }

    fn store(&self) -> Vec<StoredSymbols> {
        Symbolizer::new(Options::default()).store(&self.modules(), &self.moved())
    }

    fn cached(&self) -> Options {
        Options { cache_dir: Some(self.folder.path("cache/mpp")), ..Options::default() }
    }

    fn cache_file(&self) -> PathBuf {
        let hex: String = self.id.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
        self.folder.path(&format!("cache/mpp/{hex}.sym"))
    }
}

const BIAS: u64 = 0x7f12_3456_7000;

fn is_stored(source: &SymbolSource) -> bool {
    matches!(source, SymbolSource::Stored { .. })
}

/// There and back again as bytes.
fn travelled(stored: &[StoredSymbols]) -> Vec<StoredSymbols> {
    let travel = |stored: &StoredSymbols| {
        let bytes = stored.to_bytes().expect("it is small");
        StoredSymbols::from_bytes(Path::new("travelled"), &bytes).expect("it was just written")
    };
    stored.iter().map(travel).collect()
}

#[test]
fn stored_answers_are_the_same_without_the_file() {
    for id in ["-Wl,--build-id=sha1", "-Wl,--build-id=none"] {
        let subject = Subject::new(id);
        let stored = travelled(&subject.store());
        assert_eq!(stored.len(), 1);
        assert_eq!(stored[0].source(), &SymbolSource::Dwarf { file: subject.program.clone() });
        std::fs::remove_file(&subject.program).expect("it is ours");
        for only_stored in [true, false] {
            let (answers, source) = subject.ask(&Options { stored: stored.clone(), only_stored, ..Options::default() });
            assert_eq!(answers, subject.truth, "{id}");
            assert_eq!(*source.origin(), SymbolSource::Dwarf { file: subject.program.clone() });
            assert!(is_stored(&source));
        }
        // The control: without them, nothing is known.
        let (answers, _) = subject.ask(&Options::default());
        assert!(answers.iter().all(|answer| answer.quality == Quality::Nothing));
    }
}

#[test]
fn stored_answers_about_another_file_are_not_used() {
    let subject = Subject::new("-Wl,--build-id=sha1");
    let stored = subject.store();
    let other = Subject { id: Some(vec![7; 20]), ..Subject::new("-Wl,--build-id=sha1") };
    let only = Options { stored, only_stored: true, ..Options::default() };
    let (answers, source) = other.ask(&only);
    assert!(answers.iter().all(|answer| answer.quality == Quality::Nothing), "the build id is another");
    assert_eq!(source, SymbolSource::None);
    // Nor is a path enough where one of the two has a build id.
    let nameless = Subject { id: None, ..subject };
    assert!(nameless.ask(&only).0.iter().all(|answer| answer.quality == Quality::Nothing));
    let mut symbolizer = Symbolizer::new(only);
    symbolizer.symbolize(&nameless.modules(), &nameless.moved());
    let problem = symbolizer.report()[0].problems[0].to_string();
    assert!(problem.contains("not among the stored answers"), "{problem}");
}

#[test]
fn a_file_with_lines_beats_a_stored_name() {
    let subject = Subject::new("-Wl,--build-id=sha1");
    let whole = subject.folder.path("whole");
    std::fs::copy(&subject.program, &whole).expect("a copy");
    run(Command::new("strip").args(["--strip-debug"]).arg(&subject.program));
    let stored = subject.store();
    let options = Options { stored, ..Options::default() };
    let (poor, source) = subject.ask(&options);
    assert!(poor.iter().all(|answer| answer.quality == Quality::Name) && !is_stored(&source));
    // Without files it is all there is, and nothing is missing.
    let mut symbolizer = Symbolizer::new(Options { only_stored: true, ..options.clone() });
    assert_eq!(symbolizer.symbolize(&subject.modules(), &subject.moved()), poor);
    assert!(symbolizer.report()[0].problems.is_empty(), "{:?}", symbolizer.report()[0].problems);
    std::fs::rename(&whole, &subject.program).expect("it is ours");
    assert_eq!(subject.ask(&options).0, subject.truth);
}

#[test]
fn the_cache_answers_like_the_file_and_outlives_it() {
    let subject = Subject::new("-Wl,--build-id=sha1");
    let options = subject.cached();
    let (answers, source) = subject.ask(&options);
    assert_eq!(answers, subject.truth);
    assert!(!is_stored(&source), "{source:?}");
    let (answers, source) = subject.ask(&options);
    assert_eq!(answers, subject.truth);
    assert!(is_stored(&source), "{source:?}");

    // Damaged, it is as good as none, and is replaced.
    let bytes = std::fs::read(subject.cache_file()).expect("it is there");
    for damaged in [&bytes[..bytes.len() / 2], b"", b"something else"] {
        std::fs::write(subject.cache_file(), damaged).expect("it is ours");
        let (answers, source) = subject.ask(&options);
        assert_eq!(answers, subject.truth);
        assert!(!is_stored(&source));
        assert_eq!(std::fs::read(subject.cache_file()).expect("it is there"), bytes);
    }

    std::fs::remove_file(&subject.program).expect("it is ours");
    assert_eq!(subject.ask(&options).0, subject.truth, "the build id says that it is the same");
    std::fs::write(&subject.program, "not an ELF file").expect("it is ours");
    assert_eq!(subject.ask(&options).0, subject.truth, "another file has taken its place");
    // Without a build id in the profile, nothing says so.
    let nameless = Subject { id: None, ..subject };
    assert!(nameless.ask(&options).0.iter().all(|answer| answer.quality == Quality::Nothing));
}

#[test]
fn the_cache_grows_by_what_is_new() {
    let subject = Subject::new("-Wl,--build-id=sha1");
    let (first, rest) = subject.addresses.split_at(10);
    let half = Subject { addresses: first.to_vec(), folder: Folder::new(), ..subject.clone_without_folder() };
    let options = subject.cached();
    assert_eq!(half.ask(&options).0, subject.truth[..10]);
    let (answers, source) = subject.ask(&options);
    assert_eq!(answers, subject.truth);
    assert!(!is_stored(&source), "{} addresses were new", rest.len());
    let bytes = std::fs::read(subject.cache_file()).expect("it is there");
    let all = StoredSymbols::from_bytes(Path::new("cache"), &bytes).expect("it is whole");
    assert_eq!(all.len(), subject.truth.len());
    assert!(is_stored(&half.ask(&options).1));
}

/// A build id that somebody has chosen says nothing about the content.
#[test]
fn a_changed_file_with_the_same_build_id_is_asked_again() {
    let subject = Subject::new("-Wl,--build-id=0x0123456789abcdef");
    let options = subject.cached();
    assert_eq!(subject.ask(&options).0, subject.truth);
    run(Command::new("strip").arg(&subject.program));
    let (answers, source) = subject.ask(&options);
    assert_ne!(answers, subject.truth);
    assert!(!is_stored(&source), "{source:?}");
}

#[test]
fn names_without_lines_are_not_kept_so_debug_files_win() {
    let subject = Subject::new("-Wl,--build-id=sha1");
    let debug = subject.folder.path("app.debug");
    run(Command::new("objcopy").arg("--only-keep-debug").args([&subject.program, &debug]));
    run(Command::new("strip").arg("--strip-debug").arg(&subject.program));
    let options = subject.cached();
    let (poor, source) = subject.ask(&options);
    assert!(poor.iter().all(|answer| answer.quality == Quality::Name));
    assert!(matches!(source, SymbolSource::Symtab { .. }));
    assert!(!subject.cache_file().exists());

    let hex: String = subject.id.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
    let place = subject.folder.path(&format!("debug/.build-id/{}/{}.debug", &hex[..2], &hex[2..]));
    std::fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
    std::fs::rename(&debug, &place).expect("it is ours");
    let with_debug = Options { debug_dirs: vec![subject.folder.path("debug")], ..options.clone() };
    assert_eq!(subject.ask(&with_debug).0, subject.truth);
    // From now on the names are known, whether the debug file can be found or not.
    assert_eq!(subject.ask(&options).0, subject.truth);
}

impl Subject {
    fn clone_without_folder(&self) -> Subject {
        Subject {
            folder: Folder::new(),
            program: self.program.clone(),
            id: self.id.clone(),
            addresses: self.addresses.clone(),
            truth: self.truth.clone(),
        }
    }
}
