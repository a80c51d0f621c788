#include "train/ensemble.h"

#include <filesystem>
#include <limits>

#include "base/error.h"
#include "train/fold_calibration.h"
#include "train/run_fields.h"
#include "train/run_set.h"

namespace fastweights {
namespace {

namespace fs = std::filesystem;

// what two models disagree on; "" if nothing
std::string disagreement(const TrainedModel& a, const TrainedModel& b) {
  const Preparation &p = a.preparation, &q = b.preparation;
  if (json_of(a.task) != json_of(b.task)) return "another task";
  if (p.channels != q.channels) return "other channels";
  if (p.statics != q.statics) return "other static features";
  if (p.targets != q.targets) return "other targets";
  if (p.classes != q.classes) return "other classes";
  if (p.time_unit != q.time_unit) return "another unit of time";
  return "";
}

// what models with different scales have in common: probabilities [M, K], or values [M, O] in their own units
Tensor common_form(const Predictions& p, const TrainedModel& trained) {
  return is_classification(trained.task.kind) ? class_probabilities(p.outputs)
                                              : in_own_units(p.outputs, trained.task, trained.preparation);
}

Tensor scaled(const Tensor& values, const TrainedModel& trained) {
  const Tensor zero = at::zeros({1, values.size(1)}, at::kDouble),
               mean = in_own_units(zero, trained.task, trained.preparation),
               deviation = in_own_units(zero + 1, trained.task, trained.preparation) - mean;
  return (values - mean) / deviation;
}

// outputs of a model that stand for these probabilities or values
Tensor outputs_for(const Tensor& common, const TrainedModel& trained) {
  if (!is_classification(trained.task.kind)) return scaled(common, trained);
  const Tensor logs = common.clamp_min(std::numeric_limits<double>::min()).log();
  const bool one = output_count(trained.task.kind, trained.preparation) == 1;
  return one ? logs.slice(1, 1, 2) - logs.slice(1, 0, 1) : logs;
}

// half widths of intervals in units of the model, from those in own units
Tensor scaled_widths(const Tensor& widths, const TrainedModel& trained) {
  const Tensor one = at::ones({1, widths.size(1)}, at::kDouble);
  return widths / widths_in_own_units(one, trained.task, trained.preparation);
}

// the mean of probabilities or values, and of the widths of intervals
Predictions mean_prediction(const TrainedModel& ensemble, const DataSet& data,
                            const PredictOptions& options) {
  Predictions out;
  Tensor sum, widths;
  for (const TrainedModel& member : ensemble.members) {
    Predictions p = predict_alone(member, data, options);
    // no row to predict
    if (!p.outputs.defined()) return p;
    const Tensor common = common_form(p, member),
                 width = p.half_widths.defined()
                             ? widths_in_own_units(p.half_widths, member.task, member.preparation)
                             : Tensor();
    if (!sum.defined()) {
      out = std::move(p);
      sum = common;
      widths = width;
    } else {
      sum = sum + common;
      widths = widths.defined() && width.defined() ? widths + width : Tensor();
      if (out.note.empty()) out.note = p.note;
    }
  }
  const auto count = static_cast<double>(ensemble.members.size());
  out.outputs = outputs_for(sum / count, ensemble);
  out.half_widths = widths.defined() ? scaled_widths(widths / count, ensemble) : Tensor();
  return out;
}

// rows of all parts, ordered by sample
Tensor in_order(const std::vector<Tensor>& parts, const Tensor& order) {
  return parts.empty() ? Tensor() : at::cat(parts, 0).index_select(0, order);
}

// each series by its own member
Predictions chosen_prediction(const TrainedModel& ensemble, const DataSet& data,
                              const PredictOptions& options) {
  FW_CHECK(static_cast<int64_t>(options.members.size()) == data.samples(), "[predict] ", data.samples(),
           " series need as many members, got ", options.members.size());
  const auto count = static_cast<int64_t>(ensemble.members.size());
  for (const int64_t m : options.members)
    FW_CHECK(m >= 0 && m < count, "[predict] there is no member ", m, " in an ensemble of ", count);
  std::vector<Tensor> outputs, times, samples, classes, targets, widths;
  Predictions out;
  for (size_t m = 0; m < ensemble.members.size(); ++m) {
    const TrainedModel& member = ensemble.members[m];
    std::vector<int64_t> own;
    for (size_t b = 0; b < options.members.size(); ++b) {
      if (options.members[b] == static_cast<int64_t>(m)) own.push_back(static_cast<int64_t>(b));
    }
    if (own.empty()) continue;
    const Predictions p = predict_alone(member, select_series(data, own), options);
    if (!p.outputs.defined()) continue;
    outputs.push_back(outputs_for(common_form(p, member), ensemble));
    times.push_back(p.times);
    samples.push_back(at::tensor(own, at::kLong).index_select(0, p.samples));
    if (p.classes.defined()) classes.push_back(p.classes);
    if (p.targets.defined())
      targets.push_back(scaled(in_own_units(p.targets, member.task, member.preparation), ensemble));
    if (p.half_widths.defined())
      widths.push_back(
          scaled_widths(widths_in_own_units(p.half_widths, member.task, member.preparation), ensemble));
    if (out.note.empty()) out.note = p.note;
  }
  if (outputs.empty()) return out;
  const Tensor order =
      std::get<1>(at::sort(at::cat(samples, 0), /*stable=*/c10::optional<bool>(true), 0, false));
  out.outputs = in_order(outputs, order);
  out.times = in_order(times, order);
  out.samples = in_order(samples, order);
  out.classes = in_order(classes, order);
  out.targets = in_order(targets, order);
  // fewer rows than outputs if a member has no intervals
  if (widths.size() == outputs.size()) out.half_widths = in_order(widths, order);
  return out;
}

}  // namespace

std::vector<std::string> member_folders(const std::string& folder) {
  const std::optional<RunSet> set = read_run_set(folder);
  std::vector<std::string> members;
  if (!set) return members;
  for (const SetRun& one : set_runs(set->options)) members.push_back(folder + "/" + one.name);
  return members;
}

TrainedModel load_ensemble(const std::string& folder, const std::vector<std::string>& members) {
  std::vector<TrainedModel> models;
  double threshold = 0;
  for (const std::string& member : members) {
    if (!fs::exists(member + "/model.safetensors"))
      throw std::runtime_error(message(member, " has no model.safetensors: its training has not finished; ",
                                       "continue it with --resume ", folder));
    models.push_back(load_trained(member));
    const std::string other = disagreement(models.front(), models.back());
    if (!other.empty())
      throw std::runtime_error(message(member, " was trained with ", other, " than ", members.front(),
                                       "; an ensemble needs models of one task and of the same names"));
    threshold += models.back().threshold / static_cast<double>(members.size());
  }
  const TrainedModel& first = models.front();
  TrainedModel out = {
      .model = first.model, .preparation = first.preparation, .task = first.task, .threshold = threshold};
  if (const auto fitted = read_fold_calibration(folder, models.size(), first.model.config().outputs)) {
    for (size_t m = 0; m < models.size(); ++m) models[m].calibration = fitted->members[m];
    out.calibration = fitted->mean;
    out.threshold = fitted->threshold;
  }
  out.members = std::move(models);
  return out;
}

Predictions predict_ensemble(const TrainedModel& ensemble, const DataSet& data,
                             const PredictOptions& options) {
  return options.members.empty() ? ensemble.finished(mean_prediction(ensemble, data, options))
                                 : chosen_prediction(ensemble, data, options);
}

}  // namespace fastweights
