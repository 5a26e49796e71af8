// Allocators with heaps of their own.
#include <mimalloc-stats.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

static void check(bool holds, const char *what) {
    if (!holds) std::printf("broken: %s\n", what), std::exit(1);
}
template <class F> static bool throws(F allocate) {
    try { allocate(); } catch (const std::bad_alloc &) { return true; }
    return false;
}
static volatile std::size_t one = 1;
struct alignas(256) Wide { char bytes[300]; };

static bool count(mi_heap_t *, void *arg) { return ++*static_cast<int *>(arg), true; }
static int heaps() {
    int n = 0;
    mi_subproc_visit_heaps(mi_subproc_main(), count, &n);
    return n;
}
static long live() {
    mi_stats_t_decl(stats);
    mi_stats_get(&stats);
    return long(stats.malloc_normal.current + stats.malloc_huge.current);
}

template <template <class> class Alloc> static void containers() {
    int before = heaps();
    long bytes = live();
    {
        using Text = std::basic_string<char, std::char_traits<char>, Alloc<char>>;
        std::vector<int, Alloc<int>> numbers;
        for (int i = 0; i < 100000; i++) numbers.push_back(i);
        mi_heap_t *own = numbers.get_allocator().heap.get();
        check(own != mi_heap_main() && mi_heap_of(numbers.data()) == own, "the blocks are in the heap");
        check(heaps() == before + 1, "one heap");
        std::vector<int, Alloc<int>> copy = numbers;
        check(copy == numbers && copy.get_allocator() == numbers.get_allocator() && heaps() == before + 1, "a copy shares it");
        std::vector<int, Alloc<int>> other{Alloc<int>()};
        check(heaps() == before + 2 && other.get_allocator() != numbers.get_allocator(), "another one does not");
        other = std::move(copy);
        check(other == numbers && heaps() == before + 1, "the heap goes with its last user");
        std::list<Wide, Alloc<Wide>> list(numbers.get_allocator());
        std::map<int, Text, std::less<int>, Alloc<std::pair<const int, Text>>> map(numbers.get_allocator());
        std::set<Text, std::less<Text>, Alloc<Text>> set;
        for (int i = 0; i < 1000; i++) {
            list.emplace_back();
            check(reinterpret_cast<std::uintptr_t>(&list.back()) % 256 == 0, "aligned nodes");
            check(mi_heap_of(&list.back()) == own, "nodes are in the heap");
            map.emplace(i, Text(100, 'x', numbers.get_allocator()));
            set.insert(Text(std::to_string(i).c_str(), set.get_allocator()));
            if (i % 3 == 0) list.pop_front(), map.erase(i / 2);
        }
        check(map.at(999).size() == 100 && set.size() == 1000 && mi_heap_of(map.at(999).data()) == own, "map");
        check(throws([&] { return numbers.get_allocator().allocate(one << 62); }), "too many ints");
        check(throws([&] { return list.get_allocator().allocate(~std::size_t(0) / (2 * one)); }), "too many wide ones");
        check(throws([&] { return list.get_allocator().allocate(one << 45); }), "no memory for wide ones");
        numbers.get_allocator().collect(true);

        mi_heap_t *given = mi_heap_new();
        int kept = heaps();
        {
            std::vector<long, Alloc<long>> guest{Alloc<long>(given)};
            guest.resize(1000);
            check(mi_heap_of(guest.data()) == given, "a heap that is given");
        }
        check(heaps() == kept, "stays");
        mi_heap_destroy(given);
    }
    check(heaps() == before, "all heaps are gone");
    check(live() < bytes + 10000, "and all blocks");
}

int main() {
    containers<mi_heap_stl_allocator>();
    containers<mi_heap_destroy_stl_allocator>();
    std::puts("fine");
}
