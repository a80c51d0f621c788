#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fastweights/data.h"

/// Shared by the tests of readers: temporary folders, error messages, bitwise comparison of data sets.

namespace fastweights {

/// A temporary folder, removed at the end.
class TestFolder {
 public:
  TestFolder() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("fastweights_data_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { remove(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  std::string file(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream out(path_ / name, std::ios::binary);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    return path(name);
  }

 private:
  // not remove_all: LibTorch 2.11 from pip brings a copy of it into the process that crashes
  static void remove(const std::filesystem::path& path) {
    if (std::filesystem::is_directory(path)) {
      for (const auto& entry : std::filesystem::directory_iterator(path)) remove(entry.path());
    }
    std::remove(path.c_str());
  }

  std::filesystem::path path_;
};

/// The message of a std::runtime_error; "" if there is none.
template <typename F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

inline const double kMissing = std::nan("");

/// Equal, with NaN at the same indices.
inline void expect_equal(const std::vector<double>& a, const std::vector<double>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
        << what << " " << i << ": " << a[i] << " and " << b[i];
}

/// All members except the name, the origin, the time unit and the date of time 0, which some formats drop.
inline void expect_same(const DataSet& a, const DataSet& b) {
  EXPECT_EQ(a.head.channels, b.head.channels);
  EXPECT_EQ(a.head.statics, b.head.statics);
  EXPECT_EQ(a.head.targets, b.head.targets);
  EXPECT_EQ(a.head.classes, b.head.classes);
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.groups, b.groups);
  EXPECT_EQ(a.parts, b.parts);
  EXPECT_EQ(a.offsets, b.offsets);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.step_labels, b.step_labels);
  expect_equal(a.times, b.times, "time");
  expect_equal(a.values, b.values, "value");
  expect_equal(a.statics, b.statics, "static feature");
  expect_equal(a.targets, b.targets, "target");
}

}  // namespace fastweights
