#pragma once

#include "fastweights/run.h"
#include "report/report_data.h"

namespace fastweights {

/// The report of a finished run, of the test part if there is one. The result has the model, and the
/// predictions of that part.
report::ReportData make_report(const std::string& folder, const Run& run, const RunResult& result);

/// One series of the prepared part, and the model on it.
report::WeightView weight_view(const TrainedModel& trained, const PreparedData& data, int64_t sample);

/// Sizes, parameters and configuration of a model.
report::ModelSection model_section(const Model& model);

/// Writes report.json and report.html.
void write_report(const std::string& folder, const Run& run, const RunResult& result);

}  // namespace fastweights
