#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <thread>

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

TEST(Files, APipeWithoutAWriterIsAnError) {
  const ScratchFolder folder;
  const std::string path = folder.path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { read_file(path); }),
            path + ": expected a file, got a pipe that nothing writes to");
  std::thread writer([&] { std::ofstream(path) << "text"; });
  EXPECT_EQ(read_file(path), "text");
  writer.join();
}

TEST(Files, PipesAndDevicesAreWrittenToNotReplaced) {
  const ScratchFolder folder;
  const std::string path = folder.path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = read_file(path); });
  replace_file(path, std::vector<std::string_view>{"some ", "text"});
  reader.join();
  EXPECT_EQ(got, "some text");
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST(Files, LinksStayAndTheirTargetsAreReplaced) {
  const ScratchFolder folder;
  folder.write("inner/target", "old");
  std::filesystem::create_symlink("inner/target", folder.path("link"));
  std::filesystem::create_symlink("inner/new", folder.path("dangling"));
  std::filesystem::create_symlink("circle", folder.path("circle"));
  replace_file(folder.path("link"), "one");
  replace_file(folder.path("dangling"), "two");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  EXPECT_EQ(read_file(folder.path("inner/target")), "one");
  EXPECT_EQ(read_file(folder.path("inner/new")), "two");
  EXPECT_NE(error_of([&] { replace_file(folder.path("circle"), "x"); }).find("symbolic links"),
            std::string::npos);
}

// the names of the files that are made in a folder
class MadeFiles {
 public:
  explicit MadeFiles(const std::string& folder) : watch_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    inotify_add_watch(watch_, folder.c_str(), IN_CREATE);
  }
  ~MadeFiles() { close(watch_); }
  MadeFiles(const MadeFiles&) = delete;
  MadeFiles& operator=(const MadeFiles&) = delete;

  std::vector<std::string> names() const {
    alignas(inotify_event) char events[4096];
    std::vector<std::string> found;
    const ssize_t size = read(watch_, events, sizeof events);
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(events + at);
      found.emplace_back(event->name);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
    return found;
  }

 private:
  int watch_;
};

// so nobody can wait at such a name with a link or a file
TEST(Files, TemporaryNamesCannotBePredicted) {
  const ScratchFolder folder;
  const MadeFiles made(folder.path());
  for (int i = 0; i < 3; ++i) replace_file(folder.path("a"), "x");
  const std::vector<std::string> names = made.names();
  ASSERT_EQ(names.size(), 3u);
  const std::regex form("a[.]part-" + std::to_string(getpid()) + "-[0-9a-f]{16}");
  for (const std::string& name : names) EXPECT_TRUE(std::regex_match(name, form)) << name;
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 3u);
}

TEST(Files, AReplacedFileKeepsItsMode) {
  using std::filesystem::perms;
  const ScratchFolder folder;
  const std::string path = folder.write("a", "old");
  const perms mode = perms::owner_read | perms::owner_write | perms::group_read;
  std::filesystem::permissions(path, mode);
  replace_file(path, "new");
  EXPECT_EQ(std::filesystem::status(path).permissions(), mode);
}

TEST(Files, WhatKilledProcessesLeftIsRemoved) {
  const ScratchFolder folder;
  const std::string left = folder.write("b.part-1-0123456789abcdef", "half"),
                    other = folder.write("b.part-of-something", "mine");
  // another process holds this one
  const std::string live = folder.write("c.part-1-00000000000000ff", "half");
  const int file = open(live.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(file, LOCK_EX | LOCK_NB), 0);
  replace_file(folder.path("a"), "x");
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(other));
  EXPECT_TRUE(std::filesystem::exists(live));
  close(file);
  replace_file(folder.path("a"), "y");
  EXPECT_FALSE(std::filesystem::exists(live));
}

// as two programs that share a cache
TEST(Files, SeveralWritersOfOneFileLeaveOneOfTheirTexts) {
  const ScratchFolder folder;
  const std::string path = folder.path("a");
  std::vector<std::thread> writers;
  for (char c = 'a'; c < 'e'; ++c)
    writers.emplace_back([&, c] {
      for (int i = 0; i < 20; ++i) replace_file(path, std::string(1000, c));
    });
  for (std::thread& writer : writers) writer.join();
  const std::string text = read_file(path);
  EXPECT_EQ(text, std::string(1000, text[0]));
  size_t entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) entries += entry.exists();
  EXPECT_EQ(entries, 1u);
}

}  // namespace
}  // namespace fastweights
