#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "fastweights/environment.h"
#include "golden.h"

/// golden_runner GROUP: compares every file of a group with what we compute, one line per file. With
/// FASTWEIGHTS_RESIDUALS set it also shows which comparison came closest to its tolerance.

namespace fastweights::golden {
namespace {

namespace fs = std::filesystem;

using Check = void (*)(GoldenFile&);

Check find_check(const std::string& group) {
  static const std::map<std::string, Check> kChecks = {{"paths", check_paths},
                                                       {"logsig", check_logsig},
                                                       {"solvers", check_solvers},
                                                       {"adjoint", check_adjoint},
                                                       {"fwp_speech", check_fwp_spline},
                                                       {"fwp_sepsis", check_fwp_spline},
                                                       {"fwp_eigenworms", check_fwp_eigenworms},
                                                       {"train", check_train}};
  const auto found = kChecks.find(group);
  return found == kChecks.end() ? nullptr : found->second;
}

fs::path golden_folder() {
  const char* other = std::getenv("FASTWEIGHTS_GOLDEN_DIR");
  return other && *other ? other : FASTWEIGHTS_GOLDEN_DEFAULT;
}

// empty if the file agrees
std::string run_check(Check check, const fs::path& path) {
  try {
    GoldenFile file(path.string());
    check(file);
    if (std::getenv("FASTWEIGHTS_RESIDUALS")) {
      const GoldenFile::Closest& closest = file.closest();
      std::printf("  closest: %s with %.1e of %.1e\n", closest.what.c_str(), closest.error,
                  closest.tolerance);
    }
    if (!file.failure().empty()) return file.failure();
    const std::vector<std::string> unused = file.unused();
    return unused.empty() ? "" : "not understood: nothing looks at " + unused.front();
  } catch (const std::exception& trouble) {
    return trouble.what();
  }
}

int run(const std::string& group) {
  set_threads(0);
  const fs::path folder = golden_folder() / group;
  if (!fs::is_directory(golden_folder())) {
    std::printf("%s is not a folder\n", golden_folder().c_str());
    return 1;
  }
  if (!fs::is_directory(folder)) {
    std::printf("there is no group %s in %s\n", group.c_str(), golden_folder().c_str());
    return 0;
  }
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  const Check check = find_check(group);
  int failed = 0;
  for (const fs::path& path : files) {
    const std::string name = group + "/" + path.filename().string();
    if (!check) {
      std::printf("golden reference %s pending\n", name.c_str());
      continue;
    }
    const std::string failure = run_check(check, path);
    if (!failure.empty()) ++failed;
    std::printf("golden reference %s %s\n", name.c_str(),
                failure.empty() ? "ok" : ("FAILED " + failure).c_str());
    std::fflush(stdout);
  }
  std::printf("%zu files, %d failed\n", files.size(), failed);
  return failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace fastweights::golden

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: golden_runner GROUP\n");
    return 2;
  }
  return fastweights::golden::run(argv[1]);
}
