#include "train/event_file.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "base/files.h"

namespace fastweights {
namespace {

// fields of event.proto and summary.proto: number << 3 | kind of encoding
constexpr char kWallTime = 0x09, kStep = 0x10, kFileVersion = 0x1a, kSummary = 0x2a, kValue = 0x0a,
               kTag = 0x0a, kSimpleValue = 0x15;
constexpr size_t kHead = 12, kTail = 4;

template <typename Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof number; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}

template <typename Number>
Number number_at(std::string_view bytes) {
  Number number = 0;
  for (size_t i = sizeof number; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

std::string varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes + static_cast<char>(number);
}

std::string text_field(char key, const std::string& text) { return key + varint(text.size()) + text; }

// checksums of data that contain checksums are weak, so the format rotates them
uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8U; }

std::string record(const std::string& data) {
  const std::string length = little_endian(static_cast<uint64_t>(data.size()));
  return length + little_endian(masked(crc32c(length))) + data + little_endian(masked(crc32c(data)));
}

std::string event(double time, int64_t step, const std::string& content) {
  return kWallTime + little_endian(std::bit_cast<uint64_t>(time)) + kStep +
         varint(static_cast<uint64_t>(step)) + content;
}

// the data of the first record; absent if it is cut off or damaged
std::optional<std::string_view> first_record(std::string_view bytes) {
  if (bytes.size() < kHead + kTail) return std::nullopt;
  const auto length = number_at<uint64_t>(bytes);
  if (number_at<uint32_t>(bytes.substr(8)) != masked(crc32c(bytes.substr(0, 8)))) return std::nullopt;
  if (length > bytes.size() - kHead - kTail) return std::nullopt;
  const std::string_view data = bytes.substr(kHead, length);
  const bool whole = number_at<uint32_t>(bytes.substr(kHead + length)) == masked(crc32c(data));
  return whole ? std::optional(data) : std::nullopt;
}

// of an event as this file writes it: time, then step
std::optional<int64_t> step_of(std::string_view data) {
  if (data.size() < 11 || data[0] != kWallTime || data[9] != kStep) return std::nullopt;
  uint64_t step = 0;
  for (size_t i = 10, shift = 0; i < data.size() && shift < 63; ++i, shift += 7) {
    const auto byte = static_cast<unsigned char>(data[i]);
    step |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return static_cast<int64_t>(step);
  }
  return std::nullopt;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> kTable = [] {
    constexpr uint32_t kPolynomial = 0x82f63b78;  // its bits reversed
    std::array<uint32_t, 256> table = {};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? value >> 1 ^ kPolynomial : value >> 1;
      table[i] = value;
    }
    return table;
  }();
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

EventFile::EventFile(std::string path, int64_t last_step) : path_(std::move(path)) {
  const bool exists = std::filesystem::is_regular_file(path_);
  const std::string known = exists ? read_file(path_) : "";
  size_t kept = 0;
  for (;;) {
    const std::string_view rest = std::string_view(known).substr(kept);
    const std::optional<std::string_view> data = first_record(rest);
    const std::optional<int64_t> step = data ? step_of(*data) : std::nullopt;
    if (!step || *step > last_step || (kept == 0 && *step != 0)) break;
    kept += kHead + data->size() + kTail;
    last_step_ = *step;
  }
  if (kept == 0) {
    replace_file(path_, record(event(0, 0, text_field(kFileVersion, "brain.Event:2"))));
  } else if (kept < known.size()) {
    // in place: TensorBoard may have it open
    std::filesystem::resize_file(path_, kept);
  }
}

void EventFile::append(int64_t step, double time, const Scalars& scalars) {
  std::string summary;
  for (const auto& [name, value] : scalars) {
    if (!std::isfinite(value)) continue;
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    summary += text_field(kValue, text_field(kTag, name) + kSimpleValue + little_endian(bits));
  }
  std::ofstream out(path_, std::ios::binary | std::ios::app);
  out << record(event(time, step, text_field(kSummary, summary))) << std::flush;
  if (!out)
    throw std::runtime_error(
        message(path_, ": cannot be written: ", std::strerror(errno), "; --resume continues the run"));
  last_step_ = step;
}

}  // namespace fastweights
