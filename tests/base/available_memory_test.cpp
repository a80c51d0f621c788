#include "base/available_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "data/scratch_folder.h"

namespace fastweights {
namespace {

using testing::ScratchFolder;

// a machine with the files of control groups, whose memory is that of a process in `groups`
GroupMemory memory_of(const std::string& groups, const std::map<std::string, std::string>& files) {
  const ScratchFolder root;
  root.write("proc/self/cgroup", groups);
  for (const auto& [name, text] : files) root.write("sys/fs/cgroup/" + name, text);
  return group_memory(root.path());
}

void expect_memory(const GroupMemory& memory, int64_t limit, int64_t left) {
  EXPECT_EQ(memory.limit, limit);
  EXPECT_EQ(memory.left, left);
}

TEST(GroupMemory, WithoutGroupsNothingIsKnown) {
  expect_memory(memory_of("", {}), kUnknownMemory, kUnknownMemory);
  expect_memory(memory_of("0::/a\n", {{"a/memory.max", "max\n"}, {"a/memory.current", "5\n"}}),
                kUnknownMemory, kUnknownMemory);
  expect_memory(group_memory("/nowhere"), kUnknownMemory, kUnknownMemory);
  // garbage
  for (const char* groups :
       {":", "::", "0", "0:", "\n\n", "0::", "x:memory", "memory:memory:memory", "0::a/b"})
    expect_memory(memory_of(groups, {{"a/memory.max", "7\n"}}), kUnknownMemory, kUnknownMemory);
  for (const char* limit : {"", "\n", "x", "-5", "99999999999999999999"})
    expect_memory(memory_of("0::/a\n", {{"a/memory.max", limit}}), kUnknownMemory, kUnknownMemory);
}

// a group of version 2 and those above it: the smallest limit counts
TEST(GroupMemory, NestedGroupsOfVersion2AreSeen) {
  const std::map<std::string, std::string> files = {{"user.slice/memory.max", "2000000000\n"},
                                                    {"user.slice/memory.current", "1900000000\n"},
                                                    {"user.slice/job/memory.max", "1000000000\n"},
                                                    {"user.slice/job/memory.current", "300000000\n"}};
  expect_memory(memory_of("0::/user.slice/job\n", files), 1'000'000'000, 100'000'000);
  expect_memory(memory_of("0::/user.slice/job/inner\n", files), 1'000'000'000, 100'000'000);
  expect_memory(memory_of("0::/user.slice\n", files), 2'000'000'000, 100'000'000);
  expect_memory(memory_of("0::/system.slice\n", files), kUnknownMemory, kUnknownMemory);
}

// a container sees its own group at the top, and the path of the host or its own
TEST(GroupMemory, TheGroupOfAContainerIsSeen) {
  const std::map<std::string, std::string> files = {{"memory.max", "500\n"}, {"memory.current", "100\n"}};
  for (const char* groups : {"0::/\n", "0::/docker/0123\n", "0::/../0123\n"})
    expect_memory(memory_of(groups, files), 500, 400);
  const std::map<std::string, std::string> older = {{"memory/memory.limit_in_bytes", "700\n"},
                                                    {"memory/memory.usage_in_bytes", "800\n"}};
  expect_memory(memory_of("5:memory:/docker/0123\n", older), 700, 0);
}

TEST(GroupMemory, GroupsOfVersion1AreSeen) {
  const std::string unlimited = "9223372036854771712\n";
  const std::map<std::string, std::string> files = {{"memory/memory.limit_in_bytes", unlimited},
                                                    {"memory/memory.usage_in_bytes", "0\n"},
                                                    {"memory/a/b/memory.limit_in_bytes", "3000\n"},
                                                    {"memory/a/b/memory.usage_in_bytes", "1000\n"},
                                                    {"cpu/a/memory.limit_in_bytes", "7\n"}};
  for (const char* groups : {"9:name=systemd:/\n4:memory:/a/b\n1:cpu:/a\n0::/\n", "4:cpu,memory,pids:/a/b\n"})
    expect_memory(memory_of(groups, files), 3000, 2000);
  EXPECT_GT(memory_of("4:memory:/\n", files).limit, int64_t{1} << 60);
}

// both versions at once: memory belongs to one of them
TEST(GroupMemory, VersionsMayBeMixed) {
  const std::map<std::string, std::string> files = {{"unified/a/memory.max", "50\n"},
                                                    {"memory/a/memory.limit_in_bytes", "40\n"}};
  // how much is used is unknown
  expect_memory(memory_of("4:memory:/a\n0::/a\n", files), 40, kUnknownMemory);
  expect_memory(memory_of("0::/a\n", files), 50, kUnknownMemory);
}

// pages of files count as used, but are given up when memory is short
TEST(GroupMemory, PagesOfFilesAreNotTaken) {
  expect_memory(memory_of("0::/a\n", {{"a/memory.max", "1000\n"},
                                      {"a/memory.current", "900\n"},
                                      {"a/memory.stat", "anon 100\nactive_file 100\ninactive_file 700\n"}}),
                1000, 800);
  expect_memory(
      memory_of("4:memory:/a\n", {{"memory/a/memory.limit_in_bytes", "1000\n"},
                                  {"memory/a/memory.usage_in_bytes", "900\n"},
                                  {"memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 600\n"}}),
      1000, 700);
}

TEST(AvailableMemory, ThisProcessHasSome) {
  EXPECT_GT(available_memory(), 1'000'000);
  EXPECT_GT(total_memory(), 1'000'000);
  EXPECT_LT(total_memory(), kUnknownMemory);
}

TEST(AvailableMemory, BytesAreShownInUnits) {
  EXPECT_EQ(shown_bytes(22), "22 bytes");
  EXPECT_EQ(shown_bytes(1500), "1.5 kB");
  EXPECT_EQ(shown_bytes(1e6), "1 MB");
  EXPECT_EQ(shown_bytes(9.96e6), "10 MB");
  EXPECT_EQ(shown_bytes(2e10), "20 GB");
  EXPECT_EQ(shown_bytes(3e16), "30000 TB");
}

}  // namespace
}  // namespace fastweights
