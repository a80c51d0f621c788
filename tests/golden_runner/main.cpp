#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "fastweights/environment.h"
#include "fastweights/tensor.h"
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
                                                       {"baselines", check_baselines},
                                                       {"train", check_train},
                                                       {"rfwp", check_rfwp}};
  const auto found = kChecks.find(group);
  return found == kChecks.end() ? nullptr : found->second;
}

fs::path golden_folder() {
  const char* other = std::getenv("FASTWEIGHTS_GOLDEN_DIR");
  return other && *other ? other : FASTWEIGHTS_GOLDEN_DEFAULT;
}

// the definition; for models also the kernels, in both types. Float32: every step rounds to 6e-8 of its
// numbers, and the published models' gradients are sums over some hundred operations of both signs.
std::vector<Target> targets_of(const std::string& group) {
  std::vector<Target> targets = {{}};
  if (group.rfind("fwp_", 0) == 0) {
    targets.push_back({"cpu", Backend::Cpu, at::kDouble, 1e-10});
    targets.push_back({"cpu", Backend::Cpu, at::kFloat, 1e-4});
    if (const at::Device device = find_device("auto"); !device.is_cpu())
      targets.push_back({"cuda", Backend::Cuda, at::kFloat, 1e-4, device});
  }
  if (group == "baselines") {
    if (const at::Device device = find_device("auto"); !device.is_cpu())
      targets.push_back({"cuda", Backend::Reference, at::kDouble, 1e-10, device});
  }
  return targets;
}

// empty if the file agrees
std::string run_check(Check check, const fs::path& path, const Target& target) {
  try {
    GoldenFile file(path.string(), target);
    check(file);
    if (std::getenv("FASTWEIGHTS_RESIDUALS")) {
      const GoldenFile::Closest& closest = file.closest();
      std::printf("  closest: %s with %.1e of %.1e\n", closest.what.c_str(), closest.error,
                  closest.tolerance);
    }
    if (!file.failure().empty()) return file.failure();
    const std::vector<std::string> unused = file.unused();
    // kernels and devices cannot show all that a file has
    if (unused.empty() || target.backend != Backend::Reference || !target.device.is_cpu()) return "";
    return "not understood: nothing looks at " + unused.front();
  } catch (const std::exception& error) {
    return error.what();
  }
}

// one line per backend; whether all agreed
bool report(Check check, const fs::path& path, const std::string& name, const std::vector<Target>& targets) {
  const std::string unusable = " cannot be used: ";
  bool good = true;
  for (size_t i = 0; i < targets.size();) {
    const std::string backend = targets[i].name;
    std::string failure;
    for (; i < targets.size() && targets[i].name == backend; ++i) {
      if (failure.empty()) failure = run_check(check, path, targets[i]);
    }
    const size_t reason = failure.find(unusable);
    if (failure.rfind("[model] ", 0) == 0 && reason != std::string::npos) {
      std::printf("  %s does not do %s: %s\n", backend.c_str(), name.c_str(),
                  failure.substr(reason + unusable.size()).c_str());
      continue;
    }
    good = good && failure.empty();
    std::printf("golden %s %s %s\n", backend.c_str(), name.c_str(),
                failure.empty() ? "ok" : ("FAILED " + failure).c_str());
    std::fflush(stdout);
  }
  return good;
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
  const std::vector<Target> targets = targets_of(group);
  int failed = 0;
  for (const fs::path& path : files) {
    const std::string name = group + "/" + path.filename().string();
    if (!check) {
      std::printf("golden reference %s pending\n", name.c_str());
      continue;
    }
    if (!report(check, path, name, targets)) ++failed;
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
