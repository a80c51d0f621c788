#include "fastweights/trained_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "architectures/model_file.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "fastweights/published.h"
#include "tensor/autograd.h"
#include "train/calibration_json.h"
#include "train/ensemble.h"
#include "train/first_guess.h"
#include "train/model_time.h"
#include "train/preparation_json.h"
#include "train/run_fields.h"
#include "train/run_split.h"
#include "train/trained_file.h"

namespace fastweights {
namespace {

// lists that belong together have equal lengths, and they are those of the model
bool fits(const TrainedModel& trained) {
  const Preparation& p = trained.preparation;
  const ModelConfig& model = trained.model.config();
  const auto count = static_cast<int64_t>(p.statics.size());
  const bool flags = std::all_of(p.static_flags.begin(), p.static_flags.end(),
                                 [&](int64_t flag) { return flag >= 0 && flag < count; });
  return flags && p.channel_scales.size() == p.channels.size() &&
         p.static_scales.size() == p.statics.size() && p.target_scales.size() == p.targets.size() &&
         p.median_gap > 0 && p.usual_gap >= 0 && p.window >= 0 && p.time_scale > 0 && p.count_scale > 0 &&
         has_valid_guesses(p) && p.model_channels() == model.channels &&
         p.model_statics() == model.static_features && output_count(trained.task.kind, p) == model.outputs;
}

// an output without residuals has no width, which is null
Json widths_json(const std::vector<double>& widths) {
  Json list = Json::array();
  for (const double width : widths) list.push_back(std::isnan(width) ? Json() : Json(width));
  return list;
}

std::vector<double> widths_from(const Json& json) {
  std::vector<double> widths;
  for (const Json& width : json) widths.push_back(width.is_null() ? NAN : width.get<double>());
  return widths;
}

Json prediction_intervals_json(const PredictionIntervals& intervals) {
  Json ahead = Json::array();
  for (const std::vector<double>& step : intervals.ahead) ahead.push_back(widths_json(step));
  return {{"level", intervals.level}, {"pooled", widths_json(intervals.pooled)}, {"ahead", ahead}};
}

PredictionIntervals prediction_intervals_from(const Json& json) {
  PredictionIntervals out = {.level = json.at("level").get<double>(),
                             .pooled = widths_from(json.at("pooled"))};
  for (const Json& step : json.at("ahead")) out.ahead.push_back(widths_from(step));
  return out;
}

// one bias and one width per output
bool fits_outputs(const TrainedModel& trained) {
  const auto outputs = static_cast<size_t>(trained.model.config().outputs);
  const PredictionIntervals& intervals = trained.intervals;
  const auto is_width = [](double x) { return std::isnan(x) || (x >= 0 && std::isfinite(x)); };
  const auto are_widths = [&](const std::vector<double>& list) {
    return list.size() == outputs && std::all_of(list.begin(), list.end(), is_width);
  };
  const bool none = intervals.level == 0 && intervals.pooled.empty() && intervals.ahead.empty();
  const bool widths = intervals.level > 0 && intervals.level < 1 && are_widths(intervals.pooled) &&
                      std::all_of(intervals.ahead.begin(), intervals.ahead.end(), are_widths);
  return fits_outputs(trained.calibration, trained.model.config().outputs) && (none || widths);
}

}  // namespace

void check_trained(const TrainedModel& trained) {
  const Preparation& p = trained.preparation;
  static const std::vector<Scale> kNone;
  const auto check = [](const char* kind, const std::vector<std::string>& names,
                        const std::vector<Scale>& scales) {
    for (size_t i = 0; i < names.size(); ++i) {
      FW_CHECK(is_utf8(names[i]), "[train] the name of ", kind, " ", i + 1, ", '", printable(names[i]),
               "', is not valid UTF-8, which model files need");
      FW_CHECK(i >= scales.size() || (std::isfinite(scales[i].mean) && std::isfinite(scales[i].deviation)),
               "[train] ", kind, " '", printable(names[i]), "' cannot be scaled: its values are too large");
    }
  };
  check("channel", p.channels, p.channel_scales);
  check("static feature", p.statics, p.static_scales);
  check("target", p.targets, p.target_scales);
  check("class", p.classes, kNone);
  try {
    preparation_from(parse_json(preparation_json(p).dump()));
  } catch (const Json::exception& error) {
    FW_CHECK(false, "[train] the model could not be saved: ", json_error(error));
  }
}

void save_trained(const std::string& path, const TrainedModel& trained) {
  FW_CHECK(trained.members.empty(), "[train] an ensemble is a folder of runs; save its members one by one");
  NamedTensors file = model_file(trained.model);
  file.metadata["preparation"] = preparation_json(trained.preparation).dump();
  file.metadata["task"] = json_of(trained.task).dump();
  file.metadata["threshold"] = message(trained.threshold);
  if (!trained.calibration.is_identity())
    file.metadata["calibration"] = calibration_json(trained.calibration).dump();
  if (trained.intervals.level > 0)
    file.metadata["intervals"] = prediction_intervals_json(trained.intervals).dump();
  save_safetensors(path, file);
}

std::string initialise_from(const Model& model, const std::string& path) {
  const bool folder = std::filesystem::is_directory(path);
  if (const std::vector<std::string> members = member_folders(path); !members.empty())
    throw std::runtime_error(
        message(path, " holds ", members.size(), " models; name one of them, such as ", members.front()));
  if (!folder) {
    const NamedTensors file = load_safetensors(path);
    // files of ours name their format
    const auto format = file.metadata.find("format");
    if (format == file.metadata.end() || format->second.rfind("fastweights", 0) != 0) {
      try {
        const size_t count = published::load_state_dict(model, file.tensors).size();
        return message("initialised ", count, " parameters from ", path,
                       ", by the names of the published code");
      } catch (const std::invalid_argument& error) {
        throw std::runtime_error(message(path, ": ", error.what()));
      }
    }
  }
  const Model from = folder ? load_trained(path).model : load_model(path);
  const at::NoGradGuard no_grad;
  size_t copied = 0;
  for (const auto& [name, tensor] : model.parameters()) {
    for (const auto& [known, given] : from.parameters()) {
      if (known != name || given.sizes() != tensor.sizes()) continue;
      tensor.copy_(given);
      ++copied;
    }
  }
  if (copied == 0)
    throw std::runtime_error(path + ": none of its parameters has the name and size of one of the new model");
  return message("initialised ", copied, " of ", model.parameters().size(), " parameters from ", path);
}

namespace {

// absent in files of earlier versions and where nothing was fitted
void read_uncertainty(const SafetensorsFile& file, TrainedModel& trained) {
  const auto& texts = file.metadata();
  if (const auto found = texts.find("calibration"); found != texts.end())
    trained.calibration = calibration_from(parse_json(found->second));
  if (const auto found = texts.find("intervals"); found != texts.end())
    trained.intervals = prediction_intervals_from(parse_json(found->second));
  if (!fits_outputs(trained))
    throw std::runtime_error(file.path() + ": its calibration is damaged: it does not fit the model");
}

}  // namespace

TrainedModel load_trained(const std::string& path) {
  const bool folder = std::filesystem::is_directory(path);
  const std::string file = folder ? path + "/model.safetensors" : path;
  if (const std::vector<std::string> members = member_folders(path); !members.empty())
    return load_ensemble(path, members);
  if (folder && !std::filesystem::exists(file))
    throw std::runtime_error(message(path, " has no model.safetensors: ",
                                     std::filesystem::exists(path + "/config.json")
                                         ? "its training has not finished; continue it with --resume"
                                         : "this is not the folder of a run"));
  const SafetensorsFile opened(file);
  const auto get = [&](const char* key) {
    const auto found = opened.metadata().find(key);
    if (found == opened.metadata().end())
      throw std::runtime_error(
          message(file, ": there is no ", key, " in it; was it saved by 'fastweights train'?"));
    return found->second;
  };
  const std::string preparation = get("preparation"), task = get("task"), threshold = get("threshold");
  char* end = nullptr;
  const double decided = std::strtod(threshold.c_str(), &end);
  if (threshold.empty() || *end != '\0' || !std::isfinite(decided))
    throw std::runtime_error(message(file, ": its threshold is damaged: ", threshold));
  try {
    TrainedModel trained = {load_model(file), preparation_from(parse_json(preparation)),
                            read_fields(parse_json(task), TaskConfig{}), decided};
    if (!fits(trained))
      throw std::runtime_error(file + ": its preparation is damaged: it does not fit the model");
    read_uncertainty(opened, trained);
    return trained;
  } catch (const Json::exception& error) {
    throw std::runtime_error(message(file, ": its preparation is damaged: ", json_error(error)));
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(message(file, ": its preparation is damaged: ", error.what()));
  }
}

namespace {

// whether the data have the names of the preparation already, in its order
bool is_matched(const DataHead& head, const Preparation& p) {
  const bool unit = head.time_unit.empty() || p.time_unit.empty() || head.time_unit == p.time_unit;
  return unit && head.channels == p.channels && head.statics == p.statics && head.targets == p.targets &&
         head.classes == p.classes;
}

Predictions predict_matched(const TrainedModel& trained, const DataSet& data, const PredictOptions& options) {
  const Preparation& preparation = trained.preparation;
  const std::vector<Window> windows = model_windows(data, preparation, trained.task, options.targets);
  const PreparedData prepared = prepare(windows.empty() ? data : cut_series(data, windows), preparation);
  Predictions out = trained.finished(predict(trained.model, prepared, preparation, trained.task, options));
  out.note = gap_note({&prepared}, preparation, trained.task, trained.model.config(), options.targets);
  if (windows.empty() || !out.samples.defined()) return out;
  // of the series, not of their windows
  std::vector<int64_t> samples;
  for (const Window& window : windows) samples.push_back(window.sample);
  out.samples = at::tensor(samples, at::kLong).index_select(0, out.samples);
  return out;
}

}  // namespace

Predictions predict_alone(const TrainedModel& trained, const DataSet& data, const PredictOptions& options) {
  const Preparation& preparation = trained.preparation;
  if (!is_matched(data.head, preparation))
    return predict_matched(trained, match_data(data, preparation), options);
  return predict_matched(trained, data, options);
}

Predictions TrainedModel::predict(const DataSet& data, const PredictOptions& options) const {
  return members.empty() ? predict_alone(*this, data, options) : predict_ensemble(*this, data, options);
}

Predictions TrainedModel::finished(Predictions raw) const {
  if (is_classification(task.kind)) {
    raw.outputs = calibrated(raw.outputs, calibration);
  } else if (intervals.level > 0 && raw.outputs.defined()) {
    raw.half_widths = half_widths(intervals, raw.samples);
  }
  return raw;
}

Evaluation evaluate(const TrainedModel& trained, const DataSet& data, const PredictOptions& options) {
  Evaluation out = {.predictions = trained.predict(data, options)};
  const Predictions& p = out.predictions;
  out.metrics = evaluate(p, trained.task, trained.preparation);
  out.intervals = bootstrap(p, trained.task, trained.preparation);
  out.groups = metrics_by_group(p, trained.task, trained.preparation);
  out.rows = p.outputs.defined() ? p.outputs.size(0) : 0;
  if (p.targets.defined()) {
    out.known = p.targets.isfinite().any(1).sum().item<int64_t>();
  } else if (p.classes.defined()) {
    out.known = p.classes.ge(0).sum().item<int64_t>();
  }
  if (p.classes.defined() && trained.preparation.classes.size() == 2) {
    out.at_threshold = evaluate(p, trained.task, trained.preparation, trained.threshold);
    out.intervals_at_threshold =
        bootstrap(p, trained.task, trained.preparation, {.threshold = trained.threshold});
  }
  return out;
}

SeriesOutput follow_series(const TrainedModel& trained, const PreparedData& data, int64_t sample,
                           int64_t times) {
  const at::NoGradGuard no_grad;
  // the whole series is the input, whatever the task holds out
  TaskConfig whole = trained.task;
  whole.kind = TaskKind::Classification;
  Batch batch = make_batch(data, trained.preparation, whole, {sample}, /*seed=*/1);
  const Tensor& rows = batch.input.series.times;  // [L]
  const double first = rows[0].item<double>(), last = rows[-1].item<double>();
  // rounding can take the last time past the series
  const Tensor shown = first < last ? at::linspace(first, last, times, at::kDouble).clamp(first, last) : rows;
  batch.input.output_times = RaggedTimes{shown, at::tensor({int64_t{0}, shown.size(0)}, at::kLong)};
  const TaskRows series = task_rows(data, whole, {sample}, /*seed=*/1, Targets::HeldOut);
  SeriesOutput out = {data_times(shown, series, trained.preparation.usual_gap),
                      trained.model.forward(batch.input)};
  if (is_classification(trained.task.kind)) {
    const TrainedModel& one = trained.members.empty() ? trained : trained.members.front();
    Predictions raw;
    raw.outputs = out.output.outputs;
    out.output.outputs = one.finished(raw).outputs;
  }
  if (!trained.preparation.guesses.empty())
    out.output.outputs = out.output.outputs + first_guess(trained.preparation, series, out.times,
                                                          batch.input.output_times->offsets);
  return out;
}

double effective_rank(const Tensor& w) {
  const Tensor gram = at::matmul(w, w.transpose(-1, -2));
  const double trace = gram.diagonal().sum().item<double>(), squares = gram.square().sum().item<double>();
  return squares > 0 ? trace * trace / squares : 0;
}

}  // namespace fastweights
