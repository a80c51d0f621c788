#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "data_options.h"
#include "errors.h"
#include "train_command.h"

namespace fastweights::cli {
namespace {

struct PredictCommand {
  std::string device = "auto";
  std::string run, out;
  DataOptions data;
  int64_t ahead = 0;
  bool escape_formulas = false;
  std::vector<int64_t> members = {};  // PredictOptions::members
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

// a cell of the data, where a number is no formula
std::string own_cell(const PredictCommand& command, const std::string& text) {
  double x = 0;
  const char* end = text.data() + text.size();
  const bool number = std::from_chars(text.data(), end, x).ptr == end && !text.empty();
  return number ? text : field(command, text);
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

// the value of a column in a row of outputs, or of data, where it is exact
std::string value_cell(const PredictCommand& command, const ShownColumn& column, const double* row,
                       bool known) {
  if (!column.values.empty()) return field(command, column.values[*column.largest(row)]);
  const double x = row[column.channels[0]];
  return known ? exact(x) : nine_digits(x);
}

// how the rows of a table refer to the rows of the data
class SourceRows {
 public:
  SourceRows(const PredictCommand& command, const DataSet& data, const Predictions& p)
      : command_(command),
        data_(data),
        samples_(p.samples.data_ptr<int64_t>()),
        times_(p.times.data_ptr<double>()) {}

  // names of the series and of the time, as the source has them
  std::string first_names() const {
    return field(command_, data_.head.source.id) + "," + field(command_, data_.head.source.time);
  }
  std::string first_cells(int64_t row) const {
    const std::optional<int64_t> at = find(row);
    const std::string time = at ? time_text(data_, *at) : time_text(data_.head, times_[row]);
    return field(command_, data_.ids[static_cast<size_t>(samples_[row])]) + "," + own_cell(command_, time);
  }
  // unused columns, in the row of the same time
  std::string last_names() const {
    std::string text;
    for (const std::string& name : data_.head.unused) text += "," + field(command_, name);
    return text;
  }
  std::string last_cells(int64_t row) const {
    const size_t count = data_.head.unused.size();
    if (count == 0) return "";
    const std::optional<int64_t> at = find(row);
    std::string text;
    for (size_t i = 0; i < count; ++i)
      text += "," + (at ? own_cell(command_, data_.unused[static_cast<size_t>(*at) * count + i]) : "");
    return text;
  }

 private:
  // the row of the data with the time of a prediction
  std::optional<int64_t> find(int64_t row) const {
    const auto b = static_cast<size_t>(samples_[row]);
    const auto first = data_.times.begin() + data_.offsets[b],
               last = data_.times.begin() + data_.offsets[b + 1];
    const auto found = std::lower_bound(first, last, times_[row]);
    if (found == last || *found != times_[row]) return std::nullopt;
    return found - data_.times.begin();
  }

  const PredictCommand& command_;
  const DataSet& data_;
  const int64_t* samples_;
  const double* times_;
};

std::string class_table(const PredictCommand& command, const TrainedModel& trained, const DataSet& data,
                        Session& session) {
  const Predictions p = trained.predict(data, {.members = command.members});
  if (!check_finite(p, data, session)) return "";
  print_notes(command.data, {p.note});
  const std::vector<std::string>& names = trained.preparation.classes;
  const Tensor values = class_probabilities(p.outputs).contiguous();  // [M, K]
  const Tensor guesses = predicted_classes(values, trained.threshold);
  const SourceRows rows(command, data, p);
  std::string text = rows.first_names() + ",predicted";
  for (const std::string& name : names) text += "," + field(command, "p(" + name + ")");
  text += rows.last_names() + "\n";
  const double* v = values.data_ptr<double>();
  for (int64_t row = 0; row < values.size(0); ++row) {
    text += rows.first_cells(row) + "," +
            field(command, names[static_cast<size_t>(guesses[row].item<int64_t>())]);
    for (size_t k = 0; k < names.size(); ++k)
      text += "," + nine_digits(v[static_cast<size_t>(row) * names.size() + k]);
    text += rows.last_cells(row) + "\n";
  }
  return text;
}

// a predicted column: targets are numbers, channels numbers or text
std::vector<ShownColumn> columns_of(const TrainedModel& trained) {
  const Preparation& p = trained.preparation;
  return trained.task.kind == TaskKind::Regression ? shown_columns(p.targets, {})
                                                   : shown_columns(p.channels, p.channel_texts);
}

// targets, or channels: future rows, or all rows with their gaps filled
// the ends of an interval; those of an observed value are the value
std::string interval_cells(double x, bool known, double half) {
  if (known) return "," + exact(x) + "," + exact(x);
  return std::isnan(half) ? ",," : "," + nine_digits(x - half) + "," + nine_digits(x + half);
}

std::string number_table(const PredictCommand& command, const TrainedModel& trained, const DataSet& data,
                         Session& session) {
  const Predictions p = trained.predict(data, {.targets = Targets::Missing, .members = command.members});
  if (!check_finite(p, data, session)) return "";
  print_notes(command.data, {p.note});
  const Tensor values = in_own_units(p.outputs, trained.task, trained.preparation).contiguous();  // [M, O]
  const auto outputs = static_cast<size_t>(values.size(1));
  const double* v = values.data_ptr<double>();
  const bool imputation = trained.task.kind == TaskKind::Imputation, has_ends = p.half_widths.defined();
  const Tensor widths =
      has_ends ? widths_in_own_units(p.half_widths, trained.task, trained.preparation).contiguous() : values;
  const double* half = widths.data_ptr<double>();
  const std::vector<ShownColumn> columns = columns_of(trained);
  const SourceRows rows(command, data, p);
  std::string text = rows.first_names();
  for (const ShownColumn& column : columns) text += "," + field(command, column.name);
  for (const ShownColumn& column : columns)
    text += imputation ? "," + field(command, "imputed(" + column.name + ")") : "";
  for (const ShownColumn& column : columns) {
    if (has_ends && column.values.empty())
      text += "," + field(command, "lower(" + column.name + ")") + "," +
              field(command, "upper(" + column.name + ")");
  }
  text += rows.last_names() + "\n";
  for (int64_t row = 0; row < values.size(0); ++row) {
    text += rows.first_cells(row);
    const size_t first = static_cast<size_t>(row) * outputs;
    std::string marks, ends;
    for (const ShownColumn& column : columns) {
      // imputation has a row for each row of the data, and keeps the observed values
      const size_t i = first + column.channels[0];
      const bool known = imputation && !std::isnan(data.values[i]);
      text += "," + value_cell(command, column, (known ? data.values.data() : v) + first, known);
      if (imputation) marks += known ? ",0" : ",1";
      if (has_ends && column.values.empty())
        ends += interval_cells(known ? data.values[i] : v[i], known, half[i]);
    }
    text += marks + ends + rows.last_cells(row) + "\n";
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

void run(PredictCommand& command, Session& session) {
  TrainedModel trained = load_trained(command.run);
  move_to_device(trained, command.device);
  const DataSet data = read(command.data, data_for_model(command.data, command.run, trained.preparation));
  command.members = out_of_fold_members(command.run, data);
  if (!command.members.empty())
    print_notes(command.data, {"each series is predicted by the fold that was not trained on it"});
  print_notes(command.data, notes_on_texts(data, trained.preparation));
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

void write_out_of_fold(const std::string& folder, const DataSet& data, Session& session) {
  PredictCommand command;
  command.run = folder;
  command.out = folder + "/predictions.csv";
  command.members = out_of_fold_members(folder, data);
  // the runs have noted what there is to note
  command.data.quiet = true;
  const std::string text =
      within_memory("predicting", [&] { return table(command, load_trained(folder), data, session); });
  if (session.exit_status == 0) replace_file(command.out, text);
}

void add_predict(CLI::App& program, Session& session) {
  auto command = std::make_shared<PredictCommand>();
  CLI::App* app = program.add_subcommand("predict", "Apply a trained model to data");
  app->add_option("run", command->run, "folder of a run, of folds or of seeds, or a model.safetensors")
      ->required();
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
      "Imputation returns all rows with their gaps filled and marked, forecasting the future rows.\n"
      "Names of columns, ids and dates are those of the data, and unused columns follow.\n"
      "Example:\n  fastweights predict runs/spirals spirals --out predictions.csv");
  app->callback([command, &session] { run(*command, session); });
}

}  // namespace fastweights::cli
