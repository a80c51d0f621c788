#include "data/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <locale>
#include <sstream>

#include "base/printable.h"
#include "base/utf8.h"
#include "data/files.h"

namespace fastweights::data {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equal_in_any_case(std::string_view text, std::string_view lowercase_word) {
  if (text.size() != lowercase_word.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (lower(text[i]) != lowercase_word[i]) return false;
  }
  return true;
}

// overflow is infinite, underflow is 0
double out_of_range(std::string_view text) {
  std::istringstream in{std::string(text)};
  in.imbue(std::locale::classic());
  double x = 0;
  if (in >> x) return x;
  return text.front() == '-' ? -std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::infinity();
}

// NaN if missing, nothing if it is neither missing nor a finite number
std::optional<double> finite_or_missing(std::string_view text) {
  if (is_missing(text)) return kNaN;
  const std::optional<double> x = parse_number(text);
  if (!x || std::isinf(*x)) return std::nullopt;
  return std::isnan(*x) ? kNaN : *x;
}

// the characters of the bytes 0x80 to 0x9f; the other ones of Windows-1252 are those of Latin-1
constexpr std::array<uint32_t, 32> kWindows1252 = {
    0x20ac, 0x81,   0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x8d,   0x017d, 0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d,   0x017e, 0x0178};

std::string from_windows_1252(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 8);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    append_utf8(text, byte >= 0x80 && byte < 0xa0 ? kWindows1252[byte - 0x80u] : byte);
  }
  return text;
}

enum class ByteOrder { Little, Big };

std::string from_utf16(std::string_view bytes, ByteOrder order) {
  const auto unit = [&](size_t at) {
    const auto first = static_cast<unsigned char>(bytes[at]),
               second = static_cast<unsigned char>(bytes[at + 1]);
    return static_cast<uint32_t>(order == ByteOrder::Little ? second << 8 | first : first << 8 | second);
  };
  std::string text;
  text.reserve(bytes.size());
  for (size_t at = 0; at + 1 < bytes.size(); at += 2) {
    uint32_t c = unit(at);
    // two units are a character beyond U+FFFF
    const uint32_t low = c >= 0xd800 && c < 0xdc00 && at + 3 < bytes.size() ? unit(at + 2) : 0;
    if (low >= 0xdc00 && low < 0xe000) {
      c = 0x10000 + ((c - 0xd800) << 10 | (low - 0xdc00));
      at += 2;
    }
    append_utf8(text, c);
  }
  return text;
}

char separator_of(std::string_view first_line) {
  bool quotes = false, bar = false;
  for (const char c : first_line) {
    if (c == '"') quotes = !quotes;
    if (!quotes && (c == ',' || c == ';' || c == '\t')) return c;
    if (!quotes && c == '\n') break;
    bar = bar || (!quotes && c == '|');
  }
  return bar ? '|' : ',';
}

}  // namespace

DecodedText decoded(std::string name) {
  if (is_utf8(name)) return {std::move(name), ""};
  return {from_windows_1252(name), "Windows-1252"};
}

DecodedText decoded_file(std::string bytes) {
  if (bytes.starts_with("\xff\xfe")) return {from_utf16(bytes.substr(2), ByteOrder::Little), "UTF-16"};
  if (bytes.starts_with("\xfe\xff")) return {from_utf16(bytes.substr(2), ByteOrder::Big), "UTF-16"};
  return decoded(std::move(bytes));
}

void require_text(std::string_view text, std::string_view file) {
  const size_t zero = text.find('\0');
  if (zero == std::string_view::npos) return;
  const std::string_view before = text.substr(0, zero);
  const size_t line = before.rfind('\n') + 1;  // 0 on the first line
  refuse({file, std::count(before.begin(), before.end(), '\n') + 1, static_cast<int64_t>(zero - line) + 1},
         "expected text in UTF-8, got a zero byte; the file may be UTF-16 or an archive");
}

std::string_view without_mark(std::string_view text) {
  return text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string lowercase(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower(c);
  return result;
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 40;
  std::string_view shown = text.substr(0, kLongest);
  // not in the middle of a character
  for (size_t cut = 1; shown.size() < text.size() && cut < 4; ++cut) {
    const size_t length = utf8_length(text.substr(kLongest - cut));
    if (length > cut) shown = text.substr(0, kLongest - cut);
    if (length > 0) break;
  }
  return "'" + printable(shown) + (text.size() > kLongest ? "...'" : "'");
}

std::string shown_name(std::string_view name) {
  const std::string quoted = in_quotes(name);
  return quoted.substr(1, quoted.size() - 2);
}

std::optional<double> parse_number(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return out_of_range(text);
  if (error != std::errc()) return std::nullopt;
  return x;
}

bool is_missing(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || text == "?") return true;
  if (text.size() > 4 || lower(text.front()) != 'n') return false;
  return equal_in_any_case(text, "nan") || equal_in_any_case(text, "na") || equal_in_any_case(text, "null");
}

double number_or_missing(std::string_view text, const Location& location, std::string_view what) {
  const std::optional<double> x = finite_or_missing(text);
  if (!x) refuse(location, "expected ", what, ", got ", in_quotes(trimmed(text)));
  return *x;
}

double finite_number(std::string_view text, const Location& location, std::string_view column) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    refuse(location, "column ", in_quotes(column), ": expected a number, got ", in_quotes(text));
  return value;
}

std::string exact(double x) {
  if (std::isnan(x)) return "nan";
  char text[64];
  return std::string(text, std::to_chars(text, text + sizeof text, x).ptr);
}

std::string_view without_last_ends(std::string_view text) {
  return text.substr(0, text.find_last_not_of("\r\n") + 1);
}

std::vector<Field> fields(std::string_view line, char separator, size_t most) {
  std::vector<Field> found;
  for (size_t begin = 0; begin <= line.size() && found.size() < most;) {
    const size_t end = std::min(line.find(separator, begin), line.size());
    found.push_back({line.substr(begin, end - begin), static_cast<int64_t>(begin) + 1});
    begin = end + 1;
  }
  return found;
}

size_t field_count(std::string_view line, char separator) {
  return static_cast<size_t>(std::count(line.begin(), line.end(), separator)) + 1;
}

bool Lines::next() {
  if (rest_.empty()) return false;
  const size_t end = std::min(rest_.find('\n'), rest_.size());
  line_ = rest_.substr(0, end);
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  ++row_;
  return true;
}

TableRows::TableRows(std::string_view text, std::string_view file, size_t limit)
    : text_(without_mark(text)), file_(file), limit_(limit), separator_(separator_of(text_)) {}

bool TableRows::next() {
  while (at_ < text_.size()) {
    read_row();
    if (fields_.size() > 1 || !fields_[0].text.empty()) return true;
  }
  return false;
}

void TableRows::read_row() {
  fields_.clear();
  unquoted_.clear();
  row_ = next_row_++;
  row_begin_ = at_;
  for (bool more = true; more;) {
    while (at_ < text_.size() && (text_[at_] == ' ' || (text_[at_] == '\t' && separator_ != '\t'))) ++at_;
    const auto column = static_cast<int64_t>(at_ - row_begin_) + 1;
    require_parts(fields_.size() + 1, kNameBytes, limit_, file_, "its columns");
    if (at_ < text_.size() && text_[at_] == '"') {
      fields_.push_back({quoted_field(), column});
    } else {
      const size_t from = at_;
      while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n') ++at_;
      fields_.push_back({trimmed(text_.substr(from, at_ - from)), column});
    }
    more = at_ < text_.size() && text_[at_] == separator_;
    ++at_;
  }
}

std::string_view TableRows::quoted_field() {
  const Location begin = location(static_cast<int64_t>(at_ - row_begin_) + 1);
  const size_t from = ++at_;
  bool doubled = false;
  for (; at_ < text_.size(); ++at_) {
    if (text_[at_] == '\n') ++next_row_;
    if (text_[at_] != '"') continue;
    if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
    doubled = true;
    ++at_;
  }
  if (at_ >= text_.size()) refuse(begin, "expected a closing \" before the end of the file");
  std::string_view field = text_.substr(from, at_ - from);
  ++at_;
  while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n') {
    if (!is_space(text_[at_])) refuse(begin, "expected a separator after the closing quote, got text");
    ++at_;
  }
  if (!doubled) return field;
  std::string single;
  for (size_t i = 0; i < field.size(); ++i) {
    single += field[i];
    if (field[i] == '"') ++i;
  }
  unquoted_.push_back(std::move(single));
  return unquoted_.back();
}

}  // namespace fastweights::data
