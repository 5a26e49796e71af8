//! A small C++ program in several files, with what compilers make hard to name: calls inlined several deep and across
//! files, clones, cold parts, constructors, lambdas, local classes, templates that several files share.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Folder;
use super::tools::{Compiler, run};

/// A flag for [`Project::build`] that puts one function into a section of its own, `far`.
pub(crate) const WITH_FAR_SECTION: &str = "-DKEEP_IN=__attribute__((section(\"far\")))";

/// What several source files use, in a folder of its own.
const SHARED: &str = r#"
#pragma once
namespace shop {

static inline __attribute__((always_inline)) int tax(int price)
{
    volatile int v = price;
    v += price / 5;
    return v;
}

static inline __attribute__((always_inline)) int total(int price, int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += tax(price + i);
    return sum;
}

template <typename T, int N> struct Shelf {
    T items[N];
    int used = 0;
    __attribute__((noinline)) void put(T item)
    {
        if (used < N)
            items[used++] = item;
        else
            items[tax(used) % N] = item;
    }
    T weigh() const
    {
        T sum = T();
        for (int i = 0; i < used; i++)
            sum += items[i];
        return sum;
    }
};

struct Base {
    explicit Base(int n);
    virtual ~Base();
    virtual int price(int n) = 0;
    int first;
};

int sell(int n, const char *to);
long keep(long n);
extern "C" int plain_c(int n, int m);

}
"#;

const MAIN: &str = r#"
#include "shared.h"
using namespace shop;

namespace {
struct Apple : Base {
    explicit Apple(int n) : Base(n) {}
    int price(int n) override { return total(n, first) + tax(first); }
};
}

template <typename F> __attribute__((noinline)) static int twice(F call, int n) { return call(n) + call(n + 1); }

__attribute__((noinline)) static int helper(int a, int unused, int fixed)
{
    volatile int v = a + fixed;
    return total(v, fixed) + unused;
}

int main(int argc, char **argv)
{
    Apple apple(argc);
    Shelf<int, 4> whole;
    Shelf<double, 2> parts;
    for (int i = 0; i < argc * 7; i++) {
        whole.put(sell(i, argv[0]));
        parts.put(i * 0.5);
    }
    auto closure = [&](int n) { return apple.price(n) - argc; };
    int sum = twice(closure, argc) + helper(argc, 0, 3) + helper(argc + 1, 0, 3);
    Base *base = &apple;
    sum += base->price(sum) + whole.weigh() + (int)parts.weigh() + plain_c(sum, argc);
    return sum + keep(argc) == 12345678;
}
"#;

const SECOND: &str = r#"
#include "shared.h"
#ifndef KEEP_IN
#define KEEP_IN
#endif
extern "C" void abort(void);
extern "C" int puts(const char *);

namespace shop {

Base::Base(int n) : first(n) { first += tax(n); }
Base::~Base() { first = 0; }

__attribute__((cold, noinline)) static void complain(const char *who, int n)
{
    if (tax(n) > 3)
        puts(who);
}

__attribute__((noinline)) int sell(int n, const char *to)
{
    if (__builtin_expect(n > 100000, 0)) {
        complain(to, n);
        complain("all", total(n, 2));
        abort();
    }
    switch (n % 9) {
    case 0: return tax(n);
    case 1: return total(n, 3);
    case 2: return total(n, n) ^ 5;
    case 3: return n - 77;
    case 4: return tax(tax(n));
    case 5: return n * n * n;
    default: break;
    }
    struct Local {
        int sum;
        __attribute__((noinline)) int add(int by) { sum += total(by, 2); return sum; }
    } local = {n};
    return local.add(n) + local.add(2);
}

// The same code twice, for linkers that fold it.
KEEP_IN __attribute__((noinline)) long keep(long n) { volatile long v = n; return v * 3 + 1; }
__attribute__((noinline)) long keep_too(long n) { volatile long v = n; return v * 3 + 1; }
long (*const pointers[])(long) = {keep, keep_too};

__attribute__((noinline)) double shelve(double x)
{
    Shelf<double, 2> shelf;
    shelf.put(x);
    shelf.put(keep_too((long)x));
    return shelf.weigh();
}

}
"#;

const PLAIN: &str = r#"
static inline __attribute__((always_inline)) int least(int a, int b)
{
    volatile int v = a;
    return v < b ? v : b;
}

int plain_c(int n, int m)
{
    int sum = 0;
    while (n-- > m)
        sum += least(n, m) - least(m, sum);
    return sum;
}
"#;

/// The program, not yet compiled.
#[derive(Debug)]
pub(crate) struct Project<'f> {
    folder: &'f Folder,
    compiler: Compiler,
}

impl<'f> Project<'f> {
    /// The sources written to `folder`.
    pub(crate) fn new(folder: &'f Folder, compiler: Compiler) -> Self {
        folder.write("include/shared.h", SHARED);
        folder.write("main.cc", MAIN);
        folder.write("second.cc", SECOND);
        folder.write("plain.c", PLAIN);
        Project { folder, compiler }
    }

    /// Compiles each file to an object file in the folder `objects`, and links these to the program `name`.
    pub(crate) fn build(&self, name: &str, flags: &[&str], link_flags: &[&str]) -> PathBuf {
        let all: Vec<&str> = ["-O2", "-g"].iter().chain(flags).chain(link_flags).copied().collect();
        self.link(name, &self.objects(name, flags), &all)
    }

    /// Links object files to the program `name`.
    pub(crate) fn link(&self, name: &str, objects: &[PathBuf], flags: &[&str]) -> PathBuf {
        let out = self.folder.path(name);
        run(Command::new(self.compiler.cpp).args(flags).args(objects).arg("-o").arg(&out));
        out
    }

    /// Compiles only; the object files of the program `name` are in `<name>.objects`.
    pub(crate) fn objects(&self, name: &str, flags: &[&str]) -> Vec<PathBuf> {
        let folder = self.folder.path(&format!("{name}.objects"));
        std::fs::create_dir_all(&folder).expect("a folder for object files");
        let compile = |source: &&str| {
            let compiler = if source.ends_with(".c") { self.compiler.c } else { self.compiler.cpp };
            let object = folder.join(Path::new(source).with_extension("o"));
            let mut command = Command::new(compiler);
            // Relative paths, as builds have them.
            command.current_dir(self.folder.path("")).args(["-O2", "-g", "-Iinclude"]).args(flags);
            run(command.args(["-c", source, "-o"]).arg(&object));
            object
        };
        ["main.cc", "second.cc", "plain.c"].iter().map(compile).collect()
    }
}
