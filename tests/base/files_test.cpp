#include "base/files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data/scratch_folder.h"
#include "support/support.h"

namespace fastweights {
namespace {

using testing::error_message;
using testing::ScratchFolder;

std::string error_of(const std::function<void()>& f) { return error_message<std::runtime_error>(f); }

TEST(Files, ReadBackWhatWasWritten) {
  const ScratchFolder folder;
  const std::string path = folder.path("a"), bytes("x\0y\r\n", 5), large(100'001, 'z');
  replace_file(path, bytes);
  EXPECT_EQ(read_file(path), bytes);
  replace_file(path, {large, "", bytes});
  EXPECT_EQ(read_file(path), large + bytes);
  replace_file(path, "");
  EXPECT_EQ(read_file(path), "");
}

TEST(Files, AFailedReplacementLeavesNothingBehind) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path("a"));
  EXPECT_EQ(error_of([&] { replace_file(folder.path("a"), "x"); }),
            folder.path("a") + ": cannot be written: Is a directory");
  EXPECT_EQ(error_of([&] { replace_file(folder.path("b/c"), "x"); }),
            folder.path("b/c") + ": cannot be written: No such file or directory");
  size_t entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) entries += entry.exists();
  EXPECT_EQ(entries, 1u);
}

TEST(Files, MissingFilesAndFoldersAreErrors) {
  const ScratchFolder folder;
  EXPECT_EQ(error_of([&] { read_file(folder.path("none")); }), folder.path("none") + ": no such file");
  EXPECT_EQ(error_of([&] { read_file(folder.path()); }), folder.path() + ": expected a file, got a folder");
}

}  // namespace
}  // namespace fastweights
