#pragma once

#include "fastweights/run.h"
#include "report/report_data.h"

namespace fastweights {

/// The part that a report shows: the last of train, validation and test.
struct Shown {
  const PartResult& result;
  const PreparedData& data;
};

/// The report of a finished run. The result has the model, and the predictions of the part that is shown.
/// `series` are ids of that part to show first.
report::ReportData make_report(const std::string& folder, const Run& run, const RunResult& result,
                               const std::vector<std::string>& series = {});

/// Sections of the report, one file each.
void add_facts(report::ReportData& report, const std::string& folder, const Run& run,
               const RunResult& result);
void add_classes(report::ReportData& report, const TrainedModel& trained, const Shown& shown);
void add_series(report::ReportData& report, const TrainedModel& trained, const Shown& shown,
                const std::vector<std::string>& requested);
void add_forecasts(report::ReportData& report, const TrainedModel& trained, const Shown& shown);
report::ModelSection model_section(const Model& model);
/// "fast weights, rule delta_pre, drive x", or the name of another architecture.
std::string model_text(const ModelConfig& model);

/// How much of a series a page shows; a page stays below some megabytes.
struct ViewLimits {
  int64_t frames = 60;             ///< times at which weights are shown
  int64_t observations = 200'000;  ///< numbers
  int64_t weights = 800'000;       ///< numbers
  int64_t rows_explained = 4'000;  ///< longer series have no importance, which takes seconds
};
/// One series of the prepared part, and the model on it.
report::WeightView weight_view(const TrainedModel& trained, const PreparedData& data, int64_t sample,
                               const ViewLimits& limits);

/// Writes report.json, report.html and model_card.md.
void write_report(const std::string& folder, const Run& run, const RunResult& result,
                  const std::vector<std::string>& series = {});

}  // namespace fastweights
