#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "data_options.h"

namespace fastweights::cli {
namespace {

struct PredictCommand {
  std::string device = "auto";
  std::string run, out;
  DataOptions data;
  int64_t ahead = 0;
};

// in quotes, if a comma, a quote or a line's end is in it
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// nine digits of what a model says
std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

// the shortest text that is the same number again
std::string exact(double x) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

std::string row_begin(const PreparedData& data, const Predictions& p, int64_t row) {
  return field(data.ids[static_cast<size_t>(p.samples.data_ptr<int64_t>()[row])]) + "," +
         exact(p.times.data_ptr<double>()[row]);
}

std::string class_table(const TrainedModel& trained, const PreparedData& data, Session& session) {
  const Predictions p = predict(trained.model, data, trained.preparation, trained.task);
  if (!check_finite(p, data, session)) return "";
  const std::vector<std::string>& names = trained.preparation.classes;
  const Tensor values = class_probabilities(p.outputs).contiguous();  // [M, K]
  const Tensor guesses = predicted_classes(values, trained.threshold);
  std::string text = "id,time,predicted";
  for (const std::string& name : names) text += "," + field("p(" + name + ")");
  text += "\n";
  const double* v = values.data_ptr<double>();
  for (int64_t row = 0; row < values.size(0); ++row) {
    text += row_begin(data, p, row) + "," + field(names[static_cast<size_t>(guesses[row].item<int64_t>())]);
    for (size_t k = 0; k < names.size(); ++k)
      text += "," + number(v[static_cast<size_t>(row) * names.size() + k]);
    text += "\n";
  }
  return text;
}

// targets, or channels: those to come, or all rows with their gaps filled
std::string number_table(const TrainedModel& trained, const DataSet& data, Session& session) {
  const PreparedData prepared = prepare(data, trained.preparation);
  const Predictions p =
      predict(trained.model, prepared, trained.preparation, trained.task, {.wanted = Wanted::Missing});
  if (!check_finite(p, prepared, session)) return "";
  const Tensor values = in_own_units(p.outputs, trained.task, trained.preparation).contiguous();  // [M, O]
  const auto outputs = static_cast<size_t>(values.size(1));
  const double* v = values.data_ptr<double>();
  const bool imputation = trained.task.kind == TaskKind::Imputation;
  std::string text = "id,time";
  for (const std::string& name :
       trained.task.kind == TaskKind::Regression ? trained.preparation.targets : trained.preparation.channels)
    text += "," + field(name);
  text += "\n";
  for (int64_t row = 0; row < values.size(0); ++row) {
    text += row_begin(prepared, p, row);
    for (size_t i = static_cast<size_t>(row) * outputs; i < static_cast<size_t>(row + 1) * outputs; ++i) {
      // imputation has a row for each row of the data, and what is known stays
      const bool known = imputation && !std::isnan(data.values[i]);
      text += "," + (known ? exact(data.values[i]) : number(v[i]));
    }
    text += "\n";
  }
  return text;
}

std::string table(const PredictCommand& command, const TrainedModel& trained, const DataSet& given,
                  Session& session) {
  const TaskKind kind = trained.task.kind;
  FW_CHECK(command.ahead == 0 || kind == TaskKind::Forecast,
           "--ahead is for a model that forecasts, and this one was trained for another task");
  const DataSet data = match_data(given, trained.preparation);
  if (kind == TaskKind::Classification || kind == TaskKind::StepClassification)
    return class_table(trained, prepare(data, trained.preparation), session);
  if (kind != TaskKind::Forecast) return number_table(trained, data, session);
  return number_table(trained, with_future(data, trained.task, trained.preparation, command.ahead), session);
}

void run(const PredictCommand& command, Session& session) {
  TrainedModel trained = load_trained(command.run);
  move_to_device(trained.model, command.device);
  const DataSet data = read(command.data, data_for_model(command.data, command.run, trained.preparation));
  const std::string text = table(command, trained, data, session);
  if (session.exit_status != 0) return;
  if (command.out.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    replace_file(command.out, text);
    std::printf("%lld series, predictions in %s\n", static_cast<long long>(data.samples()),
                command.out.c_str());
  }
}

}  // namespace

void add_predict(CLI::App& program, Session& session) {
  auto command = std::make_shared<PredictCommand>();
  CLI::App* app = program.add_subcommand("predict", "Apply a trained model to data");
  app->add_option("run", command->run, "folder of a run, or its model.safetensors")->required();
  command->data.label_columns = LabelColumns::Optional;
  add_data_options(*app, command->data, "what to apply it to");
  app->add_option("--out,-o", command->out, "CSV file; default: the terminal");
  app->add_option(
         "--ahead", command->ahead,
         "forecast so many rows, a median gap apart; default: the share that the model was trained for. "
         "Rows without values at the end of a series say their times themselves")
      ->check(positive());
  app->add_option("--device", command->device,
                  "cpu, cuda, or auto: cuda where it can be used; default: auto");
  app->footer(
      "One row per series, or per time if the model was trained so: id, time, predicted class and "
      "probabilities; or\n"
      "numbers. A model of imputation gives back all rows with their gaps filled, one of forecasts the rows "
      "to come.\n"
      "Example:\n  fastweights predict runs/spirals spirals --out predictions.csv");
  app->callback([command, &session] { run(*command, session); });
}

}  // namespace fastweights::cli
