#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "data_options.h"
#include "errors.h"

namespace fastweights::cli {
namespace {

struct PredictCommand {
  std::string device = "auto";
  std::string run, out;
  DataOptions data;
  int64_t ahead = 0;
  bool escape_formulas = false;
};

// a name in the table: quoted if it contains a comma, a quote or a line break
std::string field(const PredictCommand& command, std::string text) {
  // what spreadsheets would compute
  const bool formula = !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos;
  if (command.escape_formulas && formula) text.insert(0, "'");
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// nine digits of a prediction
std::string nine_digits(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

// the shortest text that reads back as the same number
std::string exact(double x) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

std::string row_begin(const PredictCommand& command, const DataSet& data, const Predictions& p, int64_t row) {
  return field(command, data.ids[static_cast<size_t>(p.samples.data_ptr<int64_t>()[row])]) + "," +
         exact(p.times.data_ptr<double>()[row]);
}

std::string class_table(const PredictCommand& command, const TrainedModel& trained, const DataSet& data,
                        Session& session) {
  const Predictions p = trained.predict(data);
  if (!check_finite(p, data, session)) return "";
  print_note(p);
  const std::vector<std::string>& names = trained.preparation.classes;
  const Tensor values = class_probabilities(p.outputs).contiguous();  // [M, K]
  const Tensor guesses = predicted_classes(values, trained.threshold);
  std::string text = "id,time,predicted";
  for (const std::string& name : names) text += "," + field(command, "p(" + name + ")");
  text += "\n";
  const double* v = values.data_ptr<double>();
  for (int64_t row = 0; row < values.size(0); ++row) {
    text += row_begin(command, data, p, row) + "," +
            field(command, names[static_cast<size_t>(guesses[row].item<int64_t>())]);
    for (size_t k = 0; k < names.size(); ++k)
      text += "," + nine_digits(v[static_cast<size_t>(row) * names.size() + k]);
    text += "\n";
  }
  return text;
}

// targets, or channels: future rows, or all rows with their gaps filled
std::string number_table(const PredictCommand& command, const TrainedModel& trained, const DataSet& data,
                         Session& session) {
  const Predictions p = trained.predict(data, {.targets = Targets::Missing});
  if (!check_finite(p, data, session)) return "";
  print_note(p);
  const Tensor values = in_own_units(p.outputs, trained.task, trained.preparation).contiguous();  // [M, O]
  const auto outputs = static_cast<size_t>(values.size(1));
  const double* v = values.data_ptr<double>();
  const bool imputation = trained.task.kind == TaskKind::Imputation, has_ends = p.half_widths.defined();
  const Tensor widths =
      has_ends ? widths_in_own_units(p.half_widths, trained.task, trained.preparation).contiguous() : values;
  const double* half = widths.data_ptr<double>();
  const std::vector<std::string>& names =
      trained.task.kind == TaskKind::Regression ? trained.preparation.targets : trained.preparation.channels;
  std::string text = "id,time";
  for (const std::string& name : names) text += "," + field(command, name);
  for (size_t i = 0; has_ends && i < names.size(); ++i)
    text += "," + field(command, "lower(" + names[i] + ")") + "," + field(command, "upper(" + names[i] + ")");
  text += "\n";
  for (int64_t row = 0; row < values.size(0); ++row) {
    text += row_begin(command, data, p, row);
    std::string bounds;
    for (size_t i = static_cast<size_t>(row) * outputs; i < static_cast<size_t>(row + 1) * outputs; ++i) {
      // imputation has a row for each row of the data, and keeps the observed values
      const bool known = imputation && !std::isnan(data.values[i]);
      text += "," + (known ? exact(data.values[i]) : nine_digits(v[i]));
      if (!has_ends) continue;
      if (known) {
        bounds += "," + exact(data.values[i]) + "," + exact(data.values[i]);
      } else if (std::isnan(half[i])) {
        bounds += ",,";
      } else {
        bounds += "," + nine_digits(v[i] - half[i]) + "," + nine_digits(v[i] + half[i]);
      }
    }
    text += bounds + "\n";
  }
  return text;
}

std::string table(const PredictCommand& command, const TrainedModel& trained, const DataSet& given,
                  Session& session) {
  const TaskKind kind = trained.task.kind;
  FW_CHECK(command.ahead == 0 || kind == TaskKind::Forecast,
           "--ahead is for models that forecast, and this one was trained for another task");
  if (kind == TaskKind::Classification || kind == TaskKind::StepClassification)
    return class_table(command, trained, given, session);
  const DataSet data = match_data(given, trained.preparation);
  if (kind != TaskKind::Forecast) return number_table(command, trained, data, session);
  return number_table(command, trained, with_future(data, trained.task, trained.preparation, command.ahead),
                      session);
}

void run(const PredictCommand& command, Session& session) {
  TrainedModel trained = load_trained(command.run);
  move_to_device(trained.model, command.device);
  const DataSet data = read(command.data, data_for_model(command.data, command.run, trained.preparation));
  const std::string text =
      within_memory("predicting", [&] { return table(command, trained, data, session); });
  if (session.exit_status != 0) return;
  if (command.out.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    replace_file(command.out, text);
    std::printf("%lld series, predictions in %s\n", static_cast<long long>(data.samples()),
                printable(command.out).c_str());
  }
}

}  // namespace

void add_predict(CLI::App& program, Session& session) {
  auto command = std::make_shared<PredictCommand>();
  CLI::App* app = program.add_subcommand("predict", "Apply a trained model to data");
  app->add_option("run", command->run, "folder of a run, or its model.safetensors")->required();
  command->data.label_columns = LabelColumns::Optional;
  add_data_options(*app, command->data, "data to predict");
  app->add_option("--out,-o", command->out, "CSV file to write; default: the standard output");
  app->add_option("--ahead", command->ahead,
                  "number of rows to forecast, a median gap apart; default: the horizon that the model "
                  "was trained "
                  "for. Rows without values at the end of a series give the times themselves")
      ->check(positive());
  app->add_flag("--escape-formulas", command->escape_formulas,
                "put ' before ids and names that begin with =, +, - or @, which spreadsheets would compute");
  app->add_option("--device", command->device, "cpu, cuda, or auto: cuda if it is usable; default: auto");
  app->footer(
      "Prints one row per series, or per time for models of step labels: id, time, predicted class and "
      "probabilities,\n"
      "or predicted values, then lower(NAME) and upper(NAME), the ends of prediction intervals.\n"
      "Imputation returns all rows with their gaps filled, forecasting the future "
      "rows.\n"
      "Example:\n  fastweights predict runs/spirals spirals --out predictions.csv");
  app->callback([command, &session] { run(*command, session); });
}

}  // namespace fastweights::cli
