#include "data/cells.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/checked.h"
#include "data/files.h"

namespace fastweights::data {
namespace {

// what means a missing value in a column of values, but may be a name elsewhere
bool is_usual_word(std::string_view text) {
  if (is_missing(text)) return true;
  if (text.size() > 4) return false;
  const std::string word = lowercase(text);
  return word == "-" || word == "n/a" || word == "none";
}

std::string expected_number(std::string_view column, std::string_view text, const Location& location) {
  return message(location.file, ":", location.row, ":", location.column, ": column ", in_quotes(column),
                 ": expected a number, got ", in_quotes(text), "; ", advice_on(text));
}

}  // namespace

std::string advice_on(std::string_view text) {
  const bool comma = text.find(',') != std::string_view::npos &&
                     text.find_first_not_of("0123456789+-eE,. ") == std::string_view::npos;
  return comma ? "use --decimal comma or point to say which one the numbers have"
               : message("if that is a missing value, use --missing ", in_quotes(text));
}

Cells::Cells(const TableForm& form, char separator) : words_(form.missing), mark_(form.decimal) {
  // where commas separate cells, they are no decimal marks unless that is said
  if (mark_ == DecimalMark::Automatic && separator == ',') mark_ = DecimalMark::Point;
  for (const std::string& word : words_) {
    if (const std::optional<double> x = parse_number(word)) numbers_.push_back(*x);
  }
}

bool Cells::is_missing_word(std::string_view text) const {
  return !words_.empty() && std::find(words_.begin(), words_.end(), text) != words_.end();
}

bool Cells::is_missing_name(std::string_view text) const {
  return is_missing(text) || is_missing_word(trimmed(text));
}

std::optional<double> Cells::parsed(std::string_view text) {
  if (mark_ == DecimalMark::Point) return parse_number(text);
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos) {
    const bool point = text.find('.') != std::string_view::npos;
    if (point && mark_ == DecimalMark::Comma) return std::nullopt;
    const std::optional<double> x = parse_number(text);
    if (x && point) mark_ = DecimalMark::Point;
    return x;
  }
  if (text.find('.') != std::string_view::npos) return std::nullopt;
  buffer_ = text;
  buffer_[comma] = '.';
  const std::optional<double> x = parse_number(buffer_);
  if (x) mark_ = DecimalMark::Comma;
  return x;
}

std::string_view Cells::with_point(std::string_view text) {
  const bool comma = mark_ != DecimalMark::Point && text.find(',') != std::string_view::npos;
  return comma && parsed(text) ? std::string_view(buffer_) : text;
}

std::optional<double> Cells::value(std::string_view text) {
  if (text.empty() || is_missing_word(text)) return kNaN;
  const std::optional<double> x = parsed(text);
  if (!x) return is_usual_word(text) ? std::optional<double>(kNaN) : std::nullopt;
  if (std::find(numbers_.begin(), numbers_.end(), *x) != numbers_.end()) return kNaN;
  return std::isnan(*x) ? kNaN : *x;
}

double Cells::number(std::string_view column, std::string_view text, const Location& location) {
  const std::optional<double> x = value(trimmed(text));
  if (!x || std::isinf(*x)) throw std::runtime_error(expected_number(column, trimmed(text), location));
  return *x;
}

Columns::Columns(std::vector<std::string> names, const std::vector<std::string>& texts) {
  for (std::string& name : names) {
    const bool forced = std::find(texts.begin(), texts.end(), name) != texts.end();
    columns_.push_back({.name = std::move(name), .forced = forced});
  }
}

Columns Columns::without_values() const {
  Columns result({}, {});
  for (const Column& column : columns_)
    result.columns_.push_back({.name = column.name, .forced = column.forced});
  return result;
}

bool Columns::is_text(const Column& column) {
  return column.forced || (!column.texts.empty() && !column.numbers);
}

double Columns::index_of(Column& column, std::string_view text, std::string_view where) {
  constexpr size_t kMost = 50;
  if (text.size() > kLongestName)
    throw std::runtime_error(message(where, ": column ", in_quotes(column.name),
                                     ": expected a number, or a text of at most ", kLongestName,
                                     " bytes, got ", text.size(), " bytes"));
  const auto [found, is_new] = column.indices.emplace(text, column.texts.size());
  if (!is_new) return static_cast<double>(found->second);
  if (column.texts.size() == kMost)
    throw std::runtime_error(
        message(where, ": column ", in_quotes(column.name), ": expected a number, or at most ", kMost,
                " different texts, each of which becomes a channel, got ", in_quotes(text),
                " as one more; leave the column out with --ignore-columns ", in_quotes(column.name)));
  column.texts.emplace_back(text);
  return static_cast<double>(found->second);
}

double Columns::read(size_t index, Cells& cells, std::string_view text, const Location& location) {
  Column& column = columns_[index];
  text = trimmed(text);
  const std::optional<double> x = cells.value(text);
  if (x && std::isnan(*x)) return *x;
  const auto text_index = [&] {
    // the place is needed for an error alone
    const auto known = column.indices.find(std::string(text));
    return known != column.indices.end()
               ? static_cast<double>(known->second)
               : index_of(column, text, message(location.file, ":", location.row, ":", location.column));
  };
  if (column.forced) return text_index();
  const bool number = x && !std::isinf(*x);
  if (number) {
    column.numbers = true;
    return *x;
  }
  if (x || column.numbers) throw std::runtime_error(expected_number(column.name, text, location));
  if (column.texts.empty()) column.first_text = expected_number(column.name, text, location);
  return text_index();
}

std::string Columns::shown(size_t index, double value) const {
  const Column& column = columns_[index];
  return is_text(column) ? in_quotes(column.texts[static_cast<size_t>(value)]) : exact(value);
}

bool Columns::any_text() const {
  return std::any_of(columns_.begin(), columns_.end(), [](const Column& c) { return !c.texts.empty(); });
}

void Columns::check() const {
  for (const Column& column : columns_) {
    if (column.numbers && !column.first_text.empty()) throw std::runtime_error(column.first_text);
  }
}

bool Columns::join_numbers(const Columns& other) {
  bool is_new = false;
  for (size_t c = 0; c < size(); ++c) {
    is_new = is_new || (other.columns_[c].numbers && !columns_[c].numbers);
    columns_[c].numbers = columns_[c].numbers || other.columns_[c].numbers;
  }
  return is_new;
}

void Columns::join_texts(const Columns& other, std::vector<double>& rows, const std::string& where) {
  for (size_t c = 0; c < size(); ++c) {
    const Column& from = other.columns_[c];
    if (!is_text(from)) continue;
    std::vector<double> indices;
    for (const std::string& text : from.texts) indices.push_back(index_of(columns_[c], text, where));
    for (size_t i = c; i < rows.size(); i += size()) {
      if (!std::isnan(rows[i])) rows[i] = indices[static_cast<size_t>(rows[i])];
    }
  }
}

std::vector<size_t> Columns::ranks(const Column& column) {
  std::vector<size_t> order(column.texts.size()), rank(column.texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return column.texts[a] < column.texts[b]; });
  for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  return rank;
}

std::vector<TextColumn> Columns::texts() const {
  std::vector<TextColumn> result;
  for (const Column& column : columns_) {
    if (!is_text(column)) continue;
    result.push_back({column.name, column.texts});
    std::sort(result.back().values.begin(), result.back().values.end());
  }
  return result;
}

std::vector<std::string> Columns::names() const {
  std::vector<std::string> result;
  for (const Column& column : columns_) {
    if (!is_text(column)) {
      result.push_back(column.name);
      continue;
    }
    std::vector<std::string> texts = column.texts;
    std::sort(texts.begin(), texts.end());
    for (const std::string& text : texts) result.push_back(column.name + "=" + text);
  }
  std::set<std::string> seen;
  for (const std::string& name : result) {
    if (!seen.insert(name).second)
      throw std::runtime_error(message("two channels would have the name ", in_quotes(name),
                                       ", which a text column and its value have; rename a column"));
  }
  return result;
}

size_t Columns::width() const {
  size_t width = 0;
  for (const Column& column : columns_) width += is_text(column) ? column.texts.size() : 1;
  return width;
}

void Columns::require_room(size_t rows, size_t limit, std::string_view file) const {
  if (std::none_of(columns_.begin(), columns_.end(), is_text)) return;
  require_memory(checked_product({rows, width(), sizeof(double)}), limit, file,
                 "a channel for each text of its text columns");
}

void Columns::expand(std::vector<double>& rows) const {
  if (columns_.empty() || std::none_of(columns_.begin(), columns_.end(), is_text)) return;
  std::vector<std::vector<size_t>> all_ranks;
  for (const Column& column : columns_) all_ranks.push_back(ranks(column));
  std::vector<double> expanded;
  expanded.reserve(rows.size() / size() * width());
  for (size_t i = 0; i < rows.size(); ++i) {
    const Column& column = columns_[i % size()];
    const double x = rows[i];
    if (!is_text(column)) {
      expanded.push_back(x);
      continue;
    }
    const size_t first = expanded.size();
    expanded.resize(first + column.texts.size(), std::isnan(x) ? kNaN : 0.0);
    if (!std::isnan(x)) expanded[first + all_ranks[i % size()][static_cast<size_t>(x)]] = 1;
  }
  rows = std::move(expanded);
}

}  // namespace fastweights::data
