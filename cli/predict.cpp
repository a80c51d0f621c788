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

using Row = std::vector<std::string>;

struct PredictCommand {
  std::string device = "auto";
  std::string run, out;
  DataOptions data;
  int64_t ahead = 0;
  bool escape_formulas = false;
  // PredictOptions
  Targets targets = Targets::Missing;
  std::vector<int64_t> members = {};
};

// the cells of the table, with the marks of the source
class Cells {
 public:
  Cells(const PredictCommand& command, const DataHead& head)
      : escape_formulas_(command.escape_formulas), head_(head) {}

  // a name, which spreadsheets may compute
  std::string text(const std::string& name) const {
    const bool formula =
        !name.empty() && std::string_view("=+-@\t\r").find(name[0]) != std::string_view::npos;
    return quoted(escape_formulas_ && formula ? "'" + name : name);
  }
  // a cell of the data, where a number is no formula
  std::string own(const std::string& cell) const {
    std::string point = cell;
    std::replace(point.begin(), point.end(), head_.source.decimal, '.');
    double x = 0;
    const char* end = point.data() + point.size();
    const bool number = std::from_chars(point.data(), end, x).ptr == end && !cell.empty();
    return number ? quoted(cell) : text(cell);
  }
  // as the data write times
  std::string time(const std::string& shown) const {
    return head_.date_form.empty() ? number(shown) : own(shown);
  }
  // nine digits of a prediction
  std::string predicted(double x) const {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", x);
    return number(digits);
  }
  // the shortest text that reads back as the same number
  std::string exact(double x) const {
    char digits[32];
    return number({digits, std::to_chars(digits, digits + sizeof digits, x).ptr});
  }
  // the value of a column in a row of outputs, or of data, where it is exact
  std::string value(const ShownColumn& column, const double* row, bool known) const {
    if (!column.values.empty()) return text(column.values[*column.largest(row)]);
    const double x = row[column.channels[0]];
    return known ? exact(x) : predicted(x);
  }
  std::string line(const Row& cells) const {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) text += (i > 0 ? separator() : "") + cells[i];
    return text + "\n";
  }

 private:
  std::string separator() const { return {head_.source.separator}; }
  // with the decimal mark of the source
  std::string number(std::string digits) const {
    std::replace(digits.begin(), digits.end(), '.', head_.source.decimal);
    return quoted(digits);
  }
  // in quotes if it contains the separator, a quote or a line break
  std::string quoted(const std::string& cell) const {
    if (cell.find_first_of("\"\r\n" + separator()) == std::string::npos) return cell;
    std::string result = "\"";
    for (const char c : cell) result += c == '"' ? std::string("\"\"") : std::string(1, c);
    return result + "\"";
  }

  bool escape_formulas_;
  const DataHead& head_;
};

void append(Row& row, const Row& more) { row.insert(row.end(), more.begin(), more.end()); }

// how the rows of a table refer to the rows of the data
class SourceRows {
 public:
  SourceRows(const Cells& cells, const DataSet& data, const Predictions& p)
      : cells_(cells),
        data_(data),
        samples_(p.samples.data_ptr<int64_t>()),
        times_(p.times.data_ptr<double>()) {}

  // names of the series and of the time, as the source has them
  Row first_names() const { return {cells_.text(data_.head.source.id), cells_.text(data_.head.source.time)}; }
  Row first_cells(int64_t row) const {
    const std::optional<int64_t> at = find(row);
    const std::string time = at ? time_text(data_, *at) : time_text(data_.head, times_[row]);
    return {cells_.text(data_.ids[static_cast<size_t>(samples_[row])]), cells_.time(time)};
  }
  // unused columns, in the row of the same time
  Row last_names() const {
    Row names;
    for (const std::string& name : data_.head.unused) names.push_back(cells_.text(name));
    return names;
  }
  Row last_cells(int64_t row) const {
    const size_t count = data_.head.unused.size();
    if (count == 0) return {};
    const std::optional<int64_t> at = find(row);
    Row cells;
    for (size_t i = 0; i < count; ++i)
      cells.push_back(at ? cells_.own(data_.unused[static_cast<size_t>(*at) * count + i]) : "");
    return cells;
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

  const Cells& cells_;
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
  const Cells cells(command, data.head);
  const SourceRows rows(cells, data, p);
  Row header = rows.first_names();
  header.emplace_back("predicted");
  for (const std::string& name : names) header.push_back(cells.text("p(" + name + ")"));
  append(header, rows.last_names());
  std::string text = cells.line(header);
  const double* v = values.data_ptr<double>();
  for (int64_t row = 0; row < values.size(0); ++row) {
    Row line = rows.first_cells(row);
    line.push_back(cells.text(names[static_cast<size_t>(guesses[row].item<int64_t>())]));
    for (size_t k = 0; k < names.size(); ++k)
      line.push_back(cells.predicted(v[static_cast<size_t>(row) * names.size() + k]));
    append(line, rows.last_cells(row));
    text += cells.line(line);
  }
  return text;
}

// a predicted column: targets are numbers, channels numbers or text
std::vector<ShownColumn> columns_of(const TrainedModel& trained) {
  const Preparation& p = trained.preparation;
  return trained.task.kind == TaskKind::Regression ? shown_columns(p.targets, {})
                                                   : shown_columns(p.channels, p.channel_texts);
}

// names of predicted columns, of marks of imputed values, and of the ends of intervals
Row number_names(const Cells& cells, const std::vector<ShownColumn>& columns, bool marks, bool ends) {
  Row names;
  for (const ShownColumn& column : columns) names.push_back(cells.text(column.name));
  for (const ShownColumn& column : columns) {
    if (marks) names.push_back(cells.text("imputed(" + column.name + ")"));
  }
  for (const ShownColumn& column : columns) {
    if (ends && column.values.empty())
      append(names, {cells.text("lower(" + column.name + ")"), cells.text("upper(" + column.name + ")")});
  }
  return names;
}

// the ends of an interval; those of an observed value are the value
Row interval_cells(const Cells& cells, double x, bool known, double half) {
  if (known) return {cells.exact(x), cells.exact(x)};
  if (std::isnan(half)) return {"", ""};
  return {cells.predicted(x - half), cells.predicted(x + half)};
}

// targets, or channels: future rows, or all rows with their gaps filled
std::string number_table(const PredictCommand& command, const TrainedModel& trained, const DataSet& data,
                         Session& session) {
  const Predictions p = trained.predict(data, {.targets = command.targets, .members = command.members});
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
  const Cells cells(command, data.head);
  const SourceRows rows(cells, data, p);
  Row header = rows.first_names();
  append(header, number_names(cells, columns, imputation, has_ends));
  append(header, rows.last_names());
  std::string text = cells.line(header);
  for (int64_t row = 0; row < values.size(0); ++row) {
    Row line = rows.first_cells(row), marks, ends;
    const size_t first = static_cast<size_t>(row) * outputs;
    for (const ShownColumn& column : columns) {
      // imputation has a row for each row of the data, and keeps the observed values
      const size_t i = first + column.channels[0];
      const bool known = imputation && !std::isnan(data.values[i]);
      line.push_back(cells.value(column, (known ? data.values.data() : v) + first, known));
      if (imputation) marks.emplace_back(known ? "0" : "1");
      if (has_ends && column.values.empty())
        append(ends, interval_cells(cells, known ? data.values[i] : v[i], known, half[i]));
    }
    for (const Row& more : {marks, ends, rows.last_cells(row)}) append(line, more);
    text += cells.line(line);
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
  if (kind != TaskKind::Forecast || command.targets == Targets::HeldOut)
    return number_table(command, trained, data, session);
  // a fraction of each series is no fixed number of rows
  if (trained.task.horizon >= 1 && static_cast<double>(command.ahead) > trained.task.horizon)
    print_notes(command.data, {message("the model was trained to forecast ", trained.task.horizon,
                                       " rows; the errors of later ones are unknown, and their intervals do "
                                       "not grow")});
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
  print_notes(command.data, match_notes(data, trained.preparation));
  const std::string text =
      within_memory("predicting", [&] { return table(command, trained, data, session); });
  if (session.exit_status != 0) return;
  if (command.out.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    replace_file(command.out, text);
    std::printf("%lld series, predictions in %s\n", static_cast<long long>(data.samples()),
                printable(command.out).c_str());
    // it decides, not which class is the more probable one
    if (is_classification(trained.task.kind) && trained.preparation.classes.size() == 2)
      std::printf("'%s' is predicted from a probability of %.3f on\n",
                  printable(trained.preparation.classes[1]).c_str(), trained.threshold);
  }
}

}  // namespace

void write_out_of_fold(const std::string& folder, const DataSet& data, Session& session) {
  PredictCommand command;
  command.run = folder;
  command.out = folder + "/predictions.csv";
  const PartSamples part = choose_part(folder, data, "", "test");
  command.members = part.members;
  DataSet series = series_of(data, part);
  for (size_t i = 0; i < part.windows.size(); ++i)
    series.ids[i] = data.ids[static_cast<size_t>(part.windows[i].sample)];
  const TrainedModel trained = load_trained(folder);
  // windows end before the end of their series: they forecast the rows that are held out
  if (!part.windows.empty() && trained.task.kind == TaskKind::Forecast) command.targets = Targets::HeldOut;
  // the runs have noted what there is to note
  command.data.quiet = true;
  const std::string text =
      within_memory("predicting", [&] { return table(command, trained, series, session); });
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
      "Names of columns, ids, dates, separator and decimal mark are those of the data, and unused columns "
      "follow.\n"
      "Example:\n  fastweights predict runs/spirals spirals --out predictions.csv");
  app->callback([command, &session] { run(*command, session); });
}

}  // namespace fastweights::cli
