#include "train/fold_calibration.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "train/calibration_json.h"
#include "train/ensemble.h"
#include "train/run_data.h"

namespace fastweights {
namespace {

// Where calibrated models disagree, their mean is less confident than it is right. Its logarithm needs about
// a factor exp(growth (1 - 1 / models)); the growth is from the sets of bench/results/calibration.md.
constexpr double kGrowth = 0.25;

// These series chose no epoch, but a fit gains likelihood by chance, too. With the correction for this number
// of epochs, useless outputs become class frequencies (see CalibrationOptions).
constexpr int64_t kEpochs = 100;

std::string path_in(const std::string& folder) { return folder + "/calibration.json"; }

Tensor joined(const std::vector<Tensor>& parts) { return parts.empty() ? Tensor() : at::cat(parts, 0); }

// the test parts of all folds but one
Predictions of_others(const std::vector<Predictions>& tested, size_t except) {
  std::vector<Tensor> outputs, samples, classes;
  for (size_t m = 0; m < tested.size(); ++m) {
    const Predictions& p = tested[m];
    if (m == except || !p.outputs.defined() || !p.classes.defined()) continue;
    outputs.push_back(p.outputs);
    samples.push_back(p.samples);
    classes.push_back(p.classes);
  }
  Predictions out;
  out.outputs = joined(outputs);
  out.samples = joined(samples);
  out.classes = joined(classes);
  return out;
}

}  // namespace

FoldCalibration fit_fold_calibration(const std::vector<Predictions>& tested, CalibrationRule rule,
                                     const std::string& threshold_for) {
  FoldCalibration out = {.threshold = 0};
  const auto count = static_cast<double>(tested.size());
  for (size_t m = 0; m < tested.size(); ++m) {
    Predictions others = of_others(tested, m);
    Calibration fitted;
    if (others.outputs.defined()) {
      const int64_t classes = std::max<int64_t>(others.outputs.size(1), 2);
      fitted =
          fit_calibration(others, class_counts(others.classes, classes), {.rule = rule, .epochs = kEpochs});
      others.outputs = calibrated(others.outputs, fitted);
    }
    out.threshold += fit_threshold(others, threshold_for) / count;
    out.members.push_back(std::move(fitted));
  }
  out.mean.scale = std::exp(kGrowth * (1 - 1 / count));
  return out;
}

void calibrate_folds(const RunSet& set, const DataSet& data) {
  const std::string& folder = set.options.folder;
  const std::vector<std::string> folders = member_folders(folder);
  const TrainConfig config = read_run_config(folders.front()).training;
  const std::vector<PartSamples> parts = fold_tests(folder, data);
  // the tests of other folds of a rolling origin lie in the future of a fold, or in its training part
  if (!parts.empty() && !parts.front().windows.empty()) return;
  std::vector<Predictions> tested;
  for (size_t m = 0; m < folders.size(); ++m) {
    TrainedModel member = load_trained(folders[m]);
    if (config.calibration == CalibrationRule::None || !is_classification(member.task.kind)) return;
    member.calibration = {};
    tested.push_back(predict_alone(member, series_of(data, parts[m]), {}));
    Tensor& samples = tested.back().samples;
    if (samples.defined()) samples = at::tensor(parts[m].samples, at::kLong).index_select(0, samples);
  }
  const FoldCalibration found = fit_fold_calibration(tested, config.calibration, config.threshold_for);
  Json members = Json::array();
  for (const Calibration& member : found.members) members.push_back(calibration_json(member));
  const Json json = {
      {"members", members}, {"mean", calibration_json(found.mean)}, {"threshold", found.threshold}};
  replace_file(path_in(folder), json.dump(2) + "\n");
}

std::optional<FoldCalibration> read_fold_calibration(const std::string& folder, size_t members,
                                                     int64_t outputs) {
  const std::string path = path_in(folder);
  if (!std::filesystem::exists(path)) return std::nullopt;
  return read_json_file(path, [&](const Json& json) {
    FoldCalibration out;
    out.threshold = json.at("threshold").get<double>();
    out.mean = calibration_from(json.at("mean"));
    for (const Json& member : json.at("members")) out.members.push_back(calibration_from(member));
    const bool fits = std::all_of(out.members.begin(), out.members.end(),
                                  [&](const Calibration& c) { return fits_outputs(c, outputs); });
    FW_CHECK(fits && fits_outputs(out.mean, outputs) && std::isfinite(out.threshold) &&
                 out.members.size() == members,
             "it does not fit the models; --resume ", folder, " writes it again");
    return std::optional(out);
  });
}

}  // namespace fastweights
