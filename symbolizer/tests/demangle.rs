//! Names of installed programs, demangled, compared with `c++filt`; and the styles with each other.

mod common;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mpp_symbolizer::{NameStyle, demangle, restyle};

/// C++ names that `nm` finds in files, without versions.
fn names_of(files: &[PathBuf]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files {
        for flags in [&["-D"][..], &[]] {
            let out = Command::new("nm").args(flags).arg(file).output().expect("nm (Debian package binutils)");
            for line in String::from_utf8_lossy(&out.stdout).lines() {
                let name = line.rsplit(' ').next().unwrap_or("").split('@').next().unwrap_or("");
                if name.starts_with("_Z") && !name.contains(".llvm.") {
                    names.insert(name.to_owned());
                }
            }
        }
    }
    names
}

/// What `c++filt` makes of names.
fn opinions(names: &BTreeSet<String>) -> Vec<String> {
    let mut child = Command::new("c++filt")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("c++filt (Debian package binutils)");
    let mut input = child.stdin.take().expect("a pipe");
    let text: String = names.iter().flat_map(|name| [name, "\n"]).collect();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).expect("c++filt reads"));
    let out = child.wait_with_output().expect("c++filt ends");
    writer.join().expect("the writer ends");
    String::from_utf8(out.stdout).expect("names are UTF-8").lines().map(str::to_owned).collect()
}

/// Files of this machine with many C++ names: the C++ library, and what Clang consists of.
fn libraries() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/bin"] {
        for entry in Path::new(folder).read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let wanted = name == "gdb"
                || name == "libstdc++.so.6"
                || (name.starts_with("libLLVM") || name.starts_with("libclang-cpp")) && name.contains(".so");
            if wanted {
                found.extend(entry.path().canonicalize());
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Whether `c++filt` itself is known to be wrong on a name: it leaves the place of an empty pack empty, and names the
/// constructors of unnamed types after what is around them.
fn is_known_fault(name: &str, theirs: &str) -> bool {
    let has_hole = [", ,", "(, ", "<, ", ", >"].iter().any(|hole| theirs.contains(hole));
    let is_in_unnamed = ["Ut_C", "Ut_D", "E_C", "E_D", "_C4", "_D4"].iter().any(|part| name.contains(part));
    has_hole || is_in_unnamed
}

#[test]
fn names_of_libraries_are_what_cppfilt_says() {
    let libraries = libraries();
    let names = names_of(&libraries);
    assert!(names.len() > 20_000, "{} names in {libraries:?} (Debian packages libstdc++6, clang, gdb)", names.len());
    let theirs = opinions(&names);
    assert_eq!(theirs.len(), names.len());
    let mut different = Vec::new();
    for (name, theirs) in names.iter().zip(&theirs) {
        let ours = demangle(name, NameStyle::Full);
        // A name that c++filt does not know is not judged: it may be older than the compiler.
        if ours != *theirs && theirs != name && !is_known_fault(name, theirs) {
            different.push(format!("{name}\n  theirs {theirs}\n  ours   {ours}"));
        }
    }
    // Where a reference to a template's parameter occurs in two functions, c++filt prints the first's argument in the
    // second, too. That is rare, but no text says where it happens.
    assert!(
        different.len() <= names.len() / 5_000,
        "{} of {}:\n{}",
        different.len(),
        names.len(),
        different.join("\n")
    );
}

#[test]
fn styles_of_names_and_of_text_agree() {
    let names = names_of(&libraries());
    let mut different = Vec::new();
    let mut count = 0;
    // A part of them, spread over all: four demanglings each.
    for name in names.iter().step_by(names.len().div_ceil(15_000)) {
        let full = demangle(name, NameStyle::Full);
        if full == *name {
            continue;
        }
        for style in [NameStyle::Normal, NameStyle::Short] {
            count += 1;
            let (of_name, of_text) = (demangle(name, style), restyle(&full, style));
            assert!(!of_name.is_empty() && !of_name.starts_with("::") && !of_name.ends_with("::"), "{full}: {of_name}");
            assert!(!of_text.is_empty() && !of_text.starts_with("::") && !of_text.ends_with("::"), "{full}: {of_text}");
            if of_name != of_text {
                different.push(format!("{full}\n  name {of_name}\n  text {of_text}"));
            }
        }
    }
    // A text does not tell the parameters of a function that is a template argument (`&(f(int))`) from those of a call.
    assert!(
        count > 10_000 && different.len() <= count / 200,
        "{} of {count}:\n{}",
        different.len(),
        different.join("\n")
    );
}

#[test]
fn hard_names() {
    for (name, full, normal, short) in [
        (
            "_ZNSt6vectorIiSaIiEE9push_backEOi",
            "std::vector<int, std::allocator<int> >::push_back(int&&)",
            "std::vector<int>::push_back",
            "vector::push_back",
        ),
        (
            "_ZNSsC1Ev",
            "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string()",
            "std::string::basic_string",
            "string::basic_string",
        ),
        ("_Z1fIiEPFvcET_", "void (*f<int>(int))(char)", "f<int>", "f"),
        ("_Z1fPFPFvcEiE", "f(void (*(*)(int))(char))", "f", "f"),
        ("_Z1fRA3_A2_i", "f(int (&) [3][2])", "f", "f"),
        ("_Z1fPA3_PFviE", "f(void (* (*) [3])(int))", "f", "f"),
        ("_Z1fM1AKFvvE", "f(void (A::*)() const)", "f", "f"),
        ("_ZN1AcvT_IiEEv", "A::operator int<int>()", "A::operator int<int>", "A::operator int<int>"),
        (
            "_ZlsI1AERSoS1_RKT_",
            "std::basic_ostream<char, std::char_traits<char> >& operator<< <A>(std::basic_ostream<char, std::char_traits<char> >&, A const&)",
            "operator<< <A>",
            "operator<<",
        ),
        // References to references, which other demanglers print wrong.
        ("_Z1fIRiEvOT_", "void f<int&>(int&)", "f<int&>", "f"),
        ("_Z1fIOiEvRT_", "void f<int&&>(int&)", "f<int&&>", "f"),
        ("_Z1fIJRiOcEEvDpOT_", "void f<int&, char&&>(int&, char&&)", "f<int&, char&&>", "f"),
        // An empty pack leaves no comma.
        ("_Z1fIJEEvDpT_i", "void f<>(int)", "f<>", "f"),
        ("_Z1fIiJEEvT_DpT0_", "void f<int>(int)", "f<int>", "f"),
        // What is in a function of a template has no return type.
        ("_ZZ1fIiEvT_E1x", "f<int>(int)::x", "f<int>::x", "f::x"),
        (
            "_ZZ4mainENKUlT_E_clIiEEDaS_",
            "auto main::{lambda(auto:1)#1}::operator()<int>(int) const",
            "main::{lambda(auto:1)#1}::operator()<int>",
            "main::{lambda(auto:1)#1}",
        ),
        (
            "_ZZN1A1fEiiEd_NKUlvE_clEv",
            "A::f(int, int)::{default arg#1}::{lambda()#1}::operator()() const",
            "A::f::{default arg#1}::{lambda()#1}::operator()",
            "A::f::{default arg#1}::{lambda()#1}",
        ),
        ("_Z1fIXgtLi1ELi2EEEvv", "void f<((1)>(2))>()", "f<((1)>(2))>", "f"),
        ("_Z1fIiEDTplfp_Li1EET_", "decltype ({parm#1}+(1)) f<int>(int)", "f<int>", "f"),
        ("_ZThn8_N1A1fEv", "non-virtual thunk to A::f()", "non-virtual thunk to A::f", "non-virtual thunk to A::f"),
        ("_ZN1AB5cxx11C1Ev", "A[abi:cxx11]::A()", "A::A", "A::A"),
        ("_ZNKO1A1fEv.part.0.cold", "A::f() const && [clone .part.0] [clone .cold]", "A::f", "A::f"),
        ("_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()", "(anonymous namespace)::f", "f"),
    ] {
        let shown =
            [NameStyle::Full, NameStyle::Normal, NameStyle::Short].map(|style| demangle(name, style).into_owned());
        assert_eq!(shown, [full, normal, short], "{name}");
        assert_eq!(demangle(name, NameStyle::Raw), name);
    }
}
