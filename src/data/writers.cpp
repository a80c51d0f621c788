#include "data/writers.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "data/counts.h"
#include "data/text.h"
#include "data/text_channels.h"

namespace fastweights::data {
namespace {

namespace fs = std::filesystem;

std::string cell(std::string_view text) {
  const bool plain = text.find_first_of(",;\t\"\r\n") == std::string_view::npos && trimmed(text) == text;
  if (plain) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

// a missing value is an empty cell
std::string cell(double x) { return std::isnan(x) ? "" : exact(x); }

// the cells of a table
class Table {
 public:
  explicit Table(const DataSet& data)
      : data_(data),
        channels_(shown_columns(data.head.channels, data.head.channel_texts)),
        statics_(shown_columns(data.head.statics, data.head.static_texts)) {
    parts_ = std::any_of(data.parts.begin(), data.parts.end(), [](Part part) { return part != Part::Any; });
    groups_ =
        std::any_of(data.groups.begin(), data.groups.end(), [](const auto& group) { return !group.empty(); });
  }

  // part and group of a series, or their names
  std::string front_names() const {
    return std::string(parts_ ? ",part" : "") + (groups_ ? "," + cell(data_.head.source.group) : "");
  }
  std::string front(size_t b) const {
    std::string row;
    if (parts_) row += "," + part_name(data_.parts[b]);
    if (groups_) row += "," + cell(data_.groups[b]);
    return row;
  }

  // static features and targets of a series, or their names
  std::string back_names() const { return names(statics_) + names(data_.head.targets); }
  std::string back(size_t b) const {
    return shown_cells(statics_, data_.statics, b, data_.head.statics.size()) +
           cells(data_.targets, b, data_.head.targets.size());
  }

  // channels and unused cells of a row, or their names
  std::string row_names() const { return names(channels_) + names(data_.head.unused); }
  std::string row_values(size_t row) const {
    std::string text = shown_cells(channels_, data_.values, row, data_.head.channels.size());
    const size_t unused = data_.head.unused.size();
    for (size_t i = row * unused; i < (row + 1) * unused; ++i) text += "," + cell(data_.unused[i]);
    return text;
  }

  std::string label(int64_t index) const {
    return index < 0 ? "" : cell(data_.head.classes[static_cast<size_t>(index)]);
  }

  std::string time(size_t row) const { return cell(time_text(data_, static_cast<int64_t>(row))); }
  // names of all columns between the fixed ones
  std::vector<std::string> own_names() const {
    std::vector<std::string> all = data_.head.targets;
    for (const auto* columns : {&channels_, &statics_}) {
      for (const ShownColumn& column : *columns) all.push_back(column.name);
    }
    all.insert(all.end(), data_.head.unused.begin(), data_.head.unused.end());
    return all;
  }

 private:
  static std::string names(const std::vector<ShownColumn>& columns) {
    std::string row;
    for (const ShownColumn& column : columns) row += "," + cell(column.name);
    return row;
  }
  static std::string names(const std::vector<std::string>& names) {
    std::string row;
    for (const std::string& name : names) row += "," + cell(name);
    return row;
  }
  // numbers, and the text whose channel is 1
  static std::string shown_cells(const std::vector<ShownColumn>& columns, const std::vector<double>& values,
                                 size_t row, size_t width) {
    std::string text;
    const double* first = values.data() + row * width;
    for (const ShownColumn& column : columns) {
      if (column.values.empty()) {
        text += "," + cell(first[column.channels[0]]);
        continue;
      }
      const std::optional<size_t> value = column.largest(first);
      const bool known = value && first[column.channels[*value]] > 0;
      text += "," + (known ? cell(column.values[*value]) : "");
    }
    return text;
  }
  static std::string cells(const std::vector<double>& values, size_t row, size_t count) {
    std::string text;
    for (size_t i = row * count; i < (row + 1) * count; ++i) text += "," + cell(values[i]);
    return text;
  }

  const DataSet& data_;
  std::vector<ShownColumn> channels_, statics_;
  bool parts_ = false, groups_ = false;
};

// rejects names that would not read back
void check_table(const DataSet& data, const std::string& path) {
  const SourceColumns& source = data.head.source;
  std::set<std::string> names = {source.id, source.time, source.label, source.group, "part"};
  for (const std::string& name : Table(data).own_names()) {
    if (name.empty() || trimmed(name) != name || !names.insert(name).second)
      refuse_writing(path, "the column name ", in_quotes(name), " is reserved, empty or duplicate");
  }
  for (const std::string& name : data.head.classes) {
    if (is_missing(name)) refuse_writing(path, "the class ", in_quotes(name), " would read as unknown");
  }
  std::set<std::string> ids;
  for (const std::string& id : data.ids) {
    if (id.empty() || !ids.insert(id).second) refuse_writing(path, "empty or duplicate id ", in_quotes(id));
  }
}

// a table, and its counts; those of the old table never stand beside the new one
void write_counted(const std::string& path, std::string_view text, const DataSet& data) {
  const std::string counts = counts_file(path);
  std::error_code error;
  fs::remove(counts, error);
  write_table(path, text);
  // not beside /dev/stdout
  if (fs::is_regular_file(fs::symlink_status(path, error))) replace_file(counts, counts_text(data) + "\n");
}

bool all_steps_unknown(const DataSet& data, size_t b) {
  return std::all_of(data.step_labels.begin() + data.offsets[b],
                     data.step_labels.begin() + data.offsets[b + 1], [](int64_t label) { return label < 0; });
}

}  // namespace

std::string part_name(Part part) {
  if (part == Part::Train) return "train";
  if (part == Part::Validation) return "validation";
  return part == Part::Test ? "test" : "any";
}

void write_table(const std::string& path, std::string_view bytes) {
  const fs::path parent = fs::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) fs::create_directories(parent, error);
  replace_file(path, bytes);
}

void write_csv(const DataSet& data, const std::string& path) {
  check_table(data, path);
  const bool steps = !data.step_labels.empty(), labels = !data.labels.empty();
  if (steps && labels)
    refuse_writing(
        path, "a table has one label column, but this set has labels of series and of steps; write .npz");
  const Table table(data);
  const SourceColumns& source = data.head.source;
  std::string text = cell(source.id) + table.front_names() + "," + cell(source.time) + table.row_names() +
                     table.back_names() + (steps || labels ? "," + cell(source.label) : "") + "\n";
  for (size_t b = 0; b < data.ids.size(); ++b) {
    const std::string front = cell(data.ids[b]) + table.front(b) + ",", back = table.back(b);
    for (auto row = static_cast<size_t>(data.offsets[b]); row < static_cast<size_t>(data.offsets[b + 1]);
         ++row) {
      text += front + table.time(row) + table.row_values(row) + back;
      if (steps) text += "," + table.label(data.step_labels[row]);
      if (labels) text += "," + table.label(data.labels[b]);
      text += '\n';
    }
  }
  write_counted(path, text, data);
}

void write_csv_folder(const DataSet& data, const std::string& path) {
  check_table(data, path);
  for (const std::string& id : data.ids) {
    if (id == "labels" || id.find('/') != std::string::npos)
      refuse_writing(path, in_quotes(id + ".csv"), " cannot be the name of a file there");
  }
  const Table table(data);
  const bool labels = !data.labels.empty();
  const SourceColumns& source = data.head.source;
  std::string list = cell(source.id) + (labels ? "," + cell(source.label) : "") + table.front_names() +
                     table.back_names() + "\n";
  for (size_t b = 0; b < data.ids.size(); ++b) {
    list += cell(data.ids[b]) + (labels ? "," + table.label(data.labels[b]) : "") + table.front(b) +
            table.back(b) + "\n";
    const bool steps = !data.step_labels.empty() && !all_steps_unknown(data, b);
    std::string text = cell(source.time) + table.row_names() + (steps ? "," + cell(source.label) : "") + "\n";
    for (auto row = static_cast<size_t>(data.offsets[b]); row < static_cast<size_t>(data.offsets[b + 1]);
         ++row) {
      text += table.time(row) + table.row_values(row);
      if (steps) text += "," + table.label(data.step_labels[row]);
      text += '\n';
    }
    write_table((fs::path(path) / (data.ids[b] + ".csv")).string(), text);
  }
  write_counted((fs::path(path) / "labels.csv").string(), list, data);
}

std::string npz_of(const DataSet& data, Packing packing) {
  const int64_t samples = data.samples(), rows = data.rows();
  const auto count = [](const auto& names) { return static_cast<int64_t>(names.size()); };
  std::map<std::string, NpyArray> arrays;
  arrays["values"] = real_array({rows, data.channels()}, data.values);
  arrays["times"] = real_array({rows}, data.times);
  arrays["offsets"] = integer_array(data.offsets);
  arrays["ids"] = text_array(data.ids);
  arrays["groups"] = text_array(data.groups);
  arrays["channels"] = text_array(data.head.channels);
  std::vector<std::string> parts;
  for (const Part part : data.parts) parts.push_back(part_name(part));
  arrays["parts"] = text_array(parts);
  if (!data.head.classes.empty()) arrays["classes"] = text_array(data.head.classes);
  if (!data.labels.empty()) arrays["labels"] = integer_array(data.labels);
  if (!data.step_labels.empty()) arrays["step_labels"] = integer_array(data.step_labels);
  if (!data.head.statics.empty()) {
    arrays["statics"] = real_array({samples, count(data.head.statics)}, data.statics);
    arrays["static_names"] = text_array(data.head.statics);
  }
  if (!data.head.targets.empty()) {
    arrays["targets"] = real_array({samples, count(data.head.targets)}, data.targets);
    arrays["target_names"] = text_array(data.head.targets);
  }
  arrays["time_unit"] = text_array({data.head.time_unit});
  arrays["time_zero"] = text_array({data.head.time_zero});
  if (!data.head.date_form.empty()) arrays["date_form"] = text_array({data.head.date_form});
  const SourceColumns& source = data.head.source;
  const std::vector<std::string> columns = {source.id, source.time, source.label, source.group};
  if (columns != std::vector<std::string>{"id", "time", "label", "group"})
    arrays["source_columns"] = text_array(columns);
  for (const auto& [name, texts] : {std::pair("channel_texts", &data.head.channel_texts),
                                    std::pair("static_texts", &data.head.static_texts)}) {
    if (!texts->empty()) arrays[name] = text_array(flattened(*texts));
  }
  return npz_bytes(arrays, packing);
}

void write_npz(const DataSet& data, const std::string& path, Packing packing) {
  write_table(path, npz_of(data, packing));
}

}  // namespace fastweights::data

namespace fastweights {

void write_data(const DataSet& data, const std::string& path, const std::string& format) {
  const std::string ending = data::lowercase(std::filesystem::path(path).extension().string());
  const std::string chosen = !format.empty() ? format : ending.empty() ? "csv-folder" : ending.substr(1);
  if (chosen == "csv") return data::write_csv(data, path);
  if (chosen == "csv-folder") return data::write_csv_folder(data, path);
  if (chosen == "npz") return data::write_npz(data, path);
  if (chosen == "ts") return data::write_ts(data, path);
  FW_CHECK(false, "[write_data] cannot write the format ", data::in_quotes(chosen),
           "; expected csv, csv-folder, npz or ts");
}

}  // namespace fastweights
