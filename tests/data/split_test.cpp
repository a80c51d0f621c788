#include "fastweights/data.h"

#include <algorithm>
#include <map>
#include <set>

#include "data/data_support.h"
#include "support/support.h"

namespace fastweights::data {
namespace {

using testing::error_message;
using Samples = std::vector<int64_t>;

// a series of one row per label, with the group of the same index, if any
DataSet set_of(const std::vector<std::string>& labels, const std::vector<std::string>& groups = {}) {
  std::vector<Series> all;
  for (size_t b = 0; b < labels.size(); ++b)
    all.push_back({.id = "s" + std::to_string(b),
                   .group = groups.empty() ? "" : groups[b],
                   .times = {0},
                   .values = {1},
                   .label = labels[b]});
  return collect_series({.name = "set", .channels = {"x"}}, all);
}

// the given numbers of "a", of "b", ..., mixed
DataSet classes_of_sizes(const std::vector<int64_t>& sizes) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < *std::max_element(sizes.begin(), sizes.end()); ++i) {
    for (size_t k = 0; k < sizes.size(); ++k) {
      if (i < sizes[k]) labels.push_back(std::string(1, static_cast<char>('a' + k)));
    }
  }
  return set_of(labels);
}

DataSet with_parts(DataSet data, const std::vector<Part>& parts) {
  data.parts = parts;
  return data;
}

void expect_complete(const Split& s, int64_t samples) {
  std::multiset<int64_t> all;
  for (const Samples* part : {&s.train, &s.validation, &s.test}) {
    EXPECT_TRUE(std::is_sorted(part->begin(), part->end()));
    all.insert(part->begin(), part->end());
  }
  Samples expected(static_cast<size_t>(samples));
  for (size_t b = 0; b < expected.size(); ++b) expected[b] = static_cast<int64_t>(b);
  EXPECT_EQ(Samples(all.begin(), all.end()), expected);
}

std::map<int64_t, int64_t> class_sizes(const DataSet& data, const Samples& samples) {
  std::map<int64_t, int64_t> sizes;
  for (const int64_t b : samples) ++sizes[data.labels[static_cast<size_t>(b)]];
  return sizes;
}

bool equal(const Split& a, const Split& b) {
  return a.train == b.train && a.validation == b.validation && a.test == b.test;
}

TEST(Split, RandomHasTheSharesAndLosesNothing) {
  const DataSet data = set_of(std::vector<std::string>(101, ""));
  const Split s = split_data(data, {.validation = 0.2, .test = 0.1});
  EXPECT_EQ(s.rule, SplitRule::Random);
  expect_complete(s, 101);
  EXPECT_EQ(s.test.size(), 10u);
  EXPECT_EQ(s.validation.size(), 20u);
}

TEST(Split, TheSeedChoosesTheSplit) {
  const DataSet data = classes_of_sizes({31, 17});
  for (const SplitRule rule : {SplitRule::Random, SplitRule::Stratified, SplitRule::Folds}) {
    const Split s = split_data(data, {.rule = rule, .seed = 4});
    EXPECT_TRUE(equal(s, split_data(data, {.rule = rule, .seed = 4})));
    EXPECT_FALSE(equal(s, split_data(data, {.rule = rule, .seed = 5})));
  }
}

TEST(Split, StratifiedKeepsTheSharesOfClassesWithinOneSample) {
  const std::vector<int64_t> sizes = {53, 20, 7, 31, 3};
  const DataSet data = classes_of_sizes(sizes);
  for (int64_t seed = 0; seed < 20; ++seed) {
    const Split s = split_data(data, {.validation = 0.15, .test = 0.25, .seed = seed});
    EXPECT_EQ(s.rule, SplitRule::Stratified);
    expect_complete(s, data.samples());
    auto validation = class_sizes(data, s.validation), test = class_sizes(data, s.test);
    for (int64_t k = 0; k < 5; ++k) {
      const auto size = static_cast<double>(sizes[static_cast<size_t>(k)]);
      EXPECT_LE(std::abs(static_cast<double>(validation[k]) - 0.15 * size), 1) << k;
      EXPECT_LE(std::abs(static_cast<double>(test[k]) - 0.25 * size), 1) << k;
    }
  }
}

TEST(Split, AClassOfTwoIsTrainedOn) {
  // many of them, and large shares
  const DataSet data = classes_of_sizes({2, 2, 2, 2, 40, 2});
  for (int64_t seed = 0; seed < 20; ++seed) {
    const Split s = split_data(data, {.validation = 0.4, .test = 0.4, .seed = seed});
    expect_complete(s, data.samples());
    EXPECT_EQ(class_sizes(data, s.train).size(), 6u);
  }
}

TEST(Split, NoGroupIsOnTwoSides) {
  std::vector<std::string> labels, groups;
  for (int64_t b = 0; b < 97; ++b) {
    labels.push_back(b % 3 == 0 ? "a" : "b");
    groups.push_back(b % 10 == 9 ? "" : "g" + std::to_string(b * b % 23));
  }
  const DataSet data = set_of(labels, groups);
  for (const SplitRule rule : {SplitRule::Automatic, SplitRule::Grouped, SplitRule::Folds}) {
    const Split s = split_data(data, {.rule = rule, .validation = 0.2, .test = 0.2});
    EXPECT_EQ(s.rule, rule == SplitRule::Automatic ? SplitRule::Grouped : rule);
    expect_complete(s, 97);
    std::map<std::string, std::set<const Samples*>> sides;
    for (const Samples* part : {&s.train, &s.validation, &s.test}) {
      EXPECT_GE(part->size(), 10u);
      for (const int64_t b : *part) sides[groups[static_cast<size_t>(b)]].insert(part);
    }
    sides.erase("");
    for (const auto& [group, where] : sides) EXPECT_EQ(where.size(), 1u) << group;
  }
}

TEST(Split, TheRuleIsTheOneThatTheDataAskFor) {
  const std::vector<Part> parts = {Part::Train, Part::Any, Part::Test};
  EXPECT_EQ(split_data(with_parts(set_of({"a", "b", "a"}, {"g", "g", "h"}), parts)).rule, SplitRule::Given);
  EXPECT_EQ(split_data(set_of({"a", "b", "a"}, {"g", "g", "h"})).rule, SplitRule::Grouped);
  // groups of one are none
  EXPECT_EQ(split_data(set_of({"a", "b", "a"}, {"g", "f", "h"})).rule, SplitRule::Stratified);
  EXPECT_EQ(split_data(set_of({"", "", ""})).rule, SplitRule::Random);
}

TEST(Split, FoldsTestEverySeriesOnce) {
  const DataSet data = classes_of_sizes({23, 11, 2});
  std::multiset<int64_t> tested;
  for (int64_t fold = 0; fold < 4; ++fold) {
    const Split s = split_data(data, {.rule = SplitRule::Folds, .validation = 0.2, .folds = 4, .fold = fold});
    expect_complete(s, 36);
    EXPECT_NEAR(static_cast<double>(s.test.size()), 9, 1);
    EXPECT_FALSE(s.validation.empty());
    tested.insert(s.test.begin(), s.test.end());
  }
  EXPECT_EQ(tested.size(), 36u);
  EXPECT_EQ(std::set<int64_t>(tested.begin(), tested.end()).size(), 36u);
}

TEST(Split, FoldsThatAreNotThereAreRefused) {
  const DataSet data = classes_of_sizes({5, 5});
  EXPECT_EQ(error_message([&] { split_data(data, {.rule = SplitRule::Folds, .folds = 1}); }),
            "[split] expected at least 2 folds, got 1");
  EXPECT_EQ(error_message([&] { split_data(data, {.rule = SplitRule::Folds, .folds = 3, .fold = 3}); }),
            "[split] fold must be in 0 .. 2, got 3");
}

TEST(Split, GivenIsAsTheSourceSays) {
  const std::vector<Part> parts = {Part::Test, Part::Train, Part::Validation, Part::Any, Part::Test};
  const DataSet data = with_parts(set_of({"a", "a", "b", "b", "a"}), parts);
  const Split s = split_data(data);
  EXPECT_EQ(s.rule, SplitRule::Given);
  EXPECT_EQ(s.test, (Samples{0, 4}));
  EXPECT_EQ(s.validation, (Samples{2}));
  EXPECT_EQ(s.train, (Samples{1, 3}));
  const std::string refused = error_message([] { split_data(set_of({"a"}), {.rule = SplitRule::Given}); });
  EXPECT_EQ(refused, "[split] 'set' does not assign series to parts; choose another split");
}

TEST(Split, ValidationComesOutOfTheGivenTrainingPart) {
  DataSet data = classes_of_sizes({40, 20});
  for (size_t b = 0; b < 60; ++b) data.parts[b] = b % 3 == 0 ? Part::Test : Part::Train;
  const Split s = split_data(data, {.validation = 0.2});
  expect_complete(s, 60);
  for (const int64_t b : s.test) EXPECT_EQ(b % 3, 0);
  EXPECT_EQ(s.test.size(), 20u);
  // stratified too
  std::vector<int64_t> training(2, 0);
  for (const Samples* part : {&s.train, &s.validation}) {
    for (const int64_t b : *part) ++training[static_cast<size_t>(data.labels[static_cast<size_t>(b)])];
  }
  for (const auto& [label, count] : class_sizes(data, s.validation))
    EXPECT_LE(std::abs(static_cast<double>(count - training[static_cast<size_t>(label)] / 5)), 1);
  EXPECT_EQ(s.validation.size(), 8u);
}

TEST(Split, SharesThatLeaveNothingAreRefused) {
  const std::string sentence =
      "[split] the fractions for validation and test must not be negative and must leave series to train on, "
      "got ";
  const auto refused = [](double validation, double test) {
    return error_message([&] { split_data(set_of({"a"}), {.validation = validation, .test = test}); });
  };
  EXPECT_EQ(refused(0.5, 0.5), sentence + "0.5 and 0.5");
  EXPECT_EQ(refused(-0.5, 0.25), sentence + "-0.5 and 0.25");
  EXPECT_EQ(refused(kMissing, 0.25), sentence + "nan and 0.25");
}

class SplitFile : public ::testing::Test {
 protected:
  Split split_by(const std::string& json) {
    return split_data(data_, {.indices = folder_.file("split.json", json)});
  }
  std::string refused(const std::string& json) {
    std::string text = error_message([&] { split_by(json); });
    const std::string path = folder_.path("split.json");
    const size_t at = text.find(path);
    return at == std::string::npos ? text : text.replace(at, path.size(), "FILE");
  }

  TestFolder folder_;
  DataSet data_ = set_of({"a", "b", "a", "b", "a"});
};

TEST_F(SplitFile, NamesSeriesByNumberOrId) {
  const Split s = split_by(R"({"train": [4, "s0"], "validation": ["s3"], "test": [1, 2]})");
  EXPECT_EQ(s.rule, SplitRule::Indices);
  EXPECT_EQ(s.train, (Samples{4, 0}));
  EXPECT_EQ(s.validation, (Samples{3}));
  EXPECT_EQ(s.test, (Samples{1, 2}));
}

TEST_F(SplitFile, WithoutTrainTheOthersAreTrainedOn) {
  const Split s = split_by(R"({"test": ["s1", 3]})");
  EXPECT_EQ(s.train, (Samples{0, 2, 4}));
  EXPECT_TRUE(s.validation.empty());
}

// the paper's, of the 259 worms of both files
TEST_F(SplitFile, TheOneOfEigenWormsIsShipped) {
  const DataSet worms = set_of(std::vector<std::string>(259, "a"));
  const Split s = split_data(worms, {.indices = FASTWEIGHTS_SPLITS "/eigenworms.json"});
  EXPECT_EQ(s.train.size(), 181u);
  EXPECT_EQ(s.validation.size(), 39u);
  EXPECT_EQ(s.test.size(), 39u);
  EXPECT_EQ(s.test.front(), 212);
  EXPECT_EQ(s.test.back(), 183);
  EXPECT_EQ(s.validation.front(), 95);
  EXPECT_EQ(s.validation.back(), 257);
}

TEST_F(SplitFile, WhatIsNotThereIsRefused) {
  EXPECT_EQ(refused(R"({"test": [5]})"), "[split] FILE, test: no series 5 in a set of 5");
  EXPECT_EQ(refused(R"({"test": [-1]})"), "[split] FILE, test: no series -1 in a set of 5");
  EXPECT_EQ(refused(R"({"test": ["s9"]})"), "[split] FILE, test: no series \"s9\" in a set of 5");
  EXPECT_EQ(refused(R"({"test": [1.5]})"), "[split] FILE, test: no series 1.5 in a set of 5");
  EXPECT_EQ(refused(R"({"test": 1})"), "[split] FILE, test must be a list, got 1");
  EXPECT_EQ(refused("[1]"), "[split] FILE must contain an object { ... }");
  EXPECT_EQ(refusal([&] { split_data(data_, {.indices = "none.json"}); }), "none.json: no such file");
}

TEST_F(SplitFile, WhatNobodySaysIsRefused) {
  EXPECT_EQ(
      error_message([&] { split_data(data_, {.rule = SplitRule::Indices}); }),
      "[split] the rule indices needs a file: set split.indices to one with the indices or ids of each part");
  EXPECT_EQ(
      error_message([&] { split_data(data_, {.rule = SplitRule::Grouped}); }),
      "[split] grouped: no series of 'set' has a group; for a table, name the column with --group-column");
  EXPECT_EQ(error_message([&] { split_data(data_, {.rule = SplitRule::Folds, .folds = 6}); }),
            "[split] 'set' has too few series for 6 folds");
}

TEST_F(SplitFile, ASeriesOnTwoSidesIsRefused) {
  EXPECT_EQ(refused(R"({"test": [1, "s1"]})"), "[split] FILE: series 1 is listed twice");
  EXPECT_EQ(refused(R"({"test": [2], "train": [0, 2]})"), "[split] FILE: series 2 is listed twice");
}

TEST_F(SplitFile, AMisspeltPartIsRefusedAndNotTrainedOn) {
  EXPECT_EQ(refused(R"({"valid": [1]})"), "[split] FILE: unknown part 'valid'; the nearest is 'validation'");
  EXPECT_EQ(refused(R"({"tests": [1]})"), "[split] FILE: unknown part 'tests'; the nearest is 'test'");
}

}  // namespace
}  // namespace fastweights::data
