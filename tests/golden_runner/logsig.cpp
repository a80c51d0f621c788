#include "base/error.h"
#include "fastweights/control.h"
#include "golden.h"
#include "tensor/autograd.h"

namespace fastweights::golden {
namespace {

// the depths for which the file has a tensor of this name
std::vector<int64_t> depths(const GoldenFile& file, const std::string& prefix) {
  std::vector<int64_t> result;
  for (const std::string& name : file.names(prefix)) result.push_back(std::stoll(name.substr(prefix.size())));
  return result;
}

RaggedSeries on_whole_times(const Tensor& path) {
  return shared_times(at::arange(path.size(-2), at::kDouble),
                      path.reshape({-1, path.size(-2), path.size(-1)}));
}

Tensor padded_words(int64_t channels, int64_t depth) {
  const auto words = lyndon_words(channels, depth);
  Tensor result = at::full({static_cast<int64_t>(words.size()), depth}, -1, at::kLong);
  for (size_t i = 0; i < words.size(); ++i) {
    for (size_t j = 0; j < words[i].size(); ++j) {
      result[static_cast<int64_t>(i)][static_cast<int64_t>(j)] = words[i][j];
    }
  }
  return result;
}

// "[0, 1, [0, 1]]" from the names of the basis
std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "[" : ", ") + name;
  return text + "]";
}

void check_whole_paths(GoldenFile& file) {
  const Tensor path = file.tensor("in.path").clone().set_requires_grad(true);
  const int64_t channels = path.size(-1);
  for (int64_t depth : depths(file, "out.words_depth")) {
    const std::string tail = "_depth" + std::to_string(depth);
    const RaggedSeries series = on_whole_times(path);
    const Tensor words = logsignature(series, {.depth = depth});
    file.compare("out.words" + tail, words, kRounding);
    file.compare("grad.path_words" + tail,
                 vector_jacobian({words}, {path}, {file.tensor("in.weight" + tail)})[0], kRounding);
    file.compare("out.brackets" + tail, logsignature(series, {depth, LogSignatureBasis::Brackets}),
                 kRounding);
    file.compare("out.lyndon_words" + tail, padded_words(channels, depth), 0);
    if (file.has("out.expand" + tail)) {
      file.compare("out.expand" + tail, logsignature(series, {depth, LogSignatureBasis::Expanded}),
                   kRounding);
    }
    if (file.has("out.signature" + tail))
      file.compare("out.signature" + tail, signature(series, depth), kRounding);
    const std::string brackets = "lyndon_brackets" + tail;
    if (file.has_text(brackets)) {
      const std::string names = joined(logsignature_basis(channels, {depth, LogSignatureBasis::Brackets}));
      if (file.text(brackets) != names) file.fail(brackets + " is " + names);
    }
  }
}

void check_point_windows(GoldenFile& file) {
  const Tensor controls = file.tensor("in.controls");
  const auto step = static_cast<int64_t>(file.number("step"));
  const int64_t samples = controls.numel() / (controls.size(-1) * controls.size(-2));
  file.compare("out.initial", controls.select(1, 0), 0);
  for (int64_t depth : depths(file, "out.logsig_depth")) {
    const WindowedLogSignature windows = logsignature_windows(
        on_whole_times(controls), PointWindows{step, WindowTail::Drop}, {.depth = depth});
    const std::string name = "out.logsig_depth" + std::to_string(depth);
    file.compare(name, windows.values.reshape({samples, -1, windows.values.size(1)}), kRounding);
    // times are row numbers here; the file's ranges are half open
    const Tensor ranges = at::stack({windows.begin, windows.end + 1}, 1).to(at::kLong);
    file.compare("out.intervals", ranges.slice(0, 0, windows.offsets[1].item<int64_t>()), 0);
  }
}

// torchcde's form: cumulative sums behind the first point of the path
Tensor cumulative(const Tensor& values, const Tensor& first_points) {
  const int64_t samples = first_points.size(0), size = values.size(-1);
  const Tensor start = at::constant_pad_nd(first_points, {0, size - first_points.size(1)}).unsqueeze(1);
  return at::cat({start, values.reshape({samples, -1, size})}, 1).cumsum(1);
}

void check_duration_windows(GoldenFile& file) {
  const Tensor times = file.tensor("in.t"), data = file.tensor("in.X");
  const RaggedSeries series = shared_times(times, data.reshape({-1, data.size(-2), data.size(-1)}));
  const Tensor first = data.reshape({-1, data.size(-2), data.size(-1)}).select(1, 0);
  for (int64_t depth : depths(file, "out.logsig_windows_depth")) {
    const WindowedLogSignature windows =
        logsignature_windows(series, DurationWindows{file.number("window_length")}, {.depth = depth});
    const std::string tail = "_depth" + std::to_string(depth);
    file.compare("out.logsig_windows" + tail, cumulative(windows.values, first), kRounding);
    // the deprecated form multiplies each window by its duration
    const Tensor scaled = windows.values * (windows.end - windows.begin).unsqueeze(1);
    file.compare("out.logsignature_windows" + tail, cumulative(scaled, first), kRounding);
    const int64_t count = windows.offsets[1].item<int64_t>();
    const Tensor borders = at::cat({windows.begin.slice(0, 0, 1), windows.end.slice(0, 0, count)}, 0);
    file.compare("out.logsignature_windows_times", borders, kRounding);
  }
}

}  // namespace

void check_logsig(GoldenFile& file) {
  if (file.has("in.path")) return check_whole_paths(file);
  if (file.has("in.controls") && file.has_text("step")) return check_point_windows(file);
  if (file.has("in.t") && file.has_text("window_length")) return check_duration_windows(file);
  throw std::runtime_error("not understood: neither whole paths nor windows");
}

}  // namespace fastweights::golden
