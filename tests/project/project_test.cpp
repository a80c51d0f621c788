#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

/// The rules that keep the sources readable, checked on the sources themselves.

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = FASTWEIGHTS_SOURCE_DIR;
const std::set<std::string> kExtensions = {".h", ".cpp", ".cu", ".cuh"};

struct SourceFile {
  std::string path;  // from the root
  std::vector<std::string> lines;
  std::vector<std::string> includes;
};

const std::vector<SourceFile>& sources() {
  static const std::vector<SourceFile> kSources = [] {
    const std::regex include(R"(^\s*#\s*include\s*["<]([^">]+)[">])");
    std::vector<SourceFile> found;
    for (const char* folder : {"include", "src", "cli", "tests", "bench", "examples"}) {
      for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / folder)) {
        const std::string extension = entry.path().extension().string();
        if (!kExtensions.contains(extension)) continue;
        SourceFile file{fs::relative(entry.path(), kRoot).string(), {}, {}};
        std::ifstream in(entry.path());
        for (std::string line; std::getline(in, line);) {
          std::smatch match;
          if (std::regex_search(line, match, include)) file.includes.push_back(match[1]);
          file.lines.push_back(line);
        }
        found.push_back(std::move(file));
      }
    }
    return found;
  }();
  return kSources;
}

// the layers of cmake/library.cmake, each with those that it may include
const std::map<std::string, std::set<std::string>>& below() {
  static const std::map<std::string, std::set<std::string>> kBelow = [] {
    std::map<std::string, std::set<std::string>> layers;
    std::ifstream in(FASTWEIGHTS_LAYERS_FILE);
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string layer;
      words >> layer;
      layers[layer] = {std::istream_iterator<std::string>(words), {}};
    }
    return layers;
  }();
  return kBelow;
}

const std::map<std::string, std::string> kPublicHeaders = {
    {"tableau.h", "base"},
    {"fields.h", "base"},
    {"tensor.h", "tensor"},
    {"solve.h", "solve"},
    {"control.h", "control"},
    {"rule.h", "ops"},
    {"scan.h", "ops"},
    {"architecture.h", "model"},
    {"baselines.h", "model"},
    {"fitted.h", "model"},
    {"model_config.h", "model"},
    {"model.h", "model"},
    {"network.h", "model"},
    {"published.h", "architectures"},
    {"gradcheck.h", "architectures"},
    {"environment.h", "environment"},
    {"data.h", "data"},
    {"data_set.h", "data"},
    {"task.h", "train"},
    {"optimise.h", "train"},
    {"trainer.h", "train"},
    {"predictions.h", "train"},
    {"calibration.h", "train"},
    {"trained_model.h", "train"},
    {"run.h", "train"},
    {"train.h", "train"},
};
// entry points, which include the others; those without a layer only do that
const std::set<std::string> kEntryPoints = {"fastweights.h", "train.h", "tools.h", "module.h"};

// the layer of a path of ours, or "" for another library's header
std::string layer_of(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (path.find("fastweights/") != std::string::npos) {
    const auto found = kPublicHeaders.find(name);
    return found == kPublicHeaders.end() ? "" : found->second;
  }
  const std::string inside = path.rfind("src/", 0) == 0 ? path.substr(4) : path;
  const std::string folder = inside.substr(0, inside.find('/'));
  return below().contains(folder) ? folder : "";
}

TEST(Project, EveryFolderIsALayer) {
  std::set<std::string> folders, layers;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / "src"))
    if (entry.is_directory()) folders.insert(entry.path().filename().string());
  for (const auto& [layer, others] : below()) layers.insert(layer);
  EXPECT_EQ(folders, layers);
}

TEST(Project, EverySourceIsBuilt) {
  std::ifstream in(kRoot / "cmake" / "library.cmake");
  const std::string list{std::istreambuf_iterator<char>(in), {}};
  for (const SourceFile& file : sources()) {
    const bool listed = file.path.starts_with("src/") && file.path.ends_with(".cpp");
    EXPECT_TRUE(!listed || list.find(file.path) != std::string::npos) << file.path;
  }
}

// a file that nothing builds tests nothing
TEST(Project, EveryTestIsBuilt) {
  std::map<std::string, std::string> lists;
  const auto list_of = [&](const fs::path& folder) -> const std::string& {
    const auto [found, is_new] = lists.try_emplace(folder.string());
    std::ifstream in(folder / "CMakeLists.txt");
    if (is_new) found->second = {std::istreambuf_iterator<char>(in), {}};
    return found->second;
  };
  size_t tests = 0;
  for (const SourceFile& file : sources()) {
    if (!file.path.starts_with("tests/") || !file.path.ends_with("_test.cpp")) continue;
    ++tests;
    // in the list of its own folder or of one above it
    const fs::path path = kRoot / file.path;
    bool listed = false;
    for (fs::path folder = path.parent_path(); folder != kRoot && !listed; folder = folder.parent_path()) {
      const std::string name = fs::relative(path, folder).string();
      const std::regex entry("(^|[\\s(])" + name + "([\\s)]|$)");
      listed = std::regex_search(list_of(folder), entry);
    }
    EXPECT_TRUE(listed) << file.path << " is in no CMakeLists.txt";
  }
  EXPECT_GT(tests, 80u);
}

// text becomes JSON in one place, which limits its depth: the library writes and compares by recursion
TEST(Project, JsonIsReadWithALimitOfItsDepth) {
  const std::regex raw(R"(json::(parse|accept|from_\w+)\(|>> *json\b)", std::regex::icase);
  EXPECT_TRUE(std::regex_search(std::string("const Json json = Json::parse(text);"), raw));
  EXPECT_TRUE(std::regex_search(std::string("nlohmann::ordered_json::parse(in)"), raw));
  for (const SourceFile& file : sources()) {
    const bool product =
        file.path.starts_with("src/") || file.path.starts_with("include/") || file.path.starts_with("cli/");
    if (!product || file.path == "src/base/json_fields.cpp") continue;
    for (const std::string& line : file.lines)
      EXPECT_FALSE(std::regex_search(line, raw)) << file.path << ": use parse_json(): " << line;
  }
}

TEST(Project, FilesIncludeTheirOwnLayerAndThoseBelow) {
  for (const SourceFile& file : sources()) {
    if (file.path.rfind("src/", 0) != 0 && file.path.rfind("include/", 0) != 0) continue;
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    if (kEntryPoints.contains(name) && !kPublicHeaders.contains(name)) continue;
    const std::string layer = layer_of(file.path);
    ASSERT_FALSE(layer.empty())
        << file.path << " belongs to no layer: add it to cmake/library.cmake and docs/architecture.md";
    for (const std::string& include : file.includes) {
      const std::string other = layer_of(include);
      EXPECT_TRUE(other.empty() || other == layer || below().at(layer).contains(other))
          << file.path << " of layer " << layer << " includes " << include << " of layer " << other;
    }
  }
}

bool is_libtorch(const std::string& include) {
  return include.rfind("ATen/", 0) == 0 || include.rfind("torch/", 0) == 0 || include.rfind("c10/", 0) == 0;
}

TEST(Project, LibTorchEntersThroughOneDoor) {
  for (const SourceFile& file : sources()) {
    // module.h and a program that uses it wrap models for LibTorch's own networks
    const bool door = file.path == "include/fastweights/tensor.h" || file.path.starts_with("src/tensor/") ||
                      file.path == "include/fastweights/module.h" || file.path.starts_with("examples/");
    if (door) continue;
    for (const std::string& include : file.includes)
      EXPECT_FALSE(is_libtorch(include)) << file.path << ": " << include;
  }
}

TEST(Project, KernelsKnowNeitherLibTorchNorContainers) {
  const std::set<std::string> allowed = {"atomic",    "array",   "cmath",   "cstdint",
                                         "algorithm", "cstdlib", "cstring", "initializer_list"};
  for (const SourceFile& file : sources()) {
    if (file.path.rfind("src/kernels/", 0) != 0) continue;
    // a launch that fails throws
    const bool device = file.path.rfind("src/kernels/cuda/", 0) == 0;
    for (const std::string& include : file.includes) {
      if (device && (include == "stdexcept" || include == "string" || include == "cuda_runtime.h")) continue;
      EXPECT_TRUE(allowed.contains(include) || include.rfind("kernels/", 0) == 0)
          << file.path << ": " << include;
    }
  }
}

TEST(Project, OnlyCudaSourcesKnowCuda) {
  for (const SourceFile& file : sources()) {
    if (file.path.ends_with(".cu") || file.path.ends_with(".cuh")) continue;
    for (const std::string& include : file.includes)
      EXPECT_EQ(include.rfind("cuda", 0), std::string::npos) << file.path;
  }
}

TEST(Project, PublicHeadersAreFreeOfConditions) {
  for (const SourceFile& file : sources()) {
    if (file.path.rfind("include/", 0) != 0) continue;
    for (const std::string& line : file.lines)
      EXPECT_EQ(line.rfind("#if", 0), std::string::npos) << file.path << ": " << line;
  }
}

TEST(Project, HeadersAreGuardedAndFilesAreShort) {
  for (const SourceFile& file : sources()) {
    const bool device = file.path.ends_with(".cuh");
    const bool header = device || file.path.ends_with(".h");
    if (header) {
      EXPECT_EQ(file.lines.front(), "#pragma once") << file.path;
    }
    // code that several sources compile is a source in all but its ending
    const bool source = !header || device || file.path.ends_with("_impl.h");
    EXPECT_LE(file.lines.size(), source ? 400u : 200u) << file.path;
  }
}

// sizes that a file gives are multiplied by checked_product(), as far as the text of a source can tell
TEST(Project, ReadersMultiplySizesWithACheck) {
  const std::regex reader(
      R"(^src/(data/(\w*_reader|npz|zip|speech|cache|physionet\d+|csv_\w+)|tensor/safetensors\w*)\.cpp$)");
  // products that are multiplied in place, cast, allocated, or kept as a size
  const std::regex unchecked(
      R"(\*= |\* static_cast<(size_t|int64_t)>|(resize|reserve|assign|empty)\([^;]*[\w)] \* [a-zA-Z_(]|mul_overflow)"
      R"(|(size_t|int64_t|auto) \w+ = [^;"]*[\w)] \* [a-zA-Z_(])");
  const auto is_unchecked = [&](const std::string& line) { return std::regex_search(line, unchecked); };
  EXPECT_TRUE(is_unchecked("  count *= size;"));
  EXPECT_TRUE(is_unchecked("  count = empty ? 0 : count * static_cast<size_t>(size);"));
  EXPECT_TRUE(is_unchecked("  series.values.assign(length * dimensions.size(), kNaN);"));
  EXPECT_TRUE(is_unchecked("  const size_t count = rows * width;"));
  EXPECT_TRUE(is_unchecked("  const auto bytes = header.size() + length * sizeof(double);"));
  EXPECT_FALSE(is_unchecked("  const auto* bytes = static_cast<const char*>(data);"));
  EXPECT_FALSE(is_unchecked("  const double x = mean * deviation;"));
  EXPECT_FALSE(is_unchecked("  std::string out(size, '\\0');"));
  // positions in arrays whose size has been checked
  const std::set<std::string> positions = {
      "      const auto row = static_cast<size_t>(static_cast<int64_t>(b) * length + i);",
      "    const size_t at = (header.fortran ? fortran_index(i, header.shape) : i) * width;"};
  size_t readers = 0;
  for (const SourceFile& file : sources()) {
    if (!std::regex_match(file.path, reader)) continue;
    ++readers;
    for (const std::string& line : file.lines)
      EXPECT_TRUE(!is_unchecked(line) || positions.contains(line)) << file.path << ": " << line;
  }
  EXPECT_GE(readers, 12u);
}

// two types of one name would be merged by the linker
TEST(Project, ATypeIsDefinedOncePerNamespace) {
  const std::regex opened(R"(^namespace ([\w:]+) \{)");
  const std::regex defined(R"(^(?:struct|class|enum class|enum|using) (\w+)(?: final)?(?: :.*)? [{=])");
  std::map<std::string, std::string> headers;
  for (const SourceFile& file : sources()) {
    if (!file.path.ends_with(".h") || (!file.path.starts_with("src/") && !file.path.starts_with("include/")))
      continue;
    std::string space;
    for (const std::string& line : file.lines) {
      std::smatch match;
      if (std::regex_search(line, match, opened)) space = match[1];
      if (!std::regex_search(line, match, defined)) continue;
      const std::string type = space + "::" + match[1].str();
      const auto [first, is_new] = headers.emplace(type, file.path);
      EXPECT_TRUE(is_new) << type << " is defined in " << first->second << " and in " << file.path;
    }
  }
  EXPECT_GT(headers.size(), 200u);
}

TEST(Project, EveryPublicHeaderIsKnownAndUnderAnEntryPoint) {
  // for architectures of one's own, included on purpose
  std::set<std::string> included = {"network.h"};
  for (const SourceFile& file : sources()) {
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    if (file.path.find("include/fastweights/") == std::string::npos) continue;
    EXPECT_TRUE(kPublicHeaders.contains(name) || kEntryPoints.contains(name)) << name;
    if (!kEntryPoints.contains(name)) continue;
    for (const std::string& include : file.includes) included.insert(include.substr(include.rfind('/') + 1));
  }
  for (const auto& [name, layer] : kPublicHeaders)
    EXPECT_TRUE(included.contains(name) || kEntryPoints.contains(name)) << name;
}

}  // namespace
