#include <cmath>
#include <cstdio>
#include <memory>

#include "data_options.h"
#include "fastweights/error.h"

namespace fastweights::cli {
namespace {

struct PredictCommand {
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

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

std::string row_begin(const PreparedData& data, const Predictions& p, int64_t row) {
  return field(data.ids[static_cast<size_t>(p.samples.data_ptr<int64_t>()[row])]) + "," +
         number(p.times.data_ptr<double>()[row]);
}

std::string numbers(const double* values, size_t count) {
  std::string text;
  for (size_t k = 0; k < count; ++k) text += "," + number(values[k]);
  return text + "\n";
}

std::string class_table(const TrainedModel& trained, const PreparedData& data) {
  const Predictions p = predict(trained.model, data, trained.preparation, trained.task);
  const std::vector<std::string>& names = trained.preparation.classes;
  const Tensor values = class_probabilities(p.outputs).contiguous();  // [M, K]
  const Tensor guesses = predicted_classes(values, trained.threshold);
  std::string text = "id,time,predicted";
  for (const std::string& name : names) text += "," + field("p(" + name + ")");
  text += "\n";
  for (int64_t row = 0; row < values.size(0); ++row)
    text += row_begin(data, p, row) + "," + field(names[static_cast<size_t>(guesses[row].item<int64_t>())]) +
            numbers(values.data_ptr<double>() + row * values.size(1), names.size());
  return text;
}

// targets, or channels: those to come, or all rows with their gaps filled
std::string number_table(const TrainedModel& trained, const DataSet& data) {
  const PreparedData prepared = prepare(data, trained.preparation);
  const Predictions p =
      predict(trained.model, prepared, trained.preparation, trained.task, {.wanted = Wanted::Missing});
  const Tensor values = in_own_units(p.outputs, trained.task, trained.preparation).contiguous();  // [M, O]
  const auto outputs = static_cast<size_t>(values.size(1));
  double* v = values.data_ptr<double>();
  if (trained.task.kind == TaskKind::Imputation) {
    // a row of predictions for each row of the data, and what is known stays
    for (size_t i = 0; i < data.values.size(); ++i) {
      if (!std::isnan(data.values[i])) v[i] = data.values[i];
    }
  }
  std::string text = "id,time";
  for (const std::string& name :
       trained.task.kind == TaskKind::Regression ? trained.preparation.targets : trained.preparation.channels)
    text += "," + field(name);
  text += "\n";
  for (int64_t row = 0; row < values.size(0); ++row)
    text += row_begin(prepared, p, row) + numbers(v + static_cast<size_t>(row) * outputs, outputs);
  return text;
}

std::string table(const PredictCommand& command, const TrainedModel& trained, const DataSet& given) {
  const TaskKind kind = trained.task.kind;
  FW_CHECK(command.ahead == 0 || kind == TaskKind::Forecast,
           "--ahead is for a model that forecasts, and this one was trained for another task");
  const DataSet data = matched(given, trained.preparation);
  if (kind == TaskKind::Classification || kind == TaskKind::StepClassification)
    return class_table(trained, prepare(data, trained.preparation));
  if (kind != TaskKind::Forecast) return number_table(trained, data);
  return number_table(trained, with_future(data, trained.task, trained.preparation, command.ahead));
}

void run(const PredictCommand& command) {
  const TrainedModel trained = load_trained(command.run);
  const DataSet data = read(command.data, data_for_model(command.data, command.run));
  const std::string text = table(command, trained, data);
  if (command.out.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    replace_file(command.out, text);
    std::printf("%lld series, predictions in %s\n", static_cast<long long>(data.samples()),
                command.out.c_str());
  }
}

}  // namespace

void add_predict(CLI::App& program, Session&) {
  auto command = std::make_shared<PredictCommand>();
  CLI::App* app = program.add_subcommand("predict", "Apply a trained model to data");
  app->add_option("run", command->run, "folder of a run, or its model.safetensors")->required();
  command->data.answers = Answers::Optional;
  add_data_options(*app, command->data, "what to apply it to");
  app->add_option("--out,-o", command->out, "CSV file; default: the terminal");
  app->add_option(
         "--ahead", command->ahead,
         "forecast so many rows, a median gap apart; default: the share that the model was trained for. "
         "Rows without values at the end of a series say their times themselves")
      ->check(positive());
  app->footer(
      "One row per series, or per time if the model was trained so: id, time, predicted class and "
      "probabilities; or\n"
      "numbers. A model of imputation gives back all rows with their gaps filled, one of forecasts the rows "
      "to come.\n"
      "Example:\n  fastweights predict runs/spirals spirals --out predictions.csv");
  app->callback([command] { run(*command); });
}

}  // namespace fastweights::cli
