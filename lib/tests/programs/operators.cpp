// Every form of operator new and delete, and what happens when there is no memory.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

static int handled;
static volatile std::size_t huge = PTRDIFF_MAX;

struct alignas(256) Wide { char bytes[300]; };
struct Base { virtual ~Base() {} long a = 1; };
struct Derived : Base { char more[500]; };

static void check(bool holds, const char *what) {
    if (!holds) std::printf("broken: %s\n", what), std::exit(1);
}

int main() {
    delete new int(5);
    delete[] new int[500];
    delete new (std::nothrow) int(5);
    delete[] new (std::nothrow) int[500];
    auto *wide = new Wide;
    check(reinterpret_cast<std::uintptr_t>(wide) % 256 == 0, "aligned new");
    delete wide;
    delete[] new Wide[3];
    auto *quiet = new (std::nothrow) Wide[3];
    check(reinterpret_cast<std::uintptr_t>(quiet) % 256 == 0, "aligned nothrow new[]");
    delete[] quiet;
    Base *base = new Derived;
    delete base;
    ::operator delete(::operator new(100), std::size_t(100));
    ::operator delete(::operator new(100, std::align_val_t(64)), std::align_val_t(64));
    ::operator delete(::operator new(100, std::align_val_t(64)), 100, std::align_val_t(64));
    ::operator delete(::operator new(100, std::nothrow), std::nothrow);

    check(::operator new(huge, std::nothrow) == nullptr, "nothrow gives null");
    bool caught = false;
    try { ::operator new(huge); } catch (const std::bad_alloc &) { caught = true; }
    check(caught, "bad_alloc");
    caught = false;
    try { ::operator new(huge, std::align_val_t(64)); } catch (const std::bad_alloc &) { caught = true; }
    check(caught, "bad_alloc from aligned new");
    caught = false;
    std::set_new_handler([] { if (++handled == 3) std::set_new_handler(nullptr); });
    try { ::operator new[](huge); } catch (const std::bad_alloc &) { caught = true; }
    check(caught && handled == 3, "the new-handler is asked");

    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([] {
            std::vector<std::string> strings;
            for (int i = 0; i < 20000; i++) strings.push_back(std::string(i % 300, 'x'));
        });
    for (auto &thread : threads) thread.join();
    std::puts("fine");
}
