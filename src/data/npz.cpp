#include "data/npz.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "base/checked.h"
#include "base/error.h"
#include "base/utf8.h"
#include "data/files.h"
#include "data/text.h"

namespace fastweights::data {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64, kUnicode = 4;

template <typename... Parts>
[[noreturn]] void refuse_array(const std::string& name, const Parts&... parts) {
  throw std::runtime_error(message(name, ": ", parts...));
}

struct NpyHeader {
  std::string type;  // without the byte order: f8, U12, ...
  bool fortran = false;
  std::vector<int64_t> shape;
};

// the text after a key of the dictionary
std::string_view entry(std::string_view header, const std::string& key, const std::string& name) {
  const size_t at = header.find("'" + key + "'");
  const size_t colon = at == std::string_view::npos ? at : header.find(':', at);
  if (colon == std::string_view::npos) refuse_array(name, "no '", key, "' in the header of the array");
  return trimmed(header.substr(colon + 1));
}

std::string read_type(std::string_view text, const std::string& name) {
  const size_t end = text.find('\'', 1);
  const std::string type(text.substr(0, end == std::string_view::npos ? 0 : end + 1));
  const auto refuse_type = [&] {
    refuse_array(name, "expected float32, float64, int32, int64 or strings, little endian, got the type ",
                 type.empty() ? in_quotes(text) : type, "; convert it with astype()");
  };
  if (type.size() < 4 || type[0] != '\'') refuse_type();
  const std::string kind = type.substr(2, type.size() - 3);
  const bool number = kind == "f4" || kind == "f8" || kind == "i4" || kind == "i8";
  const bool words = (kind[0] == 'U' || kind[0] == 'S') && kind.size() > 1 && kind.size() < 8 &&
                     kind.find_first_not_of("0123456789", 1) == std::string::npos;
  const bool order = type[1] == '<' || (type[1] == '|' && kind[0] == 'S');
  if (!order || (!number && !words)) refuse_type();
  return kind;
}

std::vector<int64_t> read_shape(std::string_view text, const std::string& name) {
  const size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos)
    refuse_array(name, "expected a shape in parentheses, got ", in_quotes(text));
  std::vector<int64_t> shape;
  text = text.substr(1, end - 1);
  while (!trimmed(text).empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const double size = parse_number(text.substr(0, comma)).value_or(-1);
    if (!(size >= 0 && size < 1e15) || shape.size() > 7)
      refuse_array(name, "shape: expected up to 8 sizes, got ", in_quotes(text));
    shape.push_back(static_cast<int64_t>(size));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return shape;
}

NpyHeader read_header(std::string_view text, const std::string& name) {
  return {read_type(entry(text, "descr", name), name), entry(text, "fortran_order", name).starts_with("True"),
          read_shape(entry(text, "shape", name), name)};
}

template <typename T>
T at_byte(std::string_view bytes, size_t at) {
  T x;
  std::memcpy(&x, bytes.data() + at, sizeof x);
  return x;
}

// code points; a byte that is not UTF-8 is read as Latin-1
std::vector<uint32_t> code_points(const std::string& text) {
  std::vector<uint32_t> points;
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t j) { return static_cast<uint32_t>(static_cast<unsigned char>(text[j])); };
    const uint32_t first = byte(i);
    const size_t length = utf8_length(std::string_view(text).substr(i));
    if (length <= 1) {
      points.push_back(first);
      ++i;
      continue;
    }
    uint32_t c = first & (0xffu >> (length + 1));
    for (size_t j = 1; j < length; ++j) c = c << 6 | (byte(i + j) & 0x3f);
    points.push_back(c);
    i += length;
  }
  return points;
}

std::string text_at(std::string_view bytes, const NpyHeader& header, size_t at, size_t width) {
  if (header.type[0] == 'S') {
    const std::string_view field = bytes.substr(at, width);
    return std::string(field.substr(0, field.find_last_not_of('\0') + 1));
  }
  // numpy pads with zeros
  while (width > 0 && at_byte<uint32_t>(bytes, at + width - kUnicode) == 0) width -= kUnicode;
  std::string text;
  for (size_t i = 0; i < width; i += kUnicode) append_utf8(text, at_byte<uint32_t>(bytes, at + i));
  return text;
}

// bytes of one element
size_t width_of(const NpyHeader& header) {
  const auto digits = static_cast<size_t>(std::stoul(header.type.substr(1)));
  return header.type[0] == 'U' ? digits * kUnicode : digits;
}

// the index in Fortran order of element i in C order
size_t fortran_index(size_t i, const std::vector<int64_t>& shape) {
  size_t index = 0;
  // below the number of elements, which was checked
  for (auto size = shape.rbegin(); size != shape.rend(); ++size) {
    const auto n = static_cast<size_t>(*size);
    index = i % n + n * index;
    i /= n;
  }
  return index;
}

// the number of elements of the shape, which must match the number of bytes
size_t checked_count(const NpyHeader& header, size_t bytes, size_t width, const std::string& name) {
  const std::optional<size_t> count = checked_product(header.shape);
  const std::optional<size_t> expected = count ? checked_product({*count, width}) : std::nullopt;
  if (!expected || (*count > 0 && width == 0) || *expected > bytes)
    refuse_array(name, "expected more data for the shape and ", width, " bytes per element, got ", bytes,
                 " bytes");
  if (*expected != bytes)
    refuse_array(name, "expected ", *expected, " bytes of data for the shape, got ", bytes);
  return *count;
}

std::string padded(std::string header) {
  const size_t prefix = kMagic.size() + 4;
  while ((prefix + header.size() + 1) % kAlignment != 0) header += ' ';
  return header + "\n";
}

template <typename T>
void put(std::string& bytes, T x) {
  char raw[sizeof x];
  std::memcpy(raw, &x, sizeof x);
  bytes.append(raw, sizeof x);
}

}  // namespace

NpyArray real_array(std::vector<int64_t> shape, std::vector<double> values) {
  return {.kind = NpyArray::Kind::Real, .shape = std::move(shape), .reals = std::move(values)};
}

NpyArray integer_array(std::vector<int64_t> values) {
  const auto size = static_cast<int64_t>(values.size());
  return {.kind = NpyArray::Kind::Integer, .shape = {size}, .integers = std::move(values)};
}

NpyArray text_array(std::vector<std::string> values) {
  const auto size = static_cast<int64_t>(values.size());
  return {.kind = NpyArray::Kind::Text, .shape = {size}, .texts = std::move(values)};
}

NpyArray parse_npy(std::string_view bytes, const std::string& name, size_t limit) {
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + 6) refuse_array(name, "not a numpy array");
  const int version = bytes[kMagic.size()];
  if (version < 1 || version > 3)
    refuse_array(name, "expected version 1, 2 or 3 of the array format, got ", version);
  const size_t begin = kMagic.size() + (version == 1 ? 4 : 6);
  const size_t length =
      version == 1 ? at_byte<uint16_t>(bytes, begin - 2) : at_byte<uint32_t>(bytes, begin - 4);
  if (length > bytes.size() - begin) refuse_array(name, "the file ends inside the header");
  const NpyHeader header = read_header(bytes.substr(begin, length), name);
  bytes.remove_prefix(begin + length);
  const size_t width = width_of(header), count = checked_count(header, bytes.size(), width, name);
  const bool text = header.type[0] == 'U' || header.type[0] == 'S';
  require_memory(checked_product({count, text ? sizeof(std::string) + width : sizeof(double)}), limit, name,
                 "the array");
  NpyArray array = {.shape = header.shape};
  for (size_t i = 0; i < count; ++i) {
    const size_t at = (header.fortran ? fortran_index(i, header.shape) : i) * width;
    if (header.type == "f8") array.reals.push_back(at_byte<double>(bytes, at));
    if (header.type == "f4") array.reals.push_back(static_cast<double>(at_byte<float>(bytes, at)));
    if (header.type == "i8") array.integers.push_back(at_byte<int64_t>(bytes, at));
    if (header.type == "i4") array.integers.push_back(at_byte<int32_t>(bytes, at));
    if (text) array.texts.push_back(text_at(bytes, header, at, width));
  }
  const char kind = header.type[0];
  array.kind = kind == 'f'   ? NpyArray::Kind::Real
               : kind == 'i' ? NpyArray::Kind::Integer
                             : NpyArray::Kind::Text;
  return array;
}

std::string npy_bytes(const NpyArray& array) {
  std::vector<std::vector<uint32_t>> texts;
  size_t longest = 1;
  for (const std::string& text : array.texts) {
    texts.push_back(code_points(text));
    longest = std::max(longest, texts.back().size());
  }
  const std::string type = array.kind == NpyArray::Kind::Real      ? "<f8"
                           : array.kind == NpyArray::Kind::Integer ? "<i8"
                                                                   : "<U" + std::to_string(longest);
  std::string shape;
  for (const int64_t n : array.shape) shape += std::to_string(n) + ",";
  const std::string header =
      padded("{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }");
  std::string bytes(kMagic);
  bytes += std::string("\1\0", 2);
  put(bytes, static_cast<uint16_t>(header.size()));
  bytes += header;
  for (const double x : array.reals) put(bytes, x);
  for (const int64_t x : array.integers) put(bytes, x);
  for (std::vector<uint32_t>& text : texts) {
    text.resize(longest);
    for (const uint32_t c : text) put(bytes, c);
  }
  return bytes;
}

std::map<std::string, NpyArray> parse_npz_arrays(std::string_view bytes, const std::string& file,
                                                 size_t limit) {
  std::map<std::string, NpyArray> arrays;
  for (auto& [member, data] : unzip(bytes, file, limit)) {
    const std::string name = member.ends_with(".npy") ? member.substr(0, member.size() - 4) : member;
    if (!arrays.emplace(name, parse_npy(data, file + ": " + shown_name(name), limit)).second)
      refuse_array(file, "duplicate array ", in_quotes(name));
    data = {};
  }
  return arrays;
}

std::string npz_bytes(const std::map<std::string, NpyArray>& arrays, Packing packing) {
  std::vector<std::pair<std::string, std::string>> members;
  for (const auto& [name, array] : arrays) members.emplace_back(name + ".npy", npy_bytes(array));
  return zip(members, packing);
}

}  // namespace fastweights::data
