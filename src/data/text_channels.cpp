#include "data/text_channels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "data/text.h"
#include "data/time_axis.h"

namespace fastweights {
namespace data {
namespace {

std::string channel_name(const TextColumn& text, size_t value) {
  return text.column + "=" + text.values[value];
}

std::optional<size_t> index_of_name(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<size_t>(found - names.begin());
}

// positions of all channels of a text column, also of values that are not listed
std::vector<size_t> channels_of(const std::vector<std::string>& names, const std::string& column) {
  std::vector<size_t> found;
  for (size_t c = 0; c < names.size(); ++c) {
    if (names[c].starts_with(column + "=")) found.push_back(c);
  }
  return found;
}

const TextColumn* column_named(const std::vector<TextColumn>& texts, const std::string& name) {
  const auto found =
      std::find_if(texts.begin(), texts.end(), [&](const TextColumn& text) { return text.column == name; });
  return found == texts.end() ? nullptr : &*found;
}

// a channel to add, and those of the same column, which say whether a row has a value
struct NewChannel {
  std::string name;
  std::vector<size_t> others;
};

double absent(const double* row, const std::vector<size_t>& others) {
  const bool known = std::any_of(others.begin(), others.end(), [&](size_t c) { return !std::isnan(row[c]); });
  return known ? 0 : kNaN;
}

// removes channels of values that no used row has; their names
std::vector<std::string> drop_unseen(const NamedTable& table, const std::vector<bool>& used_rows) {
  const size_t width = table.names.size();
  std::vector<bool> seen(width, false);
  for (size_t row = 0; row < used_rows.size(); ++row) {
    for (size_t c = 0; used_rows[row] && c < width; ++c)
      seen[c] = seen[c] || table.values[row * width + c] == 1;
  }
  std::set<size_t> dropped;
  std::vector<std::string> names;
  for (TextColumn& text : table.texts) {
    std::vector<std::string> kept;
    for (size_t i = 0; i < text.values.size(); ++i) {
      const std::optional<size_t> c = index_of_name(table.names, channel_name(text, i));
      if (c && !seen[*c]) {
        dropped.insert(*c);
        names.push_back(table.names[*c]);
      } else {
        kept.push_back(text.values[i]);
      }
    }
    text.values = kept;
  }
  if (dropped.empty()) return names;
  std::vector<size_t> kept;
  for (size_t c = 0; c < width; ++c) {
    if (!dropped.contains(c)) kept.push_back(c);
  }
  table.values = take_columns(table.values, width, kept);
  std::vector<std::string> kept_names;
  for (const size_t c : kept) kept_names.push_back(table.names[c]);
  table.names = kept_names;
  return names;
}

void add_note(std::vector<std::string>& notes, const std::vector<std::string>& names,
              const std::vector<TextColumn>& texts, const std::vector<double>& values,
              const std::vector<TextColumn>& known) {
  for (const TextColumn& text : known) {
    const TextColumn* own = column_named(texts, text.column);
    for (size_t i = 0; own && i < own->values.size(); ++i) {
      const auto& all = text.values;
      if (std::find(all.begin(), all.end(), own->values[i]) != all.end()) continue;
      const std::optional<size_t> c = index_of_name(names, channel_name(*own, i));
      size_t rows = 0;
      for (size_t at = c.value_or(values.size()); at < values.size(); at += names.size())
        rows += values[at] == 1 ? 1 : 0;
      notes.push_back(message("column ", in_quotes(text.column), ": the value ", in_quotes(own->values[i]),
                              " is unknown to the model; its channels are 0 there (", rows,
                              rows == 1 ? " time)" : " times)"));
    }
  }
}

}  // namespace

std::vector<std::string> flattened(const std::vector<TextColumn>& columns) {
  std::vector<std::string> flat;
  for (const TextColumn& column : columns) {
    flat.push_back(column.column);
    flat.push_back(message(column.values.size()));
    flat.insert(flat.end(), column.values.begin(), column.values.end());
  }
  return flat;
}

std::vector<TextColumn> text_columns(const std::vector<std::string>& flat) {
  std::vector<TextColumn> columns;
  for (size_t at = 0; at < flat.size();) {
    const std::optional<double> count = at + 1 < flat.size() ? parse_number(flat[at + 1]) : std::nullopt;
    if (!count || !(*count >= 0 && *count <= static_cast<double>(flat.size() - at - 2)))
      throw std::runtime_error("expected the values of a text column");
    const auto first = flat.begin() + static_cast<std::ptrdiff_t>(at) + 2;
    const auto size = static_cast<std::ptrdiff_t>(*count);
    columns.push_back({flat[at], {first, first + size}});
    at += 2 + static_cast<size_t>(size);
  }
  return columns;
}

std::vector<double> take_columns(const std::vector<double>& table, size_t width,
                                 const std::vector<size_t>& which) {
  std::vector<double> taken;
  if (width == 0) return taken;
  taken.reserve(table.size() / width * which.size());
  for (size_t row = 0; row * width < table.size(); ++row) {
    for (const size_t column : which) taken.push_back(table[row * width + column]);
  }
  return taken;
}

void add_text_channels(const NamedTable& table, const std::vector<TextColumn>& known) {
  std::vector<NewChannel> added;
  for (const TextColumn& text : known) {
    const std::vector<size_t> others = channels_of(table.names, text.column);
    if (others.empty() && !column_named(table.texts, text.column)) continue;
    for (size_t i = 0; i < text.values.size(); ++i) {
      if (!index_of_name(table.names, channel_name(text, i)))
        added.push_back({channel_name(text, i), others});
    }
  }
  if (added.empty()) return;
  const size_t width = table.names.size(), rows = width == 0 ? 0 : table.values.size() / width;
  std::vector<double> values;
  values.reserve(rows * (width + added.size()));
  for (size_t row = 0; row < rows; ++row) {
    const double* first = table.values.data() + row * width;
    values.insert(values.end(), first, first + width);
    for (const NewChannel& channel : added) values.push_back(absent(first, channel.others));
  }
  table.values = std::move(values);
  for (const NewChannel& channel : added) table.names.push_back(channel.name);
}

}  // namespace data

std::optional<size_t> ShownColumn::largest(const double* row) const {
  std::optional<size_t> best;
  for (size_t i = 0; i < channels.size(); ++i) {
    if (!std::isnan(row[channels[i]]) && (!best || row[channels[i]] > row[channels[*best]])) best = i;
  }
  return best;
}

std::vector<ShownColumn> shown_columns(const std::vector<std::string>& names,
                                       const std::vector<TextColumn>& texts) {
  std::map<size_t, std::pair<const TextColumn*, size_t>> of_text;
  for (const TextColumn& text : texts) {
    for (size_t i = 0; i < text.values.size(); ++i) {
      if (const std::optional<size_t> c = data::index_of_name(names, data::channel_name(text, i)))
        of_text[*c] = {&text, i};
    }
  }
  std::vector<ShownColumn> columns;
  for (size_t c = 0; c < names.size(); ++c) {
    const auto found = of_text.find(c);
    if (found == of_text.end()) {
      columns.push_back({.name = names[c], .channels = {c}});
      continue;
    }
    const auto [text, value] = found->second;
    const auto same = [text = text](const ShownColumn& column) {
      return !column.values.empty() && column.name == text->column;
    };
    auto column = std::find_if(columns.begin(), columns.end(), same);
    if (column == columns.end()) column = columns.insert(column, {.name = text->column});
    column->channels.push_back(c);
    column->values.push_back(text->values[value]);
  }
  return columns;
}

DataSet with_texts_of(const DataSet& data, const std::vector<int64_t>& samples) {
  DataSet result = data;
  std::vector<bool> rows(static_cast<size_t>(data.rows()), false), series(data.ids.size(), false);
  for (const int64_t sample : samples) {
    const auto b = static_cast<size_t>(sample);
    series[b] = true;
    std::fill(rows.begin() + data.offsets[b], rows.begin() + data.offsets[b + 1], true);
  }
  DataHead& head = result.head;
  std::vector<std::string> dropped =
      data::drop_unseen({head.channels, head.channel_texts, result.values}, rows);
  const std::vector<std::string> statics =
      data::drop_unseen({head.statics, head.static_texts, result.statics}, series);
  dropped.insert(dropped.end(), statics.begin(), statics.end());
  for (const std::string& name : dropped)
    head.notes.push_back(message("no training series has ", data::in_quotes(name), ", which is left out"));
  return result;
}

std::vector<std::string> match_notes(const DataSet& data, const Preparation& preparation) {
  std::vector<std::string> notes;
  if (const std::string times = data::time_note(data.head, preparation); !times.empty())
    notes.push_back(times);
  const DataHead& head = data.head;
  data::add_note(notes, head.channels, head.channel_texts, data.values, preparation.channel_texts);
  data::add_note(notes, head.statics, head.static_texts, data.statics, preparation.static_texts);
  return notes;
}

}  // namespace fastweights
