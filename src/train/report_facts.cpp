#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "train/fit.h"
#include "train/report_data.h"
#include "train/run_fields.h"
#include "train/run_files.h"
#include "train/settings.h"

/// What a report says about a run in words: data, model, settings, machine, commands.

namespace fastweights {
namespace {

using report::ReportData;

std::map<std::string, std::string> keys_of(const Json& json) {
  std::map<std::string, std::string> keys;
  for (const Setting& setting : settings_from_json(json)) keys[setting.key] = shown_value(setting);
  return keys;
}

// keys of the first that have another value, or none, in the second
std::vector<report::ChangedSetting> differences(const Json& ours, const Json& usual) {
  const std::map<std::string, std::string> defaults = keys_of(usual);
  std::vector<report::ChangedSetting> out;
  for (const Setting& setting : settings_from_json(ours)) {
    const auto known = defaults.find(setting.key);
    const std::string value = shown_value(setting);
    if (known == defaults.end() || known->second != value)
      out.push_back({setting.key, value, known == defaults.end() ? "unset" : known->second});
  }
  return out;
}

// the name that a run began with; of runs of earlier versions, which do not keep it, the one whose defaults
// differ least
struct Begun {
  std::string name;
  ModelConfig usual;
};
Begun begun_as(const Run& run, const std::string& name) {
  const std::vector<std::string> names = model_names();
  if (std::find(names.begin(), names.end(), name) != names.end())
    return {name, default_model(name, run.data)};
  const Json ours = json_of(run.config.model);
  Begun best;
  size_t fewest = std::numeric_limits<size_t>::max();
  for (const std::string& name : model_names()) {
    const ModelConfig usual = default_model(name, run.data);
    if (usual.architecture.name() != run.config.model.architecture.name()) continue;
    const size_t count = differences(ours, json_of(usual)).size();
    if (count < fewest) best = {name, usual};
    fewest = std::min(fewest, count);
  }
  if (best.name.empty()) best = {run.config.model.architecture.name(), run.config.model};
  return best;
}

std::string rate_text(double rate) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", rate);
  return text;
}

// names separated by commas; of many the first
std::string list_of(const std::vector<std::string>& names) {
  constexpr size_t kMost = 20;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMost; ++i) text += (i ? ", " : "") + names[i];
  return names.size() > kMost ? message(text, ", ... (", names.size(), " in all)") : text;
}

void add_machine(ReportData& report, const Json& environment) {
  if (environment.empty()) return;
  report.facts.emplace_back(
      "Version", message("fastweights ", text_at(environment, "fastweights"), ", LibTorch ",
                         text_at(environment, "libtorch"), ", ", text_at(environment, "compiler")));
  report.facts.emplace_back(
      "Machine",
      message(text_at(environment, "processor"), ", ", text_at(environment, "cores"), " cores, threads ",
              text_at(environment, "threads"), ", ", text_at(environment, "instructions")));
}

report::Pairs data_facts(const Run& run) {
  const DataHead& head = run.data.head;
  const Tensor& values = run.data.train.values;
  const auto missing = static_cast<double>(at::count_nonzero(values.isnan()).item<int64_t>());
  const auto all = static_cast<double>(std::max<int64_t>(values.numel(), 1));
  report::Pairs out = {{"name", head.name + " (" + head.origin + ")"},
                       {"path", run.config.data.path},
                       {"fingerprint", run.data.fingerprint},
                       {"channels", list_of(head.channels)}};
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) out.emplace_back(name, text);
  };
  add("split", run.data.split_note);
  add("classes", list_of(run.data.preparation.classes));
  add("targets", list_of(head.targets));
  add("static features", list_of(head.statics));
  add("unit of time", head.time_unit);
  add("missing values",
      rate_text(static_cast<double>(std::lround(1000 * missing / all)) / 10) + " % of the training part");
  return out;
}

}  // namespace

std::string model_text(const ModelConfig& model) {
  const FastWeights* fast = model.architecture.get_if<FastWeights>();
  if (!fast) return "architecture " + model.architecture.name();
  return "fast weights, rule " + fast->rule + ", drive " + name_of(fast->drive);
}

void add_facts(ReportData& report, const std::string& folder, const Run& run, const RunResult& result) {
  const RunConfig& config = run.config;
  const Split& parts = run.data.split;
  const Json environment = environment_of(folder);
  const Begun model = begun_as(run, text_at(environment, "model"));
  double seconds = 0;
  for (const TrainEpoch& epoch : result.epochs) seconds += std::isfinite(epoch.seconds) ? epoch.seconds : 0;
  report.subtitle =
      message(name_of(config.task.kind), " with ", model.name, " (", model_text(config.model), ")");
  report.facts = {
      {"Data", run.data.head.name + " (" + run.data.head.origin + ")"},
      {parts.windows.empty() ? "Series" : "Windows",
       message(parts.train.size(), " train, ", parts.validation.size(), " validation, ", parts.test.size(),
               " test; split ", name_of(parts.rule))},
      {"Channels",
       message(run.data.head.channels.size(), " in the data, ", config.model.channels, " for the model")},
      {"Task", name_of(config.task.kind)},
      {"Model", message(model.name, ": ", model_text(config.model))},
      {"Training",
       is_fitted(config.model)
           ? message("fitted to all training series at once, seed ", config.training.seed)
           : message("learning rate ", rate_text(config.training.learning_rate), ", ",
                     name_of(config.training.schedule), " schedule, seed ", config.training.seed)},
      {"Epochs", message(result.epochs.size(), ", best ", result.best_epoch)}};
  if (seconds > 0) report.headline.push_back({"time of training", seconds, "seconds"});
  add_machine(report, environment);
  report.data = data_facts(run);
  RunConfig usual = {.data = config.data, .model = model.usual};
  usual.task.kind = config.task.kind;
  report.model.changed = differences(json_of(config), json_of(usual));
  const std::string run_word = shell_word(folder), data_word = shell_word(config.data.path);
  if (const std::string command = text_at(environment, "command"); !command.empty())
    report.commands.push_back(command);
  report.commands.push_back(message("fastweights evaluate ", run_word, " ", data_word));
  report.commands.push_back(
      message("fastweights predict ", run_word, " ", data_word, " --out predictions.csv"));
  report.commands.push_back(message("fastweights report ", run_word));
}

report::ModelSection model_section(const Model& model) {
  report::ModelSection section = {.summary = model_summary(model.config())};
  section.summary.emplace_back("parameters", message(model.parameter_count()));
  for (const auto& [name, tensor] : model.parameters())
    section.parameters.push_back({name, message(tensor.sizes()), tensor.numel()});
  section.config = to_json(model.config());
  return section;
}

}  // namespace fastweights
