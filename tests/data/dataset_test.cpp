#include "fastweights/data.h"

#include "data/data_support.h"

namespace fastweights::data {
namespace {

DataHead head() { return {.name = "set", .channels = {"x", "y"}, .statics = {"age"}, .targets = {"days"}}; }

Series series() {
  return {.id = "s",
          .times = {0, 1.5},
          .values = {1, 2, kMissing, 4},
          .statics = {61},
          .label = "up",
          .targets = {3},
          .step_labels = {"up", ""},
          .where = "f.csv, row 3"};
}

// the error of collect_series() for the series after a change
template <typename Change>
std::string collect_refusal(Change change) {
  Series changed = series();
  change(changed);
  return refusal([&] { collect_series(head(), {series(), changed}); });
}

TEST(DataSet, EveryFlawOfASeriesHasItsSentence) {
  EXPECT_EQ(collect_refusal([](Series&) {}), "");
  EXPECT_EQ(collect_refusal([](Series& s) { s.times = {}; }),
            "f.csv, row 3: expected at least one row, got none");
  EXPECT_EQ(collect_refusal([](Series& s) { s.values.pop_back(); }),
            "f.csv, row 3: expected 4 values for 2 times and 2 channels, got 3");
  EXPECT_EQ(collect_refusal([](Series& s) { s.statics = {}; }),
            "f.csv, row 3: expected 1 static features, got 0");
  EXPECT_EQ(collect_refusal([](Series& s) {
              s.targets = {1, 2};
            }),
            "f.csv, row 3: expected 1 targets, got 2");
  EXPECT_EQ(collect_refusal([](Series& s) { s.step_labels = {"up"}; }),
            "f.csv, row 3: expected 2 step labels, one per row, got 1");
  EXPECT_EQ(collect_refusal([](Series& s) { s.times[1] = kMissing; }),
            "f.csv, row 3: the time of row 2 is not finite");
  EXPECT_EQ(collect_refusal([](Series& s) { s.times[0] = -INFINITY; }),
            "f.csv, row 3: the time of row 1 is not finite");
  EXPECT_EQ(collect_refusal([](Series& s) { s.times[1] = 0; }),
            "f.csv, row 3: times must increase: row 2 has 0 after 0");
  EXPECT_EQ(collect_refusal([](Series& s) { s.times[1] = -2.25; }),
            "f.csv, row 3: times must increase: row 2 has -2.25 after 0");
  EXPECT_EQ(collect_refusal([](Series& s) { s.values[3] = INFINITY; }),
            "f.csv, row 3: channel 'y' is infinite at row 2; leave missing values empty");
  EXPECT_EQ(collect_refusal([](Series& s) { s.statics[0] = -INFINITY; }),
            "f.csv, row 3: static feature 'age' is infinite");
  EXPECT_EQ(collect_refusal([](Series& s) { s.targets[0] = INFINITY; }),
            "f.csv, row 3: target 'days' is infinite");
}

TEST(DataSet, WithoutAPlaceTheMessageNamesTheSeries) {
  Series s = series();
  s.where = "";
  s.times = {};
  EXPECT_EQ(refusal([&] { collect_series(head(), {s}); }), "series 's': expected at least one row, got none");
}

TEST(DataSet, AClassThatTheSourceDoesNotNameIsRefused) {
  DataHead named = head();
  named.classes = {"down", "upp"};
  EXPECT_EQ(refusal([&] { collect_series(named, {series()}); }),
            "f.csv, row 3: unknown class 'up'; the nearest is 'upp'");
}

std::vector<std::string> classes_of(const std::vector<std::string>& labels) {
  std::vector<Series> all;
  for (const std::string& label : labels) all.push_back({.id = label, .times = {0}, .label = label});
  return collect_series({.name = "set"}, all).head.classes;
}

using Texts = std::vector<std::string>;

TEST(DataSet, ClassesAreInOrderOfNumbersOrOfTheAlphabet) {
  EXPECT_EQ(classes_of({"10", "9", "", "-1.5", "10"}), (Texts{"-1.5", "9", "10"}));
  EXPECT_EQ(classes_of({"10", "9", "b", "a"}), (Texts{"10", "9", "a", "b"}));
  // these are words to a person, and as numbers they have no order
  EXPECT_EQ(classes_of({"10", "2", "nan"}), (Texts{"10", "2", "nan"}));
  EXPECT_EQ(classes_of({"10", "2", "-inf"}), (Texts{"-inf", "10", "2"}));
  // the source's own order stays
  const DataSet data = collect_series({.name = "set", .classes = {"z", "b", "a"}},
                                      {{.times = {0}, .label = "a"}, {.times = {0}, .label = "z"}});
  EXPECT_EQ(data.head.classes, (Texts{"z", "b", "a"}));
  EXPECT_EQ(data.labels, (std::vector<int64_t>{2, 0}));
}

TEST(DataSet, SeriesOfAnyLengthLieOneAfterAnother) {
  Series longer = series(), unlabelled = series();
  longer.times = {-1, 0, 7};
  longer.values = {1, 2, 3, 4, 5, 6};
  longer.step_labels = {"a", "", "up"};
  longer.label = "";
  unlabelled.step_labels = {};
  const DataSet data = collect_series(head(), {series(), longer, unlabelled});
  EXPECT_EQ(data.samples(), 3);
  EXPECT_EQ(data.rows(), 7);
  EXPECT_EQ(data.offsets, (std::vector<int64_t>{0, 2, 5, 7}));
  EXPECT_EQ(data.length(1), 3);
  EXPECT_EQ(data.times, (std::vector<double>{0, 1.5, -1, 0, 7, 0, 1.5}));
  expect_equal(data.values, {1, 2, kMissing, 4, 1, 2, 3, 4, 5, 6, 1, 2, kMissing, 4}, "value");
  EXPECT_EQ(data.head.classes, (Texts{"a", "up"}));
  EXPECT_EQ(data.labels, (std::vector<int64_t>{1, -1, 1}));
  EXPECT_EQ(data.step_labels, (std::vector<int64_t>{1, -1, 0, -1, 1, -1, -1}));
}

TEST(DataSet, LabelsThatNobodyHasAreNone) {
  const DataSet data = collect_series({.name = "set"}, {{.times = {0}}, {.times = {1}}});
  EXPECT_TRUE(data.labels.empty() && data.step_labels.empty() && data.head.classes.empty());
  EXPECT_EQ(collect_series({.name = "set"}, {}).samples(), 0);
}

DataSet three() {
  Series a = series(), b = series(), c = series();
  a.id = "a";
  b.id = "b";
  b.group = "g";
  b.part = Part::Test;
  b.times = {4};
  b.values = {8, kMissing};
  b.label = "down";
  b.step_labels = {"down"};
  b.targets = {kMissing};
  c.id = "c";
  c.statics = {kMissing};
  return collect_series(head(), {a, b, c});
}

TEST(DataSet, ASubsetIsWhatCollectMakesOfItsSeries) {
  const DataSet data = three(), part = select_series(data, {2, 1});
  EXPECT_EQ(part.ids, (Texts{"c", "b"}));
  EXPECT_EQ(part.groups, (Texts{"", "g"}));
  EXPECT_EQ(part.parts, (std::vector{Part::Any, Part::Test}));
  EXPECT_EQ(part.offsets, (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(part.times, (std::vector<double>{0, 1.5, 4}));
  expect_equal(part.values, {1, 2, kMissing, 4, 8, kMissing}, "value");
  expect_equal(part.statics, {kMissing, 61}, "static feature");
  expect_equal(part.targets, {3, kMissing}, "target");
  EXPECT_EQ(part.labels, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(part.step_labels, (std::vector<int64_t>{1, -1, 0}));
  EXPECT_EQ(part.head.classes, data.head.classes);
  expect_same(select_series(data, {0, 1, 2}), data);
  EXPECT_EQ(select_series(data, {}).samples(), 0);
}

TEST(DataSet, ASampleThatIsNotThereIsRefused) {
  const auto message_of = [](int64_t sample) {
    try {
      select_series(three(), {sample});
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message_of(3), "[select_series] no sample 3 in a set of 3");
  EXPECT_EQ(message_of(-1), "[select_series] no sample -1 in a set of 3");
}

TEST(DataSet, HalvesJoinedAreTheWhole) {
  const DataSet data = three();
  expect_same(join_data(select_series(data, {0}), select_series(data, {1, 2})), data);
}

TEST(DataSet, SetsThatDifferAreNotJoined) {
  const DataSet data = three();
  const auto refusal_after = [&](auto change) {
    DataSet other = three();
    other.head.name = "other";
    change(other);
    return refusal([&] { join_data(data, other); });
  };
  EXPECT_EQ(refusal_after([](DataSet&) {}), "");
  EXPECT_EQ(refusal_after([](DataSet& d) { d.head.channels[0] = "z"; }),
            "'set' and 'other' differ in their channels");
  EXPECT_EQ(refusal_after([](DataSet& d) { d.head.statics[0] = "z"; }),
            "'set' and 'other' differ in their static features");
  EXPECT_EQ(refusal_after([](DataSet& d) { d.head.targets[0] = "z"; }),
            "'set' and 'other' differ in their targets");
  EXPECT_EQ(refusal_after([](DataSet& d) { d.head.classes[0] = "z"; }),
            "'set' and 'other' differ in their classes");
  EXPECT_EQ(refusal_after([](DataSet& d) { d.labels.clear(); }), "only one of 'set' and 'other' has labels");
  EXPECT_EQ(refusal_after([](DataSet& d) { d.step_labels.clear(); }),
            "only one of 'set' and 'other' has labels");
}

}  // namespace
}  // namespace fastweights::data
