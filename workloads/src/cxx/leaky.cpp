// The C++ twin of `leaky`: the same idea, the same JSON lines (schema `leaky-truth`), C++ ways to allocate.
//
//   g++ -O2 -g -std=c++17 -pthread leaky.cpp -o leaky-cxx
//   leaky-cxx [--scale F] [--seed N] [--threads N] [--exit STATUS]
//
// The truth names the function by its path without parameters; a demangled symbol starts with it. A lambda counts as part
// of the function it stands in. Line and function are taken on the line of the allocating call.

#include <pthread.h>

#include <array>
#include <atomic>
#include <cinttypes>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#if !defined(__GLIBCXX__)
#error "block sizes of std::string and std::map are known for libstdc++ only"
#endif

#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define HERE Place{__PRETTY_FUNCTION__, __LINE__}

namespace leaky_cxx {

struct Place {
    const char *function;
    int line;
};

// A block, where it was allocated, and how it is freed (null if its owner holds it already).
struct Made {
    void *memory;
    Place at;
    void (*release)(void *);
};

void release_new(void *memory) { ::operator delete(memory); }
void release_array(void *memory) { ::operator delete[](memory); }

// Holds a value and never destroys it, so that what the value owns stays allocated.
template <class Value> union Undying {
    Value value;
    explicit Undying(Value &&from) : value(std::move(from)) {}
    ~Undying() {}
};

NOINLINE Made keep_new(uint64_t seed) {
    struct Record { uint64_t words[6]; };
    auto *record = new Record; Place at = HERE;
    record->words[5] = seed;
    return {record, at, release_new};
}

NOINLINE Made keep_array(uint64_t seed) {
    auto *words = new uint64_t[32]; Place at = HERE;
    words[31] = seed;
    return {words, at, release_array};
}

NOINLINE Made keep_vector(uint64_t seed) {
    Undying<std::vector<uint64_t>> words{std::vector<uint64_t>(128, seed)}; Place at = HERE;
    return {words.value.data(), at, release_new};
}

NOINLINE Made keep_string(uint64_t seed) {
    Undying<std::string> text{std::string(95, static_cast<char>('a' + seed % 26))}; Place at = HERE;
    return {&text.value[0], at, release_new};
}

using Value = std::array<uint64_t, 15>;
using Map = std::map<uint64_t, Value>;
constexpr size_t NODE_BYTES = sizeof(std::_Rb_tree_node<Map::value_type>);

Map &kept_in_map() {
    static Map *map = new Map;
    return *map;
}

NOINLINE Made keep_in_map(uint64_t seed) {
    Map &map = kept_in_map();
    map.emplace(map.size(), Value{seed}); Place at = HERE;
    return {nullptr, at, nullptr};
}

ALWAYS_INLINE Made innermost(uint64_t seed) {
    void *memory = malloc(512); Place at = HERE;
    if (memory) memcpy(memory, &seed, sizeof seed);
    return {memory, at, free};
}

ALWAYS_INLINE Made middle(uint64_t seed) { return innermost(seed ^ 1); }

NOINLINE Made keep_inlined(uint64_t seed) {
    Made made = middle(seed);
    __asm__ volatile("" ::: "memory");
    return made;
}

NOINLINE Made keep_by_lambda(uint64_t seed) {
    std::function<Made(uint64_t)> keeper = [](uint64_t seed) NOINLINE {
        auto *words = new std::array<uint64_t, 16>; Place at = HERE;
        (*words)[15] = seed;
        return Made{words, at, release_new};
    };
    return keeper(seed);
}

NOINLINE Made make_scratch(uint64_t seed) {
    auto *words = new std::array<uint64_t, 96>; Place at = HERE;
    (*words)[95] = seed;
    return {words, at, release_new};
}

NOINLINE Made keep_on_worker(uint64_t seed) {
    auto *words = new std::array<uint64_t, 48>; Place at = HERE;
    (*words)[47] = seed;
    return {words, at, release_new};
}

} // namespace leaky_cxx

extern "C" NOINLINE leaky_cxx::Made leaky_c_keep(uint64_t seed) {
    using leaky_cxx::Place;
    void *memory = malloc(64); Place at = HERE;
    if (memory) memcpy(memory, &seed, sizeof seed);
    return {memory, at, free};
}

namespace leaky_cxx {

struct Site {
    const char *id;
    Made (*allocate)(uint64_t);
    const char *call;
    size_t block_size;
    uint64_t keep, temporary;
    bool inlined;
};

const Site MAIN[] = {
    {"cxx-malloc", leaky_c_keep, "malloc(", 64, 60000, 60000, false},
    {"cxx-new", keep_new, "new Record", 48, 50000, 50000, false},
    {"cxx-array", keep_array, "new uint64_t[", 256, 20000, 20000, false},
    {"cxx-vector", keep_vector, "std::vector<uint64_t>(", 1024, 8000, 8000, false},
    {"cxx-string", keep_string, "std::string(", 96, 40000, 40000, false},
    {"cxx-map", keep_in_map, ".emplace(", NODE_BYTES, 20000, 0, false},
    {"cxx-inlined", keep_inlined, "malloc(", 512, 16000, 16000, true},
    {"cxx-lambda", keep_by_lambda, "new std::array<", 128, 20000, 20000, false},
    {"cxx-scratch", make_scratch, "new std::array<", 768, 0, 100000, false},
};
const Site WORKER[] = {{"cxx-worker", keep_on_worker, "new std::array<", 384, 5000, 5000, false}};

struct Random {
    uint64_t state;
    uint64_t next() {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    uint64_t below(uint64_t bound) { return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64); }
};

// A site's share of one thread: what is left to do, what was done, and the chain through the blocks that were kept.
struct Share {
    const Site *site;
    std::string thread;
    uint64_t keep, temporary;
    uint64_t kept = 0, allocated = 0;
    Place at{"", 0};
    void *chain = nullptr;
};

std::vector<Share> shares_of(const Site *begin, const Site *end, const std::string &thread, double scale) {
    auto scaled = [scale](uint64_t count) { return count ? std::max<uint64_t>(1, std::llround(count * scale)) : 0; };
    std::vector<Share> shares;
    for (const Site *site = begin; site != end; site++) {
        shares.push_back(Share{site, thread, scaled(site->keep), scaled(site->temporary)});
    }
    return shares;
}

// Each step draws uniformly among all operations that remain, so the sums are exact and only the order is random.
uint64_t run(std::vector<Share> &shares, uint64_t seed) {
    Random random{seed};
    std::array<Made, 256> pockets{};
    uint64_t remaining = 0, order = 0;
    for (const Share &share : shares) remaining += share.keep + share.temporary;
    for (; remaining > 0; remaining--) {
        uint64_t pick = random.below(remaining);
        Share *share = &shares[0];
        for (; pick >= share->keep + share->temporary; share++) pick -= share->keep + share->temporary;
        bool keep = pick < share->keep;
        (keep ? share->keep : share->temporary)--;
        order = Random{order ^ static_cast<uint64_t>(2 * (share - &shares[0]) + keep)}.next();
        Made made = share->site->allocate(random.next());
        share->at = made.at;
        share->allocated++;
        if (keep) {
            share->kept++;
            if (!made.release) continue;
            if (!made.memory) abort();
            memcpy(made.memory, &share->chain, sizeof share->chain);
            share->chain = made.memory;
        } else {
            std::swap(pockets[random.below(pockets.size())], made);
            if (made.release) made.release(made.memory);
        }
    }
    for (Made &made : pockets) {
        if (made.release) made.release(made.memory);
    }
    return order;
}

// Counts the kept blocks once more, by walking them.
uint64_t count(const Share &share) {
    if (share.site->allocate == keep_in_map) return kept_in_map().size();
    uint64_t blocks = 0;
    for (void *block = share.chain; block; blocks++) memcpy(&block, block, sizeof block);
    return blocks;
}

std::string path_of(const char *pretty) {
    std::string name(pretty, strcspn(pretty, "("));
    size_t space = name.rfind(' ');
    return space == std::string::npos ? name : name.substr(space + 1);
}

constexpr const char *HEAD = R"({"schema":"leaky-truth","schema_version":1,"kind":)";

void print(const Share &share) {
    uint64_t size = share.site->block_size;
    printf("%s\"site\",\"site\":\"%s\",\"function\":\"%s\",\"file\":\"%s\",\"line\":%d,\"call\":\"%s\",\"inlined\":%s,"
           "\"module\":\"exe\",\"thread\":\"%s\",\"block_size\":%" PRIu64 ",\"blocks_live\":%" PRIu64 ",\"bytes_live\":%" PRIu64
           ",\"blocks_allocated\":%" PRIu64 ",\"bytes_allocated\":%" PRIu64 "}\n",
           HEAD, share.site->id, path_of(share.at.function).c_str(), __FILE__, share.at.line, share.site->call,
           share.site->inlined ? "true" : "false", share.thread.c_str(), size, share.kept, share.kept * size,
           share.allocated, share.allocated * size);
}

} // namespace leaky_cxx

int main(int argc, char **argv) {
    using namespace leaky_cxx;
    double scale = 1;
    uint64_t seed = 1, threads = 4;
    int status = 0;
    for (int arg = 1; arg < argc; arg += 2) {
        const std::string flag = argv[arg];
        const char *value = arg + 1 < argc ? argv[arg + 1] : nullptr;
        if (value && flag == "--scale") scale = strtod(value, nullptr);
        else if (value && flag == "--seed") seed = strtoull(value, nullptr, 10);
        else if (value && flag == "--threads") threads = strtoull(value, nullptr, 10);
        else if (value && flag == "--exit") status = atoi(value);
        else return fprintf(stderr, "usage: leaky-cxx [--scale F] [--seed N] [--threads N] [--exit STATUS]\n"), 2;
    }

    // Workers with an even number end, the others are alive and idle at exit.
    static std::mutex mutex;
    static std::condition_variable changed;
    static uint64_t finished = 0;
    std::vector<std::vector<Share>> shares{shares_of(std::begin(MAIN), std::end(MAIN), "main", scale)};
    std::vector<uint64_t> orders(threads + 1);
    for (uint64_t i = 0; i < threads; i++) {
        shares.push_back(shares_of(std::begin(WORKER), std::end(WORKER), (i % 2 ? "alive-" : "ended-") + std::to_string(i), scale));
    }
    std::vector<std::thread> workers;
    for (uint64_t i = 1; i <= threads; i++) {
        workers.emplace_back([&shares, &orders, seed, i] {
            pthread_setname_np(pthread_self(), shares[i][0].thread.c_str());
            orders[i] = run(shares[i], Random{seed + i}.next());
            {
                std::lock_guard<std::mutex> lock(mutex);
                finished++;
                changed.notify_all();
            }
            while (i % 2 == 0) pause();
        });
    }
    orders[0] = run(shares[0], Random{seed}.next());
    for (uint64_t i = 0; i < threads; i++) {
        if (i % 2) workers[i].detach();
        else workers[i].join();
    }
    {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [threads] { return finished == threads; });
    }

    uint64_t blocks = 0, bytes = 0, all_blocks = 0, all_bytes = 0, order = 0;
    for (uint64_t part : orders) order = Random{order ^ part}.next();
    printf("%s\"run\",\"pid\":%d,\"seed\":%" PRIu64 ",\"scale\":%g,\"threads\":%" PRIu64 ",\"order\":%" PRIu64 "}\n", HEAD, getpid(),
           seed, scale, threads, order);
    for (const auto &of_thread : shares) {
        for (const Share &share : of_thread) {
            if (count(share) != share.kept) return fprintf(stderr, "leaky-cxx: %s lost blocks\n", share.site->id), 70;
            print(share);
            blocks += share.kept, bytes += share.kept * share.site->block_size;
            all_blocks += share.allocated, all_bytes += share.allocated * share.site->block_size;
        }
    }
    printf("%s\"total\",\"blocks_live\":%" PRIu64 ",\"bytes_live\":%" PRIu64 ",\"blocks_allocated\":%" PRIu64
           ",\"bytes_allocated\":%" PRIu64 "}\n", HEAD, blocks, bytes, all_blocks, all_bytes);
    // The chains hang on `shares`; it is left alone so that the blocks stay reachable until the end.
    static std::vector<std::vector<Share>> *kept = new std::vector<std::vector<Share>>(std::move(shares));
    return kept->empty() ? 70 : status;
}
