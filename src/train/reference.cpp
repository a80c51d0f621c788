#include "train/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "base/error.h"
#include "train/fit.h"
#include "train/task_rows.h"

namespace fastweights {
namespace {

// cells of the tables of time warping, times channels: some seconds, if no lower bound saves any
constexpr double kMostCells = 1.5e10;
// of the Euclidean distance, and rows of channels
constexpr int64_t kMostStored = 2000, kMostQueried = 1000;

// evenly spread over the set
PreparedData thinned(const PreparedData& data, int64_t most) {
  const int64_t all = data.samples();
  if (all <= most) return data;
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < most; ++i) samples.push_back(i * all / most);
  const at::IntArrayRef offsets(data.offsets.data_ptr<int64_t>(), static_cast<size_t>(all) + 1);
  const Rows rows = rows_of(offsets, samples);
  const Tensor which = int64_tensor(samples), row_index = int64_tensor(rows.index);
  const auto taken = [](const Tensor& x, const Tensor& index) {
    return x.defined() ? x.index_select(0, index) : x;
  };
  PreparedData out = data;
  out.ids.clear();
  out.offsets = int64_tensor(rows.offsets);
  for (Tensor* x : {&out.values, &out.times, &out.step_labels}) *x = taken(*x, row_index);
  for (Tensor* x : {&out.statics, &out.labels, &out.targets}) *x = taken(*x, which);
  for (const int64_t b : samples) out.ids.push_back(data.ids[static_cast<size_t>(b)]);
  return out;
}

// metrics of a fitted baseline
struct Reference {
  TrainData data;
  PreparedData shown;

  Metrics of(const std::string& name) const {
    const ModelConfig config = named_model(name, shape_of(data.train, data.preparation, data.task.kind));
    const Model model(config);
    fit_model(model, data, /*seed=*/1);
    return evaluate(predict(model, shown, data.preparation, data.task), data.task, data.preparation);
  }
};

std::string text_of(const Metrics& metrics) {
  const bool classes = std::isfinite(metric(metrics, "accuracy"));
  char text[64];
  std::snprintf(text, sizeof text, classes ? "%.1f %%" : "%.4g",
                classes ? 100 * metric(metrics, "accuracy") : metric(metrics, "mse"));
  return classes ? message("an accuracy of ", text) : message("a mean squared error of ", text);
}

std::string neighbour_line(Reference reference, const std::string& part) {
  const PreparedData all = reference.data.train, shown = reference.shown;
  const auto series = static_cast<double>(all.samples()), queries = static_cast<double>(shown.samples());
  const double length = static_cast<double>(all.times.size(0)) / series,
               query = static_cast<double>(shown.times.size(0)) / std::max(queries, 1.0);
  const double one = length * query * static_cast<double>(all.values.size(1));
  // pairs of series that there is time for, shared evenly
  const double share = std::min(1.0, std::sqrt(kMostCells / (one * series * queries)));
  const bool warped = std::min(series, queries) * share >= 50 || share == 1;
  const auto most = [&](double count, int64_t limit) {
    return warped ? static_cast<int64_t>(std::ceil(count * share))
                  : std::min(static_cast<int64_t>(count), limit);
  };
  reference.data.train = thinned(all, most(series, kMostStored));
  reference.shown = thinned(shown, most(queries, kMostQueried));
  std::string text = message("A nearest neighbour (", warped ? "1nn-dtw" : "1nn-ed", ") reaches ",
                             text_of(reference.of(warped ? "1nn-dtw" : "1nn-ed")), " on the ", part, " part");
  const int64_t stored = reference.data.train.samples(), asked = reference.shown.samples();
  if (stored < all.samples())
    text += message(", searching ", stored, " of ", all.samples(), " training series");
  if (asked < shown.samples()) text += message(", for ", asked, " of its ", shown.samples(), " series");
  return text + ".";
}

std::string channels_line(const Reference& reference, const std::string& name, const std::string& does,
                          int64_t all, const std::string& part) {
  const int64_t used = reference.shown.samples();
  return message(does, " (", name, ") reaches ", text_of(reference.of(name)), " on the ", part, " part",
                 used < all ? message(", for ", used, " of its ", all, " series") : "", ".");
}

std::string frequent_line(const Reference& reference, const std::string& part) {
  const Tensor known = reference.data.train.step_labels.masked_select(reference.data.train.step_labels.ge(0)),
               truth = reference.shown.step_labels.masked_select(reference.shown.step_labels.ge(0));
  if (known.size(0) == 0 || truth.size(0) == 0) return "";
  const int64_t best = at::bincount(known).argmax().item<int64_t>();
  const Metrics metrics = {{"accuracy", truth.eq(best).to(at::kDouble).mean().item<double>()}};
  return message("Always the most frequent class reaches ", text_of(metrics), " on the ", part, " part.");
}

bool has_any_target(const PreparedData& data, const TaskConfig& task) {
  if (task.kind == TaskKind::Classification)
    return data.labels.defined() && data.labels.ge(0).any().item<bool>();
  return task.kind != TaskKind::Regression || data.targets.isfinite().any().item<bool>();
}

}  // namespace

std::vector<std::string> reference_lines(const Run& run, const PartResult& shown, const PreparedData& data) {
  const at::NoGradGuard no_grad;
  const RunData& d = run.data;
  Reference reference = {{d.train, d.validation, d.preparation, d.task}, data};
  reference.data.preparation.usual_gap = 0;
  reference.data.preparation.guesses.clear();
  // every series is its own neighbour in training
  if (shown.name == "train" || !has_any_target(data, d.task) || !has_any_target(d.train, d.task)) return {};
  std::vector<std::string> lines;
  if (serves(Tasks::Series, d.task.kind)) {
    if (!run.config.model.architecture.get_if<NearestNeighbour>())
      lines.push_back(neighbour_line(reference, shown.name));
  } else if (serves(Tasks::Channels, d.task.kind)) {
    reference.data.train = thinned(d.train, kMostStored);
    reference.shown = thinned(data, kMostQueried);
    const auto add = [&](const char* name, const char* does) {
      lines.push_back(channels_line(reference, name, does, data.samples(), shown.name));
    };
    add("naive", "Repeating the last value");
    if (d.task.kind == TaskKind::Forecast) add("seasonal-naive", "Repeating the last season");
    if (d.task.kind == TaskKind::Imputation) add("linear-interpolation", "Connecting observations by lines");
  } else if (data.step_labels.defined()) {
    lines.push_back(frequent_line(reference, shown.name));
  }
  std::erase(lines, "");
  return lines;
}

}  // namespace fastweights
