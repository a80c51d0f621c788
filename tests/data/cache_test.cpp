#include "data/cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>

#include "data/scratch_folder.h"
#include "support/support.h"

namespace fastweights::data {
namespace {

using testing::error_message;
using testing::ScratchFolder;

// every member holds something, and no two the same
DataSet sample_set() {
  DataHead head = {
      .name = "name",
      .origin = "origin",
      .channels = {"a", "", "\xe9 not UTF-8"},
      .statics = {"s"},
      .targets = {"t", "u"},
      .classes = {"no", "yes"},
      .time_unit = "hour",
      .time_zero = "2020-01-01",
      .date_form = "2020-01-02",
      .source = {.id = "i", .time = "t", .label = "l", .group = "p", .separator = '\t', .decimal = ','},
      .channel_texts = {{"a", {"", "u"}}, {"b", {}}},
      .static_texts = {{"s", {"1", "2", "3"}}},
      .unused = {"k"},
      .skipped = {"file: reason"}};
  const Series first = {.id = "1",
                        .group = "g",
                        .part = Part::Test,
                        .times = {0.1, 2},
                        .values = {1, NAN, 3, 4, 5, -0.0},
                        .statics = {NAN},
                        .label = "yes",
                        .targets = {7, NAN},
                        .step_labels = {"", "no"},
                        .unused = {"p", ""},
                        .dates = {"", "2020-01-03"}};
  Series second = first;
  second.id = "";
  second.part = Part::Train;
  second.times = {5, 1e300};
  return collect_series(head, {first, second});
}

// NaN is the same as NaN, and -0 is not 0
bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

void expect_equal_sets(const DataSet& a, const DataSet& b) {
  EXPECT_EQ(a.head.name, b.head.name);
  EXPECT_EQ(a.head.origin, b.head.origin);
  EXPECT_EQ(a.head.channels, b.head.channels);
  EXPECT_EQ(a.head.statics, b.head.statics);
  EXPECT_EQ(a.head.targets, b.head.targets);
  EXPECT_EQ(a.head.classes, b.head.classes);
  EXPECT_EQ(a.head.time_unit, b.head.time_unit);
  EXPECT_EQ(a.head.time_zero, b.head.time_zero);
  EXPECT_EQ(a.head.date_form, b.head.date_form);
  EXPECT_EQ(a.head.source.id, b.head.source.id);
  EXPECT_EQ(a.head.source.time, b.head.source.time);
  EXPECT_EQ(a.head.source.label, b.head.source.label);
  EXPECT_EQ(a.head.source.group, b.head.source.group);
  EXPECT_EQ(a.head.source.separator, b.head.source.separator);
  EXPECT_EQ(a.head.source.decimal, b.head.source.decimal);
  for (const auto texts : {&DataHead::channel_texts, &DataHead::static_texts}) {
    ASSERT_EQ((a.head.*texts).size(), (b.head.*texts).size());
    for (size_t i = 0; i < (a.head.*texts).size(); ++i) {
      EXPECT_EQ((a.head.*texts)[i].column, (b.head.*texts)[i].column);
      EXPECT_EQ((a.head.*texts)[i].values, (b.head.*texts)[i].values);
    }
  }
  EXPECT_EQ(a.head.unused, b.head.unused);
  EXPECT_EQ(a.unused, b.unused);
  EXPECT_EQ(a.dates, b.dates);
  EXPECT_EQ(a.head.skipped, b.head.skipped);
  EXPECT_EQ(a.head.notes, b.head.notes);
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.groups, b.groups);
  EXPECT_EQ(a.parts, b.parts);
  EXPECT_EQ(a.offsets, b.offsets);
  EXPECT_TRUE(same(a.times, b.times));
  EXPECT_TRUE(same(a.values, b.values));
  EXPECT_TRUE(same(a.statics, b.statics));
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_TRUE(same(a.targets, b.targets));
  EXPECT_EQ(a.step_labels, b.step_labels);
}

class Cache : public ::testing::Test {
 protected:
  // reads by way of the cache, and counts how often the files themselves were read
  DataSet read(const std::string& path, const ReadOptions& options = {}) {
    return read_cached(path, options, folder_.path("cache"), [&] {
      ++reads_;
      return sample_set();
    });
  }
  ScratchFolder folder_;
  int reads_ = 0;
};

TEST_F(Cache, TheSecondTimeNothingIsRead) {
  const std::string file = folder_.write("data.csv", "a,b\n");
  expect_equal_sets(read(file), sample_set());
  EXPECT_EQ(reads_, 1);
  expect_equal_sets(read(file), sample_set());
  EXPECT_EQ(reads_, 1);
}

TEST_F(Cache, ASetWithoutAnythingOptionalComesBack) {
  const std::string file = folder_.path("bare.safetensors");
  const DataSet bare = collect_series({.channels = {"x"}}, {{.id = "1", .times = {0}, .values = {1}}});
  save_prepared(file, bare, "key");
  expect_equal_sets(load_prepared(file, "key").value(), bare);
  EXPECT_FALSE(load_prepared(file, "another").has_value());
}

TEST_F(Cache, AnotherContentOfAFileIsRead) {
  const std::string file = folder_.write("data.csv", "a,b\n");
  read(file);
  folder_.write("data.csv", "a,c\n");
  read(file);
  EXPECT_EQ(reads_, 2);
  // and the old one is replaced, not kept beside it
  const std::filesystem::directory_iterator files(folder_.path("cache"));
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(Cache, ChangesInAFolderAreSeen) {
  folder_.write("set/a/1.psv", "x");
  const std::string folder = folder_.path("set");
  read(folder);
  read(folder);
  EXPECT_EQ(reads_, 1);
  folder_.write("set/a/2.psv", "x");
  read(folder);
  EXPECT_EQ(reads_, 2) << "a new file";
  folder_.write("set/a/2.psv", "xy");
  read(folder);
  EXPECT_EQ(reads_, 3) << "another size";
  std::filesystem::last_write_time(
      folder + "/a/2.psv", std::filesystem::last_write_time(folder + "/a/2.psv") + std::chrono::seconds(5));
  read(folder);
  EXPECT_EQ(reads_, 4) << "another time";
  std::filesystem::rename(folder + "/a/2.psv", folder + "/a/3.psv");
  read(folder);
  EXPECT_EQ(reads_, 5) << "another name";
  std::filesystem::remove(folder + "/a/3.psv");
  read(folder);
  EXPECT_EQ(reads_, 6) << "a file less";
}

TEST_F(Cache, AnEditThatKeepsSizeAndTimeIsSeen) {
  const std::string file = folder_.write("set/a/1.psv", "x"), folder = folder_.path("set");
  read(folder);
  const auto time = std::filesystem::last_write_time(file);
  folder_.write("set/a/1.psv", "y");
  std::filesystem::last_write_time(file, time);
  read(folder);
  EXPECT_EQ(reads_, 2);
  // another file of the same name, size and time
  folder_.write("other", "z");
  std::filesystem::last_write_time(folder_.path("other"), time);
  std::filesystem::rename(folder_.path("other"), file);
  read(folder);
  EXPECT_EQ(reads_, 3);
}

TEST_F(Cache, ACacheThatCannotBeWrittenIsANote) {
  const std::string file = folder_.write("data.csv", "a,b\n");
  folder_.write("cache", "a file where the folder should be");
  const DataSet data = read(file);
  EXPECT_EQ(data.ids, sample_set().ids);
  ASSERT_FALSE(data.head.notes.empty());
  EXPECT_EQ(data.head.notes.back().rfind("not cached: ", 0), 0u) << data.head.notes.back();
}

TEST_F(Cache, AFolderIsTheSameHoweverItIsWritten) {
  folder_.write("set/a/1.psv", "x");
  read(folder_.path("set"));
  read(folder_.path("set/"));
  read(folder_.path("set/../set"));
  EXPECT_EQ(reads_, 1);
}

TEST_F(Cache, EverySettingThatChangesTheResultCounts) {
  const std::string file = folder_.write("data.csv", "a,b\n");
  read(file);
  const std::vector<ReadOptions> others = {
      {.format = "csv"},
      {.skip_bad = true},
      {.columns = {.id = "x"}},
      {.columns = {.time = "x"}},
      {.columns = {.label = "x"}},
      {.columns = {.group = "x"}},
      {.columns = {.statics = {"x"}}},
      {.columns = {.targets = {"x"}}},
      {.columns = {.channels = {"x"}}},
      {.columns = {.channels = {"x,y"}}},
      {.columns = {.channels = {"x", "y"}}},
      {.columns = {.ignored = {"x"}}},
      {.columns = {.texts = {"x"}}},
      {.columns = {.ignored = {"x"}, .channel_columns = LabelColumns::Optional}},
      {.table = {.missing = {"x"}}},
      {.table = {.decimal = DecimalMark::Comma}},
      {.table = {.order = UnsortedRows::Sort}},
      {.table = {.duplicates = Duplicates::Mean}},
      {.time_unit = "x"},
      {.speech = SpeechForm::Wave}};
  for (const ReadOptions& options : others) read(file, options);
  EXPECT_EQ(reads_, 1 + static_cast<int>(others.size()));
  read(file, {.progress = [](int64_t, int64_t) {}});
  EXPECT_EQ(reads_, 1 + static_cast<int>(others.size())) << "progress changes nothing";
}

TEST_F(Cache, DamageIsFoundAndRepaired) {
  const std::string file = folder_.write("data.csv", "a,b\n");
  read(file);
  const std::string cache = cache_file(file, {}, folder_.path("cache"));
  std::ifstream in(cache, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  ASSERT_GT(good.size(), 100u);
  int expected = 1;
  const auto expect_repair = [&](const std::string& bytes) {
    std::ofstream(cache, std::ios::binary) << bytes;
    expect_equal_sets(read(file), sample_set());
    EXPECT_EQ(reads_, ++expected);
    read(file);
    EXPECT_EQ(reads_, expected);
  };
  expect_repair("");
  expect_repair(good.substr(0, good.size() / 2));
  // one bit, from the end of the file, where numbers and texts are
  for (const size_t back : {1u, 40u, 77u, 120u}) {
    std::string bad = good;
    bad[bad.size() - back] = static_cast<char>(bad[bad.size() - back] ^ 4);
    expect_repair(bad);
  }
}

TEST_F(Cache, WhatIsNoFileIsReadEachTime) {
  read("spirals:samples=3");
  read("spirals:samples=3");
  EXPECT_EQ(reads_, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("cache")));
}

TEST_F(Cache, AnErrorOfTheReaderLeavesNothingBehind) {
  const std::string file = folder_.write("data.csv", "a,b\n");
  EXPECT_EQ(error_message<std::runtime_error>([&] {
              read_cached(file, {}, folder_.path("cache"),
                          []() -> DataSet { throw std::runtime_error("broken"); });
            }),
            "broken");
  read(file);
  EXPECT_EQ(reads_, 1);
}

}  // namespace
}  // namespace fastweights::data
