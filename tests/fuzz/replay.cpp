#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "formats.h"

/// The formats of the fuzzers with any compiler: reads the corpus, then a number of mutations of it.
///   fuzz_replay CORPUS SEED MUTATIONS FOLDER
/// A process per format. An input that ends it is written to FOLDER.

namespace {

namespace fs = std::filesystem;

constexpr size_t kLongest = 65536;

// what the process of a format leaves for its parent
struct Shared {
  int64_t executions;
  size_t size;
  char input[kLongest];
};

std::vector<std::string> seeds_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> seeds;
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return seeds;
}

// one to four changes of bytes or pieces, of which some come from another seed
std::string mutated(std::string text, const std::string& other, std::mt19937_64& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  static const std::vector<std::string> kWords = {
      "-1", "1e308", "NaN", "9223372036854775807", "\xff\xff\xff\xff", std::string(4, '\0'), "\xe9", "\n",
      ",",  "\x1e",  "\"",  "2020-02-30"};
  for (size_t changes = 1 + below(4); changes > 0; --changes) {
    const size_t at = below(text.size() + 1), count = below(std::min<size_t>(text.size() - at, 32) + 1);
    switch (below(6)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 2:
        text.erase(at, count);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), 32));
        break;
      case 4:
        text.replace(at, count, kWords[below(kWords.size())]);
        break;
      default:
        text.replace(at, count, other.substr(below(other.size() + 1), 1 + below(64)));
    }
  }
  return text.substr(0, kLongest);
}

void attack(const fuzz::Format& format, const std::vector<std::string>& seeds, uint64_t seed,
            int64_t mutations, Shared& shared) {
  const auto read = [&](const std::string& text) {
    shared.size = std::min(text.size(), kLongest);
    std::memcpy(shared.input, text.data(), shared.size);
    fuzz::accepts(format, text);
    ++shared.executions;
  };
  for (const std::string& text : seeds) read(text);
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < mutations; ++i) {
    const std::string& other = seeds[random() % seeds.size()];
    read(mutated(seeds[random() % seeds.size()], other, random));
  }
}

// whether the process of a format ended well; prints a row of the table
bool survives(const fuzz::Format& format, const fs::path& corpus, uint64_t seed, int64_t mutations,
              const fs::path& to, int64_t& all) {
  const std::vector<std::string> seeds = seeds_of(corpus / format.name);
  auto* shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    // a file of 64 kB needs no more, and an endless loop ends
    const rlimit memory = {rlim_t{8} << 30, rlim_t{8} << 30}, time = {60, 60};
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CPU, &time);
    attack(format, seeds, seed, mutations, *shared);
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  all += shared->executions;
  std::printf("%-15s %12lld %9s  %d\n", format.name.c_str(), static_cast<long long>(shared->executions), "-",
              status == 0 ? 0 : 1);
  if (status != 0)
    std::ofstream(to / ("crash-" + format.name), std::ios::binary)
        .write(shared->input, static_cast<std::streamsize>(shared->size));
  munmap(shared, sizeof(Shared));
  return status == 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  const uint64_t seed = std::strtoull(words[2], nullptr, 10);
  const int64_t mutations = std::atoll(words[3]);
  int64_t all = 0;
  int failed = 0;
  for (const fuzz::Format& format : fuzz::formats()) {
    if (!survives(format, words[1], seed, mutations, words[4], all)) ++failed;
  }
  std::printf("%-15s %12lld %9s  %d\n", "all", static_cast<long long>(all), "", failed);
  return failed == 0 ? 0 : 1;
}
