#include "fastweights/data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/nearest.h"
#include "base/random.h"
#include "data/files.h"
#include "data/time_split.h"

namespace fastweights {
namespace {

// series that stay together: a group, or a single series
struct Unit {
  std::vector<int64_t> samples;
  int64_t label = -1;  // of the first one
};

void shuffle(std::vector<Unit>& units, Random& random) {
  for (size_t i = units.size(); i > 1; --i) std::swap(units[i - 1], units[random.next() % i]);
}

std::vector<Unit> units_of(const DataSet& data, const std::vector<int64_t>& samples, SplitRule rule) {
  std::vector<Unit> units;
  std::map<std::string, size_t> positions;
  for (const int64_t sample : samples) {
    const auto b = static_cast<size_t>(sample);
    const int64_t label = data.labels.empty() ? -1 : data.labels[b];
    const std::string& group = data.groups[b];
    if (rule == SplitRule::Grouped && !group.empty()) {
      const auto [position, fresh] = positions.emplace(group, units.size());
      if (fresh) units.push_back({{}, label});
      units[position->second].samples.push_back(sample);
    } else {
      units.push_back({{sample}, label});
    }
  }
  return units;
}

// parts with these fractions of the samples, and the rest as the last part; stratified
std::vector<std::vector<int64_t>> divide(const DataSet& data, const std::vector<int64_t>& samples,
                                         SplitRule rule, const std::vector<double>& fractions,
                                         Random& random) {
  std::vector<Unit> units = units_of(data, samples, rule);
  shuffle(units, random);
  std::map<int64_t, std::vector<Unit>> strata;
  for (Unit& unit : units) strata[rule == SplitRule::Random ? -1 : unit.label].push_back(std::move(unit));
  std::vector<std::vector<int64_t>> parts(fractions.size() + 1);
  std::vector<double> target(fractions.size(), 0.0);
  for (const auto& [label, members] : strata) {
    double size = 0;
    for (const Unit& unit : members) size += static_cast<double>(unit.samples.size());
    size_t next = 0;
    for (size_t p = 0; p < fractions.size(); ++p) {
      // rounding errors of one stratum are compensated in the next
      target[p] += fractions[p] * size;
      while (next < members.size() && static_cast<double>(parts[p].size()) + 0.5 < target[p]) {
        // a small class keeps one for the last part
        if (next + 1 == members.size() && members.size() > 1) break;
        const std::vector<int64_t>& unit = members[next++].samples;
        parts[p].insert(parts[p].end(), unit.begin(), unit.end());
      }
    }
    for (; next < members.size(); ++next) {
      const std::vector<int64_t>& unit = members[next].samples;
      parts.back().insert(parts.back().end(), unit.begin(), unit.end());
    }
  }
  for (std::vector<int64_t>& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

// parts of nearly equal size, also within each stratum
std::vector<std::vector<int64_t>> deal(const DataSet& data, const std::vector<int64_t>& samples,
                                       SplitRule rule, int64_t count, Random& random) {
  std::vector<Unit> units = units_of(data, samples, rule);
  shuffle(units, random);
  std::stable_sort(units.begin(), units.end(),
                   [](const Unit& a, const Unit& b) { return a.label < b.label; });
  std::vector<std::vector<int64_t>> parts(static_cast<size_t>(count));
  for (const Unit& unit : units) {
    // the first of the smallest: single series are dealt in turn
    std::vector<int64_t>& to = *std::min_element(
        parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
    to.insert(to.end(), unit.samples.begin(), unit.samples.end());
  }
  return parts;
}

std::vector<int64_t> all_samples(const DataSet& data) {
  std::vector<int64_t> samples(static_cast<size_t>(data.samples()));
  for (size_t b = 0; b < samples.size(); ++b) samples[b] = static_cast<int64_t>(b);
  return samples;
}

bool assigns_parts(const DataSet& data) {
  return std::any_of(data.parts.begin(), data.parts.end(), [](Part part) { return part != Part::Any; });
}

bool shares_groups(const DataSet& data) {
  std::set<std::string> seen;
  return std::any_of(data.groups.begin(), data.groups.end(),
                     [&](const std::string& group) { return !group.empty() && !seen.insert(group).second; });
}

SplitRule strata_rule(const DataSet& data) {
  if (shares_groups(data)) return SplitRule::Grouped;
  return data.labels.empty() ? SplitRule::Random : SplitRule::Stratified;
}

Split given_split(const DataSet& data, const SplitConfig& config, Random& random) {
  FW_CHECK(assigns_parts(data), "[split] '", data.head.name,
           "' does not assign series to parts; choose another split");
  Split result;
  for (const int64_t b : all_samples(data)) {
    const Part part = data.parts[static_cast<size_t>(b)];
    (part == Part::Test         ? result.test
     : part == Part::Validation ? result.validation
                                : result.train)
        .push_back(b);
  }
  if (result.validation.empty() && !result.train.empty()) {
    auto parts = divide(data, result.train, strata_rule(data), {config.validation}, random);
    result.validation = parts[0];
    result.train = parts[1];
  }
  return result;
}

void check_fold(const SplitConfig& config) {
  FW_CHECK(config.folds >= 2, "[split] expected at least 2 folds, got ", config.folds);
  FW_CHECK(config.fold >= 0 && config.fold < config.folds, "[split] fold must be in 0 .. ", config.folds - 1,
           ", got ", config.fold);
}

Split fold_split(const DataSet& data, const SplitConfig& config, Random& random) {
  const auto parts = deal(data, all_samples(data), strata_rule(data), config.folds, random);
  for (const std::vector<int64_t>& part : parts)
    FW_CHECK(!part.empty(), "[split] '", data.head.name, "' has too few ",
             shares_groups(data) ? "groups" : "series", " for ", config.folds, " folds");
  Split result;
  std::vector<int64_t> rest;
  for (size_t p = 0; p < parts.size(); ++p) {
    std::vector<int64_t>& to = static_cast<int64_t>(p) == config.fold ? result.test : rest;
    to.insert(to.end(), parts[p].begin(), parts[p].end());
  }
  std::sort(rest.begin(), rest.end());
  std::sort(result.test.begin(), result.test.end());
  auto divided = divide(data, rest, strata_rule(data), {config.validation}, random);
  result.validation = divided[0];
  result.train = divided[1];
  return result;
}

std::vector<int64_t> listed(const DataSet& data, const Json& list, const std::string& where) {
  FW_CHECK(list.is_array(), "[split] ", where, " must be a list, got ", shown_json(list));
  std::map<std::string, int64_t> positions;
  for (size_t b = 0; b < data.ids.size(); ++b) positions.emplace(data.ids[b], static_cast<int64_t>(b));
  std::vector<int64_t> samples;
  for (const Json& item : list) {
    const auto found = item.is_string() ? positions.find(item.get<std::string>()) : positions.end();
    const int64_t sample = item.is_number_integer()   ? item.get<int64_t>()
                           : found != positions.end() ? found->second
                                                      : -1;
    FW_CHECK(sample >= 0 && sample < data.samples(), "[split] ", where, ": no series ", shown_json(item),
             " in a set of ", data.samples());
    samples.push_back(sample);
  }
  return samples;
}

Json parsed_split(const std::string& text, const std::string& file) {
  try {
    return parse_json(text);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(file + ": " + error.what());
  }
}

Split index_split(const DataSet& data, const SplitConfig& config) {
  FW_CHECK(
      !config.indices.empty(),
      "[split] the rule indices needs a file: set split.indices to one with the indices or ids of each part");
  const Json json = parsed_split(data::read_bytes(config.indices, {}), config.indices);
  FW_CHECK(json.is_object(), "[split] ", config.indices, " must contain an object { ... }");
  const std::vector<std::string> known = {"train", "validation", "test"};
  for (const auto& [key, unused] : json.items())
    FW_CHECK(std::find(known.begin(), known.end(), key) != known.end(), "[split] ", config.indices,
             ": unknown part '", shortened_text(key), "'", suggestion(key, known));
  Split result;
  std::set<int64_t> taken;
  const auto read = [&](const char* key, std::vector<int64_t>& to) {
    if (!json.contains(key)) return;
    to = listed(data, json[key], config.indices + ", " + key);
    for (const int64_t sample : to)
      FW_CHECK(taken.insert(sample).second, "[split] ", config.indices, ": series ", sample,
               " is listed twice");
  };
  read("validation", result.validation);
  read("test", result.test);
  read("train", result.train);
  if (!json.contains("train")) {
    for (const int64_t b : all_samples(data)) {
      if (!taken.contains(b)) result.train.push_back(b);
    }
  }
  return result;
}

SplitRule rule_of(const DataSet& data, const SplitConfig& config) {
  if (config.rule != SplitRule::Automatic) return config.rule;
  if (!config.indices.empty()) return SplitRule::Indices;
  return assigns_parts(data) ? SplitRule::Given : strata_rule(data);
}

}  // namespace

Split split_data(const DataSet& data, const SplitConfig& config) {
  FW_CHECK(config.validation >= 0 && config.test >= 0 && config.validation + config.test < 1,
           "[split] the fractions for validation and test must not be negative and must leave series to "
           "train on, got ",
           config.validation, " and ", config.test);
  Random random(static_cast<uint64_t>(config.seed) * 0x9E3779B97F4A7C15 + 1);
  const SplitRule rule = rule_of(data, config);
  if (rule == SplitRule::Folds || rule == SplitRule::Rolling) check_fold(config);
  Split result;
  if (rule == SplitRule::Given) {
    result = given_split(data, config, random);
  } else if (rule == SplitRule::Folds) {
    result = fold_split(data, config, random);
  } else if (rule == SplitRule::Indices) {
    result = index_split(data, config);
  } else if (rule == SplitRule::Time || rule == SplitRule::Rolling) {
    result = data::time_split(data, config);
  } else {
    const bool groups =
        std::any_of(data.groups.begin(), data.groups.end(), [](const auto& g) { return !g.empty(); });
    FW_CHECK(rule != SplitRule::Grouped || groups, "[split] grouped: no series of '", data.head.name,
             "' has a group; for a table, name the column with --group-column");
    auto parts = divide(data, all_samples(data), rule, {config.test, config.validation}, random);
    result = {.train = parts[2], .validation = parts[1], .test = parts[0]};
  }
  result.rule = rule;
  return result;
}

}  // namespace fastweights
