//! Where the file of a module is looked for when it is not at its path, and what is told about that.

mod common;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::tools::run;
use common::{FUNCTIONS, Folder, build_id, instructions, mapped};
use mpp_symbolizer::{Error, Identity, Module, Options, Quality, SymbolSource, Symbolizer};

/// A program that is not where it was profiled.
struct Lost {
    folder: Folder,
    /// Its real place, known to nobody.
    program: PathBuf,
    id: Vec<u8>,
    addresses: Vec<u64>,
}

impl Lost {
    fn new(flags: &[&str]) -> Self {
        let folder = Folder::new();
        let mut all = vec!["-no-pie", "-Wl,--build-id"];
        all.extend(flags);
        let program = folder.program("hidden", &all);
        let (id, addresses) = (build_id(&program), instructions(&program, &FUNCTIONS));
        Lost { folder, program, id, addresses }
    }

    /// `.build-id/xx/yyyy` and a suffix.
    fn by_id(&self, suffix: &str) -> String {
        let id: String = self.id.iter().map(|byte| format!("{byte:02x}")).collect();
        format!(".build-id/{}/{}{suffix}", &id[..2], &id[2..])
    }

    /// Puts the program to `place` in the folder, by a symbolic link to it.
    fn link(&self, place: &str) -> PathBuf {
        let place = self.folder.path(place);
        std::fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        symlink(&self.program, &place).expect("a link");
        place
    }

    /// Whether all is known of all addresses when the program was at `path`, and a symbolizer with the report.
    fn look(&self, path: &str, build_id: Option<&[u8]>, options: Options) -> (bool, Symbolizer) {
        let mut modules = mapped(&self.program, 0);
        for module in &mut modules {
            *module = Module { path: path.into(), build_id: build_id.map(<[u8]>::to_vec), ..module.clone() };
        }
        let mut symbolizer = Symbolizer::new(options);
        let answers = symbolizer.symbolize(&modules, &self.addresses);
        let is_found = answers.iter().all(|answer| answer.quality == Quality::Lines);
        assert!(is_found || answers.iter().all(|answer| answer.frames.is_empty()), "{path}: neither all nor none");
        (is_found, symbolizer)
    }

    fn options(&self, debug_dir: &str) -> Options {
        Options { debug_dirs: vec![self.folder.path(debug_dir)], ..Options::default() }
    }
}

#[test]
fn programs_in_folders_by_build_id_and_by_name() {
    let lost = Lost::new(&[]);
    for place in [lost.by_id(""), "nowhere/app".to_owned(), "app".to_owned()] {
        let dir = format!("by-{}", place.len());
        let linked = lost.link(&format!("{dir}/{place}"));
        let (is_found, symbolizer) = lost.look("/nowhere/app", Some(&lost.id), lost.options(&dir));
        let report = &symbolizer.report()[0];
        assert!(is_found && report.problems.is_empty() && report.remedy.is_none(), "{place}: {report:?}");
        assert_eq!(report.source, SymbolSource::Dwarf { file: linked.clone() });
        assert_eq!((report.identity, report.found_build_id.as_ref()), (Some(Identity::BuildId), Some(&lost.id)));
        assert_eq!(report.looked_at[0], Path::new("/nowhere/app"));
        assert!(report.looked_at.contains(&linked), "{report:?}");
        // Only with a build id is it certain to be the same.
        let (is_found, symbolizer) = lost.look("/nowhere/app", None, lost.options(&dir));
        let report = &symbolizer.report()[0];
        assert!(!is_found && report.looked_at == [Path::new("/nowhere/app")], "{report:?}");
        let (is_found, symbolizer) = lost.look("/nowhere/app", Some(&[7; 20]), lost.options(&dir));
        let report = &symbolizer.report()[0];
        assert!(!is_found && report.identity.is_none(), "{report:?}");
    }
}

#[test]
fn a_program_that_was_replaced_is_found_where_the_old_one_is_kept() {
    let lost = Lost::new(&[]);
    let newer = lost.folder.program("app", &["-no-pie", "-O1"]);
    let path = newer.to_str().expect("a path");
    let (is_found, symbolizer) = lost.look(path, Some(&lost.id), lost.options("kept"));
    let report = &symbolizer.report()[0];
    assert!(!is_found);
    assert!(report.summary().is_some_and(|text| text.contains("is not the file that was profiled")), "{report:?}");
    assert_eq!(report.remedy.as_deref(), Some("--debuginfod on"));
    lost.link(&format!("kept/{}", lost.by_id("")));
    for path in [path.to_owned(), format!("{path} (deleted)")] {
        let (is_found, symbolizer) = lost.look(&path, Some(&lost.id), lost.options("kept"));
        let report = &symbolizer.report()[0];
        assert!(is_found && report.summary().is_none(), "{report:?}");
    }
}

#[test]
fn links_of_another_machine_stay_on_it() {
    let lost = Lost::new(&[]);
    let root = lost.folder.path("root");
    std::fs::create_dir_all(root.join("usr/lib/app")).expect("a folder");
    std::fs::create_dir_all(root.join("opt")).expect("a folder");
    let stripped = root.join("usr/lib/app/app-1.0");
    run(Command::new("objcopy").arg("--strip-all").args([&lost.program, &stripped]));
    run(Command::new("objcopy").arg("--only-keep-debug").arg(&lost.program).arg(root.join("opt/app.debug")));
    // All of them lead elsewhere or nowhere here.
    symlink("/usr/lib", root.join("lib")).expect("a link");
    symlink("/lib/app/app-1.0", root.join("usr/lib/app/app")).expect("a link");
    symlink("../../../../../../../usr", root.join("out")).expect("a link");
    let link = root.join("usr/lib/debug").join(lost.by_id(".debug"));
    std::fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
    symlink("/opt/app.debug", &link).expect("a link");
    let options = Options { sysroot: Some(root.clone()), ..Options::default() };
    for path in ["/lib/app/app", "/out/lib/app/app", "/usr/lib/app/app-1.0"] {
        let (is_found, symbolizer) = lost.look(path, Some(&lost.id), options.clone());
        let report = &symbolizer.report()[0];
        assert!(is_found && report.problems.is_empty(), "{path}: {report:?}");
        assert_eq!(report.source, SymbolSource::Dwarf { file: root.join("opt/app.debug") });
        assert!(report.looked_at.iter().all(|place| place.starts_with(&root)), "{report:?}");
    }
    // Of this machine nothing is taken.
    let path = lost.program.to_str().expect("a path");
    let (is_found, symbolizer) = lost.look(path, Some(&lost.id), options);
    let report = &symbolizer.report()[0];
    assert!(!is_found && report.problems.len() == 1, "{report:?}");
}

#[test]
fn what_would_help_is_told() {
    let lost = Lost::new(&[]);
    // Nothing does without a name to look for.
    assert_eq!(lost.look("[heap]", None, Options::default()).1.report()[0].remedy.clone(), None);
    assert_eq!(lost.look("/nowhere/app", None, Options::default()).1.report()[0].remedy.clone(), None);

    let stripped = lost.folder.path("stripped");
    let debug = lost.folder.path("odd; name.debug");
    run(Command::new("objcopy").arg("--only-keep-debug").args([&lost.program, &debug]));
    run(Command::new("objcopy").arg("--strip-all").args([&lost.program, &stripped]));
    let path = stripped.to_str().expect("a path");
    let remedy = lost.look(path, None, Options::default()).1.report()[0].remedy.clone().expect("a remedy");
    assert!(remedy.contains("-g") && remedy.contains("\"stripped\""), "{remedy}");
    run(Command::new("objcopy").arg("--add-gnu-debuglink").args([&debug, &stripped]));
    std::fs::rename(&debug, lost.folder.path("moved")).expect("moved");
    let remedy = lost.look(path, None, Options::default()).1.report()[0].remedy.clone().expect("a remedy");
    assert_eq!(remedy, "--debug-dir DIR  # a folder with \"odd; name.debug\"");
    // With it in that folder.
    std::fs::create_dir(lost.folder.path("given")).expect("a folder");
    std::fs::rename(lost.folder.path("moved"), lost.folder.path("given/odd; name.debug")).expect("moved");
    let (is_found, symbolizer) = lost.look(path, None, lost.options("given"));
    let report = &symbolizer.report()[0];
    assert!(is_found && report.remedy.is_none(), "{report:?}");
}

#[test]
fn a_missing_common_file_is_told() {
    let lost = Lost::new(&[]);
    let second = lost.folder.program("second", &["-no-pie", "-O1", "-Wl,--build-id"]);
    let common = lost.folder.path("common.dwz");
    run(Command::new("dwz").arg("-m").arg(&common).arg("-M").arg(&common).args([&lost.program, &second]));
    let path = lost.program.to_str().expect("a path");
    assert!(lost.look(path, Some(&lost.id), Options::default()).1.report()[0].problems.is_empty());
    std::fs::rename(&common, lost.folder.path("moved")).expect("moved");
    let mut symbolizer = Symbolizer::new(Options::default());
    symbolizer.symbolize(&mapped(&lost.program, 0), &lost.addresses);
    let report = &symbolizer.report()[0];
    assert!(matches!(&report.problems[..], [Error::NoAltFile { link, .. }] if *link == common), "{report:?}");
    let remedy = report.remedy.as_deref().expect("a remedy");
    assert!(remedy.starts_with("--debug-dir DIR") && remedy.contains("common.dwz"), "{remedy}");
    // In a folder as distributions have it.
    std::fs::create_dir_all(lost.folder.path("debug/.dwz")).expect("a folder");
    std::fs::rename(lost.folder.path("moved"), lost.folder.path("debug/.dwz/common.dwz")).expect("moved");
    let (is_found, symbolizer) = lost.look(path, Some(&lost.id), lost.options("debug"));
    let report = &symbolizer.report()[0];
    assert!(is_found && report.problems.is_empty(), "{report:?}");
}
