#include "formats.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace fuzz {
namespace {

namespace fs = std::filesystem;

struct ScratchFolder {
  fs::path path = [] {
    const fs::path memory = "/dev/shm";
    const fs::path base = std::getenv("TMPDIR") || !fs::exists(memory) ? fs::temp_directory_path() : memory;
    std::string name = (base / "fastweights-fuzz-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error(name + ": cannot be created");
    return fs::path(name);
  }();

  ~ScratchFolder() {
    std::error_code error;
    fs::remove_all(path, error);
  }
};

}  // namespace

std::vector<Format> formats() {
  std::vector<Format> all;
  const auto add = [&](const std::vector<Format>& some) { all.insert(all.end(), some.begin(), some.end()); };
#ifdef FUZZ_DATA
  add(data_formats());
#endif
#ifdef FUZZ_LIBRARIES
  add(library_formats());
#endif
#ifdef FUZZ_RUNS
  add(run_formats());
#endif
  return all;
}

void require(bool condition) {
  if (!condition) std::abort();
}

bool accepts(const Format& format, std::string_view bytes) {
  try {
    format.read(bytes);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

const fs::path& scratch_folder() {
  static const ScratchFolder kFolder;
  return kFolder.path;
}

std::string write_scratch(const std::string& name, std::string_view bytes) {
  const fs::path path = scratch_folder() / name;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path.string();
}

std::vector<std::string_view> parts(std::string_view bytes, size_t count) {
  constexpr char kSeparator = '\x1e';
  std::vector<std::string_view> found;
  while (found.size() + 1 < count) {
    const size_t end = bytes.find(kSeparator);
    found.push_back(bytes.substr(0, end));
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  }
  found.push_back(bytes);
  return found;
}

}  // namespace fuzz
