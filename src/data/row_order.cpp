#include "data/row_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fastweights::data {
namespace {

using Rows = std::vector<size_t>;

// rows of a table of the given width, in another order
template <typename T>
void reorder(std::vector<T>& table, size_t width, const Rows& rows) {
  if (table.empty()) return;
  std::vector<T> result;
  result.reserve(rows.size() * width);
  for (const size_t row : rows) {
    for (size_t i = row * width; i < (row + 1) * width; ++i) result.push_back(std::move(table[i]));
  }
  table = std::move(result);
}

size_t row_width(size_t cells, const Series& s) { return s.times.empty() ? 0 : cells / s.times.size(); }

void take_rows(Series& s, const Rows& rows) {
  const size_t channels = row_width(s.values.size(), s), unused = row_width(s.unused.size(), s);
  reorder(s.values, channels, rows);
  reorder(s.unused, unused, rows);
  reorder(s.step_labels, 1, rows);
  reorder(s.dates, 1, rows);
  reorder(s.times, 1, rows);
}

// the mean of the known values of a channel in rows first .. last - 1
double mean(const Series& s, size_t channels, size_t c, size_t first, size_t last) {
  double sum = 0, count = 0;
  for (size_t row = first; row < last; ++row) {
    const double x = s.values[row * channels + c];
    if (std::isnan(x)) continue;
    sum += x;
    count += 1;
  }
  return count > 0 ? sum / count : kNaN;
}

// keeps the first of the rows with a time, with the mean of their values if that is asked for
void merge(Series& s, const TableForm& form) {
  const size_t channels = row_width(s.values.size(), s), length = s.times.size();
  Rows kept;
  for (size_t first = 0, last = 0; first < length; first = last) {
    while (last < length && s.times[last] == s.times[first]) ++last;
    kept.push_back(first);
    for (size_t row = first + 1; row < last && !s.step_labels.empty(); ++row) {
      if (s.step_labels[first].empty()) s.step_labels[first] = s.step_labels[row];
    }
    if (form.duplicates != Duplicates::Mean || last == first + 1) continue;
    for (size_t c = 0; c < channels; ++c) s.values[first * channels + c] = mean(s, channels, c, first, last);
  }
  take_rows(s, kept);
}

void sort(Series& s) {
  Rows rows(s.times.size());
  std::iota(rows.begin(), rows.end(), size_t{0});
  std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) { return s.times[a] < s.times[b]; });
  take_rows(s, rows);
}

}  // namespace

void check_order(double time, const Series& series, const TableForm& form, const Location& location,
                 std::string_view text, const std::string& of_series) {
  if (series.times.empty() || time > series.times.back()) return;
  const bool equal = time == series.times.back();
  if (equal ? form.duplicates != Duplicates::Error : form.order == UnsortedRows::Sort) return;
  refuse(location, "expected a later time than in the previous row", of_series, ", got ", in_quotes(text),
         equal ? "; --duplicates first (or mean) makes one row of those with the same time"
               : "; --sort sorts the rows of each series by time");
}

void order_rows(Parsed& parsed, const TableForm& form) {
  size_t sorted = 0, merged = 0;
  for (Series& s : parsed.series) {
    if (form.order == UnsortedRows::Sort && !std::is_sorted(s.times.begin(), s.times.end())) {
      sort(s);
      ++sorted;
    }
    const auto equal = std::adjacent_find(s.times.begin(), s.times.end());
    if (equal == s.times.end()) continue;
    if (form.duplicates == Duplicates::Error)
      throw std::runtime_error(
          message(s.where.empty() ? in_quotes(s.id) : s.where, ": several rows of series ", in_quotes(s.id),
                  " have the time ", exact(*equal), "; --duplicates first (or mean) makes one row of them"));
    const size_t before = s.times.size();
    merge(s, form);
    merged += before - s.times.size();
  }
  if (sorted > 0) parsed.head.notes.push_back(message("sorted the rows of ", sorted, " series by time"));
  if (merged > 0)
    parsed.head.notes.push_back(
        message(merged, merged == 1 ? " row" : " rows",
                form.duplicates == Duplicates::Mean ? " averaged with" : " left out for",
                " the first one of the same time"));
}

}  // namespace fastweights::data
