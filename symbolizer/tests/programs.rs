//! Programs in several languages, and the names of their functions.

mod common;

use common::{FUNCTIONS, Folder, assert_like_binutils, instructions, lines, symbol, symbolize};
use mpp_symbolizer::Quality;
use std::process::Command;

#[test]
fn inlined_calls_and_lines_in_position_independent_code() {
    let folder = Folder::new();
    let program = folder.program("pie", &["-pie", "-fPIE"]);
    assert_like_binutils(&program, &FUNCTIONS);
    // So that the comparison cannot pass with nothing inlined.
    let deepest = symbolize(&program, &instructions(&program, &["outer"]));
    let deepest = deepest.iter().max_by_key(|s| s.frames.len()).expect("answers");
    let names: Vec<_> = lines(deepest).into_iter().map(|(function, file, _)| (function, file)).collect();
    let expected = [("leaf", "shapes.h"), ("middle", "shapes.h"), ("outer", "shapes.c")];
    assert_eq!(names, expected.map(|(function, file)| (function.to_owned(), file.to_owned())));
    assert_eq!(deepest.frames.iter().map(|f| f.inlined).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(deepest.quality, Quality::Lines);
    let path = deepest.frames[0].file.as_deref().expect("a file");
    assert_eq!(std::path::Path::new(path), folder.path("shapes.h"));
}

#[test]
fn cpp_names_are_complete_and_demangled() {
    let folder = Folder::new();
    let source = folder.write(
        "names.cc",
        r#"
        #include <cstdio>
        namespace deep { namespace inside {
        template <typename T> struct Box {
            T value;
            __attribute__((noinline)) T add(T other) { volatile T v = value; v = v + other; return v; }
        };
        inline __attribute__((always_inline)) long twice(const char *const &text, long x)
        {
            volatile long v = x + text[0];
            return v + v;
        }
        __attribute__((noinline)) long run(const char *text, long x) { return twice(text, x) * 3; }
        } }
        struct Base { virtual long work(long) = 0; virtual ~Base() {} };
        struct Derived : Base {
            __attribute__((noinline)) long work(long x) override { volatile long v = x; return v - 1; }
        };
        int main(int argc, char **argv)
        {
            deep::inside::Box<double> box{1.5};
            auto lambda = [&](long x) __attribute__((noinline)) { volatile long v = x * argc; return v; };
            Derived derived;
            Base *base = &derived;
            return (int)(box.add(argc) + deep::inside::run(argv[0], argc) + lambda(3) + base->work(argc));
        }
        "#,
    );
    let program = folder.compile(&source, "names", &["-O1", "-g"]);
    let functions = [
        "main",
        "_ZN4deep6inside3BoxIdE3addEd",
        "_ZN4deep6inside3runEPKcl",
        "_ZN7Derived4workEl",
        "_ZZ4mainENKUllE_clEl",
    ];
    let addresses = instructions(&program, &functions);
    let ours = symbolize(&program, &addresses);
    let mut names: Vec<&str> = Vec::new();
    for ((address, ours), theirs) in addresses.iter().zip(&ours).zip(common::binutils(&program, &addresses)) {
        names.extend(ours.frames.iter().filter_map(|frame| Some(&*frame.function.as_ref()?.demangled)));
        // Binutils gives inlined functions and lambdas without what is around them: compare places only.
        let places =
            |lines: Vec<common::Line>| lines.into_iter().map(|(_, file, line)| (file, line)).collect::<Vec<_>>();
        assert_eq!(places(lines(ours)), places(theirs), "at {address:#x}");
    }
    for expected in [
        "deep::inside::Box<double>::add(double)",
        "deep::inside::run(char const*, long)",
        "deep::inside::twice(char const* const&, long)",
        "Derived::work(long)",
        "main::{lambda(long)#1}::operator()(long) const",
        "main",
    ] {
        assert!(names.contains(&expected), "{expected} not among {names:?}");
    }
}

#[test]
fn rust_names_of_both_schemes_without_hashes() {
    let folder = Folder::new();
    let source = folder.write(
        "names.rs",
        r#"
        pub trait Work { fn work(&self, x: u64) -> u64; }
        pub struct Worker<T>(pub T);
        impl Work for Worker<u32> {
            #[inline(never)]
            fn work(&self, x: u64) -> u64 { std::hint::black_box(x + u64::from(self.0)) }
        }
        #[inline(always)]
        fn innermost(x: u64) -> u64 { std::hint::black_box(x * 3) }
        #[inline(always)]
        fn between(x: u64) -> u64 { innermost(x) + innermost(x + 1) }
        #[inline(never)]
        pub fn calls<T: Copy + Into<u64>>(x: T) -> u64 { between(x.into()) }
        fn main() {
            let n = std::env::args().count() as u32;
            let closure = |x: u64| std::hint::black_box(x + u64::from(n));
            let boxed: Box<dyn Fn(u64) -> u64> = Box::new(closure);
            let total = Worker(n).work(2) + calls(n) + boxed(7);
            std::process::exit((total == 1_234_567) as i32);
        }
        "#,
    );
    for scheme in ["legacy", "v0"] {
        let program = folder.path(scheme);
        let mut rustc = Command::new("rustc");
        rustc.args(["-g", "-Copt-level=1", "--edition=2024", "--crate-name=names"]);
        // The old scheme is no longer offered by itself.
        rustc.arg(format!("-Csymbol-mangling-version={scheme}")).args(["-Zunstable-options"]);
        rustc.env("RUSTC_BOOTSTRAP", "1");
        common::run(rustc.arg(&source).arg("-o").arg(&program));

        let addresses = instructions(&program, &[]);
        let ours = symbolize(&program, &addresses);
        let of_crate = |s: &&mpp_symbolizer::Symbolized| {
            s.frames.iter().any(|frame| frame.file.as_deref().is_some_and(|file| file.ends_with("/names.rs")))
        };
        let mut names: Vec<String> = ours.iter().filter(of_crate).flat_map(lines).map(|(name, ..)| name).collect();
        names.sort();
        names.dedup();
        let generic = if scheme == "v0" { "names::calls::<u32>" } else { "names::calls" };
        for expected in ["names::innermost", "names::between", generic, "names::main", "names::main::{closure#0}"] {
            let expected =
                if scheme == "legacy" { expected.replace("{closure#0}", "{{closure}}") } else { expected.into() };
            assert!(names.contains(&expected), "{scheme}: {expected} not among {names:?}");
        }
        let method = "<names::Worker<u32> as names::Work>::work";
        assert!(names.iter().any(|name| name == method), "{scheme}: {method} not among {names:?}");
        let deepest = ours.iter().map(lines).find(|frames| frames.iter().any(|(name, ..)| name == "names::innermost"));
        let deepest: Vec<String> = deepest.expect("inlined code").into_iter().map(|(name, ..)| name).collect();
        let at = deepest.iter().position(|name| name == "names::innermost").expect("the innermost");
        assert_eq!(deepest[at..][..3], ["names::innermost", "names::between", generic], "{scheme}");
    }
}

#[test]
fn parts_and_copies_of_functions_say_so_in_symbol_names() {
    let folder = Folder::new();
    let source = folder.write(
        "cold.cc",
        r#"
        #include <cstdio>
        #include <cstdlib>
        __attribute__((cold, noinline)) void fail(int x) { std::fprintf(stderr, "too large %d\n", x); }
        __attribute__((noinline)) int parse(int x)
        {
            if (x > 1000) { fail(x); fail(x + 1); std::abort(); }
            return x * 3;
        }
        int main(int argc, char **) { return parse(argc); }
        "#,
    );
    let program = folder.compile(&source, "cold", &["-O2"]);
    let (cold, size) = symbol(&program, "_Z5parsei.cold");
    let found = symbolize(&program, &[cold, cold + size - 1]);
    for answer in &found {
        assert_eq!(lines(answer), [("parse(int) [clone .cold]".to_owned(), "??".to_owned(), 0)]);
        assert_eq!(answer.quality, Quality::Name);
    }
}

#[test]
fn padding_between_functions_is_nobodys() {
    let folder = Folder::new();
    for (name, flags) in [("debug", &["-falign-functions=64"][..]), ("symbols", &["-falign-functions=64", "-g0"])] {
        let program = folder.program(name, flags);
        let (start, size) = symbol(&program, "outer");
        let end = start + size;
        assert!(size > 0 && end % 64 != 0, "no padding after outer in {}", program.display());
        let answers = symbolize(&program, &[start, end - 1, end, end | 63]);
        let names: Vec<Option<String>> = answers.iter().map(|a| lines(a).pop().map(|(name, ..)| name)).collect();
        let inside = || Some("outer".to_owned());
        assert_eq!(names, [inside(), inside(), None, None], "{name}");
        assert_eq!(answers[2].quality, Quality::Nothing);
        assert_eq!((answers[2].file_address, answers[2].module.is_some()), (end, true));
    }
}

#[test]
fn assembly_without_sizes_names_up_to_the_next_symbol() {
    let folder = Folder::new();
    let source = folder.write(
        "assembly.c",
        r#"
        __asm__(".text\n.globl bare\n.type bare, @function\nbare: nop\n nop\n ret\n"
                ".globl label\nlabel: nop\n ret\n"
                ".globl sized\n.type sized, @function\nsized: ret\n.size sized, 1\n nop\n nop\n");
        int main(void) { return 0; }
        "#,
    );
    let program = folder.compile(&source, "assembly", &["-O1"]);
    let (bare, label, sized) = (symbol(&program, "bare").0, symbol(&program, "label").0, symbol(&program, "sized").0);
    let answers = symbolize(&program, &[bare, bare + 2, label, label + 1, sized, sized + 1]);
    let names: Vec<String> = answers.iter().map(|a| lines(a).pop().map_or("-".into(), |(name, ..)| name)).collect();
    assert_eq!(names, ["bare", "bare", "label", "label", "sized", "-"]);
}

#[test]
fn addresses_in_any_order_and_again() {
    let folder = Folder::new();
    let program = folder.program("order", &[]);
    let mut addresses = instructions(&program, &FUNCTIONS);
    let in_order = symbolize(&program, &addresses);
    addresses.reverse();
    addresses.extend_from_within(..);
    let mut reversed = symbolize(&program, &addresses);
    let again = reversed.split_off(in_order.len());
    assert_eq!(reversed, again);
    reversed.reverse();
    assert_eq!(reversed, in_order);
    assert!(symbolize(&program, &[]).is_empty());
}
