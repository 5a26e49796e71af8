// The containers of the standard library, on as many threads as the first argument says.
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

static void work(unsigned seed) {
  std::mt19937_64 random(seed);
  std::unordered_map<std::string, std::vector<int>> lists;
  std::map<std::string, std::shared_ptr<std::string>> shared;
  std::list<std::string> queue;
  for (int i = 0; i < 100000; i++) {
    std::string key = "key " + std::to_string(random() % 15000) + std::string(random() % 48, '.');
    lists[key].push_back(i);
    if (i % 3 == 0) shared[key] = std::make_shared<std::string>(key + key);
    if (i % 4 == 0) queue.push_back(key);
    if (i % 5 == 0 && !queue.empty()) queue.pop_front();
    if (i % 7 == 0 && !shared.empty()) shared.erase(shared.begin());
    if (i % 11 == 0) lists.erase(key);
  }
  std::printf("%zu %zu %zu\n", lists.size(), shared.size(), queue.size());
}

int main(int count, char **arguments) {
  int threads = count > 1 ? std::atoi(arguments[1]) : 1;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; i++) all.emplace_back(work, i + 1u);
  for (auto &thread : all) thread.join();
}
