// The functions like operator new, the allocator for containers, and operators from the header.
#ifdef OPERATORS
#include <mimalloc-new-delete.h>
#endif
#include <mimalloc-stats.h>
#include <mimalloc.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <string>
#include <vector>

static volatile std::size_t huge = PTRDIFF_MAX;
static int handled;

static void check(bool holds, const char *what) {
    if (!holds) std::printf("broken: %s\n", what), std::exit(1);
}
template <class F> static bool throws(F allocate) {
    try { allocate(); } catch (const std::bad_alloc &) { return true; }
    return false;
}
struct alignas(256) Wide { char bytes[300]; };
struct Refused {};

template <class T> using Alloc = mi_stl_allocator<T>;

static void functions() {
    void *p = mi_new(100);
    p = mi_new_realloc(p, 1000);
    p = mi_new_reallocn(p, 100, 100);
    check(mi_usable_size(p) >= 10000, "mi_new_reallocn");
    mi_free(p);
    check(mi_new_realloc(p = mi_new(5), 0) != nullptr, "mi_new_realloc to 0");
    p = mi_new_aligned(100, 512);
    check(reinterpret_cast<std::uintptr_t>(p) % 512 == 0, "mi_new_aligned");
    mi_free_size_aligned(p, 100, 512);
    mi_free(mi_new_n(10, 10)), mi_free(mi_new_nothrow(10)), mi_free(mi_new_aligned_nothrow(10, 64));

    void *kept = mi_new(64);
    check(mi_new_nothrow(huge) == nullptr && mi_new_aligned_nothrow(huge, 64) == nullptr, "nothrow gives null");
    check(throws([] { return mi_new(huge); }), "mi_new throws");
    check(throws([] { return mi_new_aligned(huge, 64); }), "mi_new_aligned throws");
    check(throws([] { return mi_new_n(huge, 1); }), "mi_new_n throws");
    check(throws([&] { return mi_new_realloc(kept, huge); }), "mi_new_realloc throws");
    check(throws([&] { return mi_new_reallocn(kept, huge, 1); }), "mi_new_reallocn throws");
    std::set_new_handler([] { handled++; });
    check(throws([] { return mi_new_n(huge, 3); }) && throws([&] { return mi_new_reallocn(kept, huge, 3); }) && !handled,
          "no handler for a product that is too large");
    std::set_new_handler([] { if (++handled == 3) std::set_new_handler(nullptr); });
    check(throws([&] { return mi_new_realloc(kept, huge); }) && handled == 3, "mi_new_realloc asks the handler");
    std::set_new_handler([] { if (++handled == 6) std::set_new_handler(nullptr); });
    check(mi_new_nothrow(huge) == nullptr && handled == 6, "mi_new_nothrow asks the handler");
    // A handler may throw itself.
    std::set_new_handler([] { throw Refused(); });
    bool refused = false;
    try { (void)mi_new(huge); } catch (const Refused &) { refused = true; }
    check(refused, "what the handler throws arrives");
    std::set_new_handler(nullptr);
    mi_free(kept);
}

static void containers() {
    std::vector<int, Alloc<int>> numbers;
    for (int i = 0; i < 100000; i++) numbers.push_back(i);
    std::vector<int, Alloc<int>> copy = numbers, moved = std::move(copy);
    check(moved == numbers && mi_is_in_heap_region(moved.data()), "vector");
    std::map<std::string, int, std::less<std::string>, Alloc<std::pair<const std::string, int>>> map;
    std::list<Wide, Alloc<Wide>> list;
    for (int i = 0; i < 1000; i++) {
        map[std::to_string(i)] = i;
        list.emplace_back();
        check(reinterpret_cast<std::uintptr_t>(&list.back()) % 256 == 0, "aligned nodes");
    }
    check(map["77"] == 77, "map");
    using Text = std::basic_string<char, std::char_traits<char>, Alloc<char>>;
    Text text;
    for (int i = 0; i < 1000; i++) text += "text";
    check(text.size() == 4000, "string");
    check(throws([] { return Alloc<long>().allocate(std::size_t(1) << 62); }), "too many longs");
    check(throws([] { return Alloc<Wide>().allocate(~std::size_t(0) / 2); }), "too many wide ones");
    check(Alloc<int>() == Alloc<long>() && !(Alloc<int>() != Alloc<long>()), "all are the same");
    check(Alloc<char>().max_size() == PTRDIFF_MAX, "max_size");
}

int main() {
    functions();
    containers();
    auto *wide = new Wide;
    int *numbers = new int[100], *quiet = new (std::nothrow) int;
    check(mi_is_in_heap_region(wide) && mi_is_in_heap_region(numbers) && mi_is_in_heap_region(quiet), "operators");
    delete wide;
    delete[] numbers;
    delete quiet;
    delete[] new (std::nothrow) Wide[2];
    check(throws([] { return ::operator new(huge, std::align_val_t(64)); }), "aligned operator new throws");
    mi_stats_t_decl(stats);
    check(mi_stats_get(&stats) && stats.malloc_normal.current > 0, "statistics in C++");
    std::puts("fine");
}
