#include <algorithm>
#include <cmath>
#include <filesystem>

#include "data/counts.h"
#include "data/parsers.h"
#include "data/writers.h"

namespace fastweights::data {
namespace {

namespace fs = std::filesystem;

void check_ts(const DataSet& data, const std::string& path) {
  if (!data.head.statics.empty() || !data.step_labels.empty())
    refuse_writing(path, "a .ts file cannot store static features or step labels; write .npz");
  if (data.head.targets.size() > 1 || (!data.head.targets.empty() && !data.labels.empty()))
    refuse_writing(path, "a .ts file can store either a label or one target; write .npz");
  for (const std::string& name : data.head.classes) {
    if (name.empty() || name == "?" || name.find_first_of(" \t\r\n:()") != std::string::npos)
      refuse_writing(path, "a .ts file cannot store the class name ", in_quotes(name));
  }
  for (const std::string& name : data.head.channels) {
    if (name.empty() || trimmed(name) != name || name.find_first_of("\r\n") != std::string::npos)
      refuse_writing(path, "a .ts file cannot store the channel name ", in_quotes(name));
  }
}

// properties of all series
struct Layout {
  bool steps = true;  // times are 0, 1, 2, ...
  bool equal = true;
};

Layout layout_of(const DataSet& data) {
  Layout layout;
  for (int64_t b = 0; b < data.samples(); ++b) {
    layout.equal = layout.equal && data.length(b) == data.length(0);
    const int64_t first = data.offsets[static_cast<size_t>(b)];
    for (int64_t i = 0; i < data.length(b); ++i)
      layout.steps = layout.steps && data.times[static_cast<size_t>(first + i)] == static_cast<double>(i);
  }
  return layout;
}

std::string header(const DataSet& data, const Layout& layout) {
  const auto word = [](bool yes) { return yes ? " true\n" : " false\n"; };
  std::string name = data.head.name.empty() ? "unnamed" : data.head.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }, '_');
  std::string text = message("# ", kCountsComment, counts_text(data), "\n");
  const std::vector<std::string> usual = numbered_channels(data.head.channels.size());
  for (size_t c = 0; c < usual.size(); ++c) {
    if (data.head.channels[c] != usual[c]) text += "# " + usual[c] + ": " + data.head.channels[c] + "\n";
  }
  const bool missing =
      std::any_of(data.values.begin(), data.values.end(), [](double x) { return std::isnan(x); });
  text += "@problemName " + name + "\n@timeStamps" + word(!layout.steps) + "@missing" + word(missing) +
          "@univariate" + word(data.channels() == 1);
  if (data.channels() != 1) text += "@dimensions " + std::to_string(data.channels()) + "\n";
  text += "@equalLength" + std::string(word(layout.equal));
  if (layout.equal && layout.steps) text += "@seriesLength " + std::to_string(data.length(0)) + "\n";
  if (!data.head.targets.empty()) return text + "@targetlabel true\n@data\n";
  text += data.labels.empty() ? "@classLabel false" : "@classLabel true";
  for (const std::string& label : data.head.classes) text += data.labels.empty() ? "" : " " + label;
  return text + "\n@data\n";
}

std::string number(double x) { return std::isnan(x) ? "?" : exact(x); }

// one series; the first dimension lists all times, so that rows without values are kept
std::string case_line(const DataSet& data, const Layout& layout, size_t b) {
  const auto channels = static_cast<size_t>(data.channels());
  const auto first = static_cast<size_t>(data.offsets[b]), last = static_cast<size_t>(data.offsets[b + 1]);
  std::string text;
  for (size_t c = 0; c < channels; ++c) {
    if (c > 0) text += ':';
    const size_t begin = text.size();
    for (size_t row = first; row < last; ++row) {
      const double x = data.values[row * channels + c];
      if (!layout.steps && c > 0 && std::isnan(x)) continue;
      if (text.size() > begin) text += ',';
      text += layout.steps ? number(x) : "(" + exact(data.times[row]) + "," + number(x) + ")";
    }
    if (text.size() == begin) text += '?';
  }
  if (!data.head.targets.empty()) text += ":" + number(data.targets[b]);
  if (!data.labels.empty())
    text += data.labels[b] < 0 ? ":?" : ":" + data.head.classes[static_cast<size_t>(data.labels[b])];
  return text + "\n";
}

std::vector<int64_t> samples_in(const DataSet& data, Part part) {
  std::vector<int64_t> samples;
  for (int64_t b = 0; b < data.samples(); ++b) {
    if (data.parts[static_cast<size_t>(b)] == part) samples.push_back(b);
  }
  return samples;
}

void write_one(const DataSet& data, const std::string& path) {
  const Layout layout = layout_of(data);
  std::string text = header(data, layout);
  for (size_t b = 0; b < data.ids.size(); ++b) text += case_line(data, layout, b);
  write_table(path, text);
}

}  // namespace

void write_ts(const DataSet& data, const std::string& path) {
  check_ts(data, path);
  const std::vector<int64_t> train = samples_in(data, Part::Train), test = samples_in(data, Part::Test);
  const size_t all = data.ids.size();
  if (all == 0 || data.head.channels.empty())
    refuse_writing(path, "a .ts file needs at least one series and channel");
  if (path.ends_with(".ts")) {
    const bool as_named = path.ends_with("_TRAIN.ts")  ? train.size() == all
                          : path.ends_with("_TEST.ts") ? test.size() == all
                                                       : samples_in(data, Part::Any).size() == all;
    if (!as_named)
      refuse_writing(path, "the file name implies another part than that of its series; write a folder");
    return write_one(data, path);
  }
  if (train.size() + test.size() != all)
    refuse_writing(path,
                   "a folder of .ts files has a training and a test part only; write a .ts file or .npz");
  const std::string stem = (fs::path(path) / folder_name(path)).string();
  if (!train.empty()) write_one(select_series(data, train), stem + "_TRAIN.ts");
  if (!test.empty()) write_one(select_series(data, test), stem + "_TEST.ts");
}

}  // namespace fastweights::data
