#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// The file formats under attack. Any bytes are a file: a format rejects them with std::runtime_error or
/// std::invalid_argument, or accepts them, and then what it read is consistent. Anything else is a finding.

namespace fuzz {

struct Format {
  std::string name = {};
  void (*read)(std::string_view bytes) = nullptr;
};

/// Readers without LibTorch and other libraries; those of libsndfile and libarchive; those of run folders,
/// which need LibTorch.
const std::vector<Format>& data_formats();
const std::vector<Format>& library_formats();
const std::vector<Format>& run_formats();

/// Those that this program was compiled with.
std::vector<Format> formats();

/// Ends the program if the condition does not hold.
void require(bool condition);

/// Reads a file; false if it was rejected.
bool accepts(const Format& format, std::string_view bytes);

/// A folder of this process for formats that open files themselves; removed at the end.
const std::filesystem::path& scratch_folder();

/// Writes a file below the scratch folder; returns its path.
std::string write_scratch(const std::string& name, std::string_view bytes);

/// The parts of an input that stands for several files.
std::vector<std::string_view> parts(std::string_view bytes, size_t count);

}  // namespace fuzz
