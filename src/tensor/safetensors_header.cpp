#include "tensor/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/checked.h"
#include "base/error.h"

namespace fastweights {
namespace {

using nlohmann::json;

// the largest header the format allows
constexpr int64_t kLargestHeader = 100'000'000;
// data of real files has a handful of dimensions; LibTorch itself takes 64
constexpr size_t kMostDimensions = 32;

struct Type {
  const char* name;
  int64_t size;
};
constexpr std::array<Type, 8> kTypeSizes = {
    {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"U8", 1}, {"BOOL", 1}}};

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw std::runtime_error(message(parts...));
}

// a name as it may stand in a message: short and printable
std::string in_quotes(std::string_view name) {
  std::string text = "'";
  for (char c : name.substr(0, 60)) text += c >= ' ' && c != 127 ? c : '?';
  return text + (name.size() > 60 ? "...'" : "'");
}

/// Builds the header while the text is read: nothing but what the format allows ever gets into memory, and a
/// name that comes twice is seen (a parsed document would silently keep the last one).
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  SafetensorsHeader header;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("true or false"); }
  bool number_integer(number_integer_t value) override { return number(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      fail("number ", value, " in the header of ", where(), " is too large");
    }
    return number(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return unexpected("the number " + text.substr(0, 40));
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool string(string_t& value) override {
    if (depth_ == 2 && in_metadata_) {
      header.metadata[field_] = value;
    } else if (depth_ == 2 && field_ == "dtype") {
      entry_.type = value;
    } else {
      return unexpected("the text " + in_quotes(value));
    }
    return true;
  }

  bool start_object(size_t) override {
    if (++depth_ > 2 || in_list_) fail("the header of ", where(), " is nested deeper than the format allows");
    if (depth_ == 2) {
      in_metadata_ = name_ == "__metadata__";
      entry_ = {};
      fields_.clear();
    }
    return true;
  }

  bool key(string_t& value) override {
    if (depth_ == 1) {
      name_ = value;
      if (!names_.insert(value).second) fail("the name ", in_quotes(value), " comes twice");
      return true;
    }
    field_ = value;
    if (!fields_.insert(value).second) fail(in_quotes(value), " comes twice in ", where());
    if (!in_metadata_ && value != "dtype" && value != "shape" && value != "data_offsets") {
      fail(where(), " has an unknown entry ", in_quotes(value));
    }
    return true;
  }

  bool end_object() override {
    if (depth_-- == 2 && !in_metadata_) finish_entry();
    in_metadata_ = false;
    return true;
  }

  bool start_array(size_t) override {
    if (depth_ != 2 || in_list_ || in_metadata_ || field_ == "dtype") return unexpected("a list");
    in_list_ = true;
    list_.clear();
    return true;
  }

  bool end_array() override {
    in_list_ = false;
    if (field_ == "shape") {
      entry_.shape = list_;
    } else {
      if (list_.size() != 2) fail(where(), " must have two data offsets, has ", list_.size());
      entry_.begin = list_[0];
      entry_.end = list_[1];
    }
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // the library's text names the problem behind its own prefix and position
    const std::string text = error.what();
    const size_t cut = text.find("syntax error");
    fail("the header is not valid JSON at byte ", position + 8, ": ",
         (cut == std::string::npos ? text : text.substr(cut)).substr(0, 200));
  }

 private:
  std::string where() const { return name_.empty() ? "the file" : in_quotes(name_); }

  bool unexpected(const std::string& what) {
    if (in_metadata_) fail("metadata ", in_quotes(field_), " must be text, found ", what);
    fail("unexpected ", what, " in the header of ", where());
  }

  bool number(int64_t value) {
    if (!in_list_) return unexpected("the number " + std::to_string(value));
    if (value < 0) fail(where(), " has the negative number ", value, " in its ", field_);
    if (list_.size() >= kMostDimensions)
      fail(where(), " has more than ", kMostDimensions, " numbers in its ", field_);
    list_.push_back(value);
    return true;
  }

  void finish_entry() {
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      if (!fields_.contains(field)) fail(where(), " has no ", field);
    }
    const int64_t size = safetensors_type_size(entry_.type);
    if (size == 0) fail(where(), " has the type ", in_quotes(entry_.type), ", which cannot be read");
    const std::optional<size_t> count = checked_product(entry_.shape);
    const std::optional<size_t> found =
        count ? checked_product({*count, static_cast<size_t>(size)}) : std::nullopt;
    if (!found || *found > static_cast<size_t>(std::numeric_limits<int64_t>::max()))
      fail(where(), " has a shape whose size overflows");
    const auto bytes = static_cast<int64_t>(*found);
    if (entry_.end < entry_.begin) {
      fail(where(), " has data offsets that end (", entry_.end, ") before they begin (", entry_.begin, ")");
    }
    if (entry_.end - entry_.begin != bytes) {
      fail(where(), " needs ", bytes, " bytes for its shape, its data offsets span ",
           entry_.end - entry_.begin);
    }
    header.entries[name_] = entry_;
  }

  int depth_ = 0;
  bool in_metadata_ = false, in_list_ = false;
  std::string name_, field_;
  std::set<std::string> names_, fields_;
  std::vector<int64_t> list_;
  SafetensorsEntry entry_;
};

// the data must be covered from its first to its last byte, each exactly once
void check_layout(const SafetensorsHeader& header, int64_t data_size) {
  std::vector<std::pair<const SafetensorsEntry*, const std::string*>> order;
  for (const auto& [name, entry] : header.entries) order.emplace_back(&entry, &name);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first->begin, a.first->end) < std::tie(b.first->begin, b.first->end);
  });
  int64_t covered = 0;
  const std::string* before = nullptr;
  for (const auto& [entry, name] : order) {
    if (entry->end > data_size) {
      fail(in_quotes(*name), " ends at byte ", entry->end, " of the data, but the file has only ", data_size,
           " (truncated?)");
    }
    if (entry->begin < covered) fail(in_quotes(*name), " overlaps ", in_quotes(*before));
    if (entry->begin > covered) {
      fail("bytes ", covered, " to ", entry->begin, " of the data, before ", in_quotes(*name),
           ", belong to nothing");
    }
    covered = entry->end;
    before = name;
  }
  if (covered != data_size) fail("the last ", data_size - covered, " bytes of the data belong to nothing");
}

}  // namespace

int64_t safetensors_type_size(std::string_view type) {
  for (const Type& known : kTypeSizes) {
    if (type == known.name) return known.size;
  }
  return 0;
}

int64_t safetensors_header_length(const unsigned char (&first_bytes)[8], int64_t file_size) {
  if (file_size < 8) fail("the file has ", file_size, " bytes, too few for a safetensors file");
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | first_bytes[i];
  if (length > static_cast<uint64_t>(kLargestHeader)) {
    fail("the header claims ", length, " bytes, the format allows ", kLargestHeader,
         "; is this a safetensors file?");
  }
  if (static_cast<int64_t>(length) > file_size - 8) {
    fail("the header claims ", length, " bytes, the file has only ", file_size - 8, " after its length");
  }
  return static_cast<int64_t>(length);
}

SafetensorsHeader parse_safetensors_header(std::string_view text, int64_t file_size) {
  if (text.empty() || text.front() != '{') fail("the header must begin with '{'");
  HeaderReader reader;
  json::sax_parse(text.begin(), text.end(), &reader);
  reader.header.data_begin = 8 + static_cast<int64_t>(text.size());
  check_layout(reader.header, file_size - reader.header.data_begin);
  return std::move(reader.header);
}

std::string write_safetensors_header(const SafetensorsHeader& header) {
  json document = json::object();
  if (!header.metadata.empty()) document["__metadata__"] = header.metadata;
  for (const auto& [name, entry] : header.entries) {
    document[name] = {
        {"dtype", entry.type}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text;
  try {
    text = document.dump();
  } catch (const json::type_error&) {
    throw std::invalid_argument("[save_safetensors] names and metadata must be valid UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string result(8, '\0');
  for (int i = 0; i < 8; ++i) result[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  return result + text;
}

}  // namespace fastweights
