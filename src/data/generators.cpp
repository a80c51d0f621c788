#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <map>
#include <numbers>

#include "base/error.h"
#include "base/nearest.h"
#include "base/random.h"
#include "data/readers.h"

namespace fastweights::data {
namespace {

using Point = std::complex<double>;

struct Setting {
  const char* name;
  double value, least, most;
  const char* meaning;
  enum class Kind { Whole, Any } kind = Kind::Whole;
};

using Values = std::map<std::string, double>;

struct Generator {
  const char* name;
  const char* sentence;
  std::vector<Setting> settings;
  DataSet (*make)(const Values&);
};

// e^(i angle) from operations that round alike on every machine
Point turn(double angle) {
  constexpr double kTurn = 2 * std::numbers::pi;
  const double x = angle - kTurn * std::floor(angle / kTurn + 0.5), square = x * x;
  // Taylor series: |x| <= pi, where the omitted terms are below 1e-16
  double cosine = 0, sine = 0;
  for (int n = 30; n >= 2; n -= 2) {
    cosine = (1 + cosine) * -square / ((n - 1) * n);
    sine = (1 + sine) * -square / (n * (n + 1));
  }
  return {1 + cosine, x * (1 + sine)};
}

Point times(Point a, Point b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// a sample does not depend on the number of samples
Random random_of(double seed, size_t sample) {
  const uint64_t mixed = Random(static_cast<uint64_t>(seed)).next();
  return Random(Random(mixed + sample).next());
}

std::string id_of(const std::string& name, size_t sample) { return name + "-" + std::to_string(sample + 1); }

// the class is the direction; start, end and speed are independent of it
Series spiral(const Values& set, size_t sample) {
  Random random = random_of(set.at("seed"), sample);
  const bool clockwise = sample % 2 == 1;
  const double mean = set.at("length");
  const auto length = static_cast<size_t>(std::floor(random.uniform(0.7, 1.3) * mean + 0.5));
  const double speed = random.uniform(0.7, 1.3) * (clockwise ? -1 : 1),
               phase = random.uniform(0, 2 * std::numbers::pi);
  const double begin = random.uniform(0.3, 1.5), end = random.uniform(0.3, 1.5);
  Series series = {.id = id_of("spiral", sample), .label = clockwise ? "clockwise" : "anticlockwise"};
  double time = 0;
  for (size_t i = 0; i < length; ++i) {
    // about ten units of time, one to two turns, with gaps that vary by a factor of nine
    if (i > 0) time += random.uniform(0.2, 1.8) * 10 / mean;
    const Point at = turn(phase + speed * time);
    const double radius = begin + (end - begin) * time / 14;
    series.times.push_back(time);
    for (const double x : {at.real(), at.imag()}) {
      const double seen = radius * x + set.at("noise") * random.normal();
      const bool missing = random.uniform() < set.at("missing");
      series.values.push_back(missing ? std::numeric_limits<double>::quiet_NaN() : seen);
    }
  }
  return series;
}

DataSet spirals(const Values& set) {
  std::vector<Series> series;
  for (size_t b = 0; b < static_cast<size_t>(set.at("samples")); ++b) series.push_back(spiral(set, b));
  return collect_series({.name = "spirals",
                         .origin = "generated",
                         .channels = {"x", "y"},
                         .classes = {"anticlockwise", "clockwise"},
                         .time_unit = "second"},
                        series);
}

DataSet long_recall(const Values& set) {
  const auto classes = static_cast<size_t>(set.at("classes")), cue = static_cast<size_t>(set.at("cue"));
  const size_t length = cue + static_cast<size_t>(set.at("gap"));
  DataHead head = {.name = "long-recall", .origin = "generated", .time_unit = "step"};
  for (size_t k = 0; k < classes; ++k) {
    head.channels.push_back("channel" + std::to_string(k));
    head.classes.push_back(std::to_string(k));
  }
  std::vector<Series> series;
  for (size_t b = 0; b < static_cast<size_t>(set.at("samples")); ++b) {
    Random random = random_of(set.at("seed"), b);
    const size_t label = b % classes;
    Series one = {.id = id_of("recall", b), .label = head.classes[label]};
    for (size_t i = 0; i < length; ++i) {
      one.times.push_back(static_cast<double>(i));
      for (size_t k = 0; k < classes; ++k)
        one.values.push_back(set.at("noise") * random.normal() + (i < cue && k == label ? 1 : 0));
    }
    series.push_back(std::move(one));
  }
  return collect_series(std::move(head), series);
}

// three pairs of channels wander on circles. The classes differ in the number of rounds of two pairs; means
// and variances are the same
Series worm(const Values& set, size_t sample, size_t label) {
  constexpr std::array<std::array<double, 5>, 3> kRounds = {
      {{15, 22, 33, 50, 75}, {40, 27, 60, 18, 90}, {30, 30, 30, 30, 30}}};
  constexpr std::array<double, 6> kScales = {6.4, 3.8, 5.4, 4.1, 3.8, 3.8};
  Random random = random_of(set.at("seed"), sample);
  const double length = set.at("length"), noise = set.at("noise");
  // phases decorrelate within a ninth of the series
  const double kept = 1 - 9 / length, fresh = std::sqrt((1 - kept * kept) / 2);
  std::array<Point, 3> steps = {}, states = {};
  for (size_t p = 0; p < 3; ++p) {
    const double rounds = kRounds[p][label] * random.uniform(0.9, 1.1);
    steps[p] = kept * turn(2 * std::numbers::pi * rounds / length);
    states[p] = {random.normal() * std::sqrt(0.5), random.normal() * std::sqrt(0.5)};
  }
  Series series = {.id = id_of("worm", sample), .label = std::to_string(label + 1)};
  series.times.reserve(static_cast<size_t>(length));
  series.values.reserve(static_cast<size_t>(length) * 6);
  for (size_t i = 0; i < static_cast<size_t>(length); ++i) {
    series.times.push_back(static_cast<double>(i));
    for (size_t p = 0; p < 3; ++p) {
      series.values.push_back(kScales[2 * p] * (states[p].real() + noise * random.normal()));
      series.values.push_back(kScales[2 * p + 1] * (states[p].imag() + noise * random.normal()));
      const double real = random.normal(), imaginary = random.normal();
      states[p] = times(steps[p], states[p]) + Point{fresh * real, fresh * imaginary};
    }
  }
  return series;
}

// class counts of the real set for training, and about the same proportions for testing
DataSet synthetic_eigenworms(const Values& set) {
  constexpr std::array<std::array<size_t, 5>, 2> kCounts = {{{55, 22, 17, 22, 12}, {56, 23, 17, 23, 12}}};
  std::vector<Series> series;
  for (size_t part = 0; part < 2; ++part) {
    for (size_t label = 0; label < 5; ++label) {
      for (size_t n = 0; n < kCounts[part][label]; ++n) {
        series.push_back(worm(set, series.size(), label));
        series.back().part = part == 0 ? Part::Train : Part::Test;
      }
    }
  }
  return collect_series({.name = "synthetic-eigenworms",
                         .origin = "synthetic",
                         .channels = {"worm1", "worm2", "worm3", "worm4", "worm5", "worm6"},
                         .classes = {"1", "2", "3", "4", "5"},
                         .time_unit = "step"},
                        series);
}

constexpr Setting kSeed = {"seed", 1, 0, 1e15, "of the random number generator"};
constexpr Setting kNoise = {"noise", 0.3, 0, 1e3, "standard deviation", Setting::Kind::Any};

const std::vector<Generator>& generators() {
  static const std::vector<Generator> kGenerators = {
      {"spirals",
       "noisy spirals that turn clockwise or anticlockwise, each with its own irregular times and with "
       "values "
       "missing",
       {{"samples", 500, 1, 1e7, "half of each class"},
        {"length", 30, 4, 1e6, "mean number of rows"},
        {"noise", 0.1, 0, 1e3, "standard deviation", Setting::Kind::Any},
        {"missing", 0.2, 0, 1, "fraction of values", Setting::Kind::Any},
        kSeed},
       spirals},
      {"long-recall",
       "a cue in the first steps gives the class, noise follows",
       {{"samples", 500, 1, 1e7, "equally many of each class"},
        {"gap", 100, 0, 1e7, "steps after the cue"},
        {"cue", 3, 1, 1e6, "steps of the cue"},
        {"classes", 2, 2, 1e3, "one channel each"},
        kNoise,
        kSeed},
       long_recall},
      {"synthetic-eigenworms",
       "259 generated series shaped like EigenWorms; the classes differ in slow dynamics",
       {{"length", 17984, 100, 1e7, "rows of each series"}, kNoise, kSeed},
       synthetic_eigenworms},
  };
  return kGenerators;
}

double value_of(const std::string& name, const Setting& setting, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = setting.kind == Setting::Kind::Whole;
  const bool good = error == std::errc() && end == text.data() + text.size() && value >= setting.least &&
                    value <= setting.most && !(whole && value != std::floor(value));
  FW_CHECK(good, name, ": ", setting.name, whole ? " must be an integer from " : " must be a number from ",
           setting.least, " to ", setting.most, ", got '", text, "'");
  return value;
}

// "gap=500,samples=200"
Values settings_of(const Generator& generator, const std::string& text) {
  Values values;
  std::vector<std::string> names;
  for (const Setting& setting : generator.settings) {
    values[setting.name] = setting.value;
    names.push_back(setting.name);
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t equals = part.find('=');
    FW_CHECK(equals != std::string::npos, generator.name, ": expected settings such as ", names[0], "=",
             generator.settings[0].value, ", got '", part, "'");
    const std::string name = part.substr(0, equals);
    const auto found = std::find(names.begin(), names.end(), name);
    FW_CHECK(found != names.end(), generator.name, " has no setting '", name, "'", suggestion(name, names));
    const Setting& setting = generator.settings[static_cast<size_t>(found - names.begin())];
    values[name] = value_of(generator.name, setting, part.substr(equals + 1));
    begin = end + 1;
  }
  return values;
}

}  // namespace

DataSet make_data(const std::string& name) {
  const size_t colon = std::min(name.find(':'), name.size());
  const std::string requested = name.substr(0, colon);
  std::vector<std::string> names;
  for (const Generator& generator : generators()) {
    if (generator.name == requested)
      return generator.make(settings_of(generator, colon < name.size() ? name.substr(colon + 1) : ""));
    names.push_back(generator.name);
  }
  throw std::invalid_argument("unknown built-in set '" + requested + "'" + suggestion(requested, names));
}

}  // namespace fastweights::data

namespace fastweights {

std::vector<std::pair<std::string, std::string>> built_in_sets() {
  std::vector<std::pair<std::string, std::string>> sets;
  for (const data::Generator& generator : data::generators()) {
    std::string text = std::string(generator.sentence) + "; settings:";
    const char* separator = " ";
    for (const data::Setting& setting : generator.settings) {
      std::ostringstream part;
      part << separator << setting.name << "=" << setting.value << " (" << setting.meaning << ")";
      text += part.str();
      separator = ", ";
    }
    sets.emplace_back(generator.name, text);
  }
  return sets;
}

}  // namespace fastweights
