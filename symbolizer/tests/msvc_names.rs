//! Names of Visual C++'s kind, made here by clang, against `llvm-undname`.

mod common;

use std::process::Command;

use common::{Folder, run};
use mpp_symbolizer::{NameStyle, demangle};

const SOURCE: &str = r#"
typedef decltype(sizeof 0) size_t;
namespace outer { namespace inner {
struct Plain { int x; };
enum Color { RED };
union Both { int i; float f; };
class Base {
public:
    Base(int);
    virtual ~Base();
    virtual int get(Plain p, Base *b, Base &c) const;
    static void make(const char *, ...);
    operator bool() const;
    operator Plain *();
    int operator()(int, int);
    int operator[](size_t);
    Base &operator=(const Base &);
    Base &operator+=(int);
    bool operator<(const Base &) const;
    void *operator new(size_t);
    void operator delete(void *);
    void reference() &;
    void moved() &&;
private:
    void secret(volatile int *, int *const, const int *const *);
protected:
    void guarded(Color, Both, char16_t, char32_t, wchar_t, bool, signed char, unsigned char);
};
class Derived : public Plain, public virtual Base {
public:
    Derived();
    ~Derived();
    int get(Plain p, Base *b, Base &c) const override;
};
Base::Base(int) {}
Base::~Base() {}
int Base::get(Plain, Base *, Base &) const { return 1; }
void Base::make(const char *, ...) {}
Base::operator bool() const { return true; }
Base::operator Plain *() { return 0; }
int Base::operator()(int, int) { return 2; }
int Base::operator[](size_t) { return 2; }
Base &Base::operator=(const Base &) { return *this; }
Base &Base::operator+=(int) { return *this; }
bool Base::operator<(const Base &) const { return false; }
void *Base::operator new(size_t) { return 0; }
void Base::operator delete(void *) {}
void Base::reference() & {}
void Base::moved() && {}
void Base::secret(volatile int *, int *const, const int *const *) {}
void Base::guarded(Color, Both, char16_t, char32_t, wchar_t, bool, signed char, unsigned char) {}
Derived::Derived() : Base(1) {}
Derived::~Derived() {}
int Derived::get(Plain, Base *, Base &) const { return 3; }
template <class T, int N> struct Array {
    T *content;
    template <class U> U turn(U u, Array<U, N + 1> *) { return u; }
    ~Array() {}
    Array(T t) {}
};
template <class... Ts> void pack(Ts...) {}
template <auto *P> void pointed() {}
int target(int);
}
using namespace inner;
void callbacks(int (*)(int), void (*)(int (*)(double), char), int (Base::*)(int, int), int Plain::*) {}
void arrays(int (&)[3], const char (*)[2][4], Plain *(*)(int)) {}
void numbers(long, unsigned long, long long, unsigned long long, short, unsigned short, float, double, long double) {}
void repeated(Base, Base, Plain *, Plain *, Base *, Array<Plain, 3>, Array<Plain, 3>, const Base &, const Base &) {}
void rvalue(Plain &&, const Plain &, decltype(nullptr)) {}
int local(int x)
{
    static int kept = target(x);
    struct Inside { static int deep(int y) { static int kept2; return y + kept2; } };
    auto lambda = [](int y) { return y + 1; };
    return Inside::deep(x) + lambda(x) + kept;
}
void use(Base *b)
{
    Array<int, 3> a(1);
    a.turn<Plain *>(0, 0);
    Array<Array<Color, 1>, 2> nested((Array<Color, 1>(RED)));
    nested.turn<float>(1.0f, 0);
    pack();
    pack(1, 2.0, b);
    pointed<&target>();
    delete b;
}
}
namespace { int hidden(outer::inner::Plain *p) { return p->x; } struct Quiet { void loud() {} }; }
int (*keep)(outer::inner::Plain *) = hidden;
void quiet() { Quiet().loud(); }
extern "C" int plain(int x) { return x; }
int initialized = plain(3);
outer::inner::Derived derived;
"#;

/// What the other tool has and ours leaves out: kinds of types, calling conventions, access, `__restrict`.
fn without_what_is_left_out(name: &str) -> String {
    let mut name = name.to_owned();
    let words = ["class ", "struct ", "enum ", "union ", "__cdecl ", "__thiscall ", "__vectorcall ", " __restrict"];
    for word in words {
        name = name.replace(word, "");
    }
    name
}

#[test]
fn functions_are_called_as_by_another_tool() {
    let folder = Folder::new();
    let source = folder.write("names.cc", SOURCE);
    let mut compared = 0;
    for target in ["x86_64", "i686"] {
        let object = folder.path(&format!("{target}.obj"));
        let mut compiler = Command::new("clang");
        compiler.arg(format!("--target={target}-pc-windows-msvc")).args([
            "-std=c++17",
            "-O0",
            "-ffreestanding",
            "-w",
            "-c",
        ]);
        run(compiler.arg(&source).arg("-o").arg(&object));
        let symbols = run(Command::new("llvm-nm").args(["--format=posix"]).arg(&object));
        for line in symbols.lines() {
            let (Some(raw), Some("t" | "T")) = (line.split(' ').next(), line.split(' ').nth(1)) else { continue };
            if !raw.starts_with('?') {
                continue;
            }
            let mut undname = Command::new("llvm-undname");
            undname.args(["--no-calling-convention", "--no-access-specifier", "--no-member-type", "--no-return-type"]);
            let text = run(undname.arg(raw));
            let theirs = text.lines().nth(1).unwrap_or(raw);
            let ours = demangle(raw, NameStyle::Full);
            // Functions that something is local to are told with all the rest by the other tool.
            let theirs = match (theirs.rfind("'::`"), ours.rfind("'::`")) {
                (Some(their_end), Some(our_end)) => format!("{}{}", &ours[..our_end], &theirs[their_end..]),
                _ => theirs.to_owned(),
            };
            assert_eq!(ours, without_what_is_left_out(&theirs), "{raw}");
            compared += 1;
        }
    }
    assert!(compared > 100, "only {compared} names");
}

#[test]
fn shorter_styles() {
    let styled = |raw, style| demangle(raw, style).into_owned();
    assert_eq!(styled("?outer@Box@ns@@QEAAHH@Z", NameStyle::Short), "Box::outer");
    assert_eq!(styled("?outer@Box@ns@@QEAAHH@Z", NameStyle::Normal), "ns::Box::outer");
    assert_eq!(styled("?outer@Box@ns@@QEAAHH@Z", NameStyle::Raw), "?outer@Box@ns@@QEAAHH@Z");
    // Letters of other alphabets are no trouble.
    assert_eq!(styled("?f@?$vector@HV?$\u{e9}cator@H@std@@@std@@QEAAXXZ", NameStyle::Short), "vector::f");
    assert_eq!(styled("?no name", NameStyle::Full), "?no name");
}
