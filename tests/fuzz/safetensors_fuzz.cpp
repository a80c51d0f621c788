#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "tensor/safetensors_header.h"

/// libFuzzer: any bytes are a file. They are rejected with an error, or describe data inside the file that
/// can be written and read again.

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read_file(const uint8_t* data, int64_t size) {
  unsigned char first[8] = {};
  for (int64_t i = 0; i < 8 && i < size; ++i) first[i] = data[i];
  const int64_t length = fastweights::safetensors_header_length(first, size);
  const std::string_view text(reinterpret_cast<const char*>(data) + 8, static_cast<size_t>(length));
  const fastweights::SafetensorsHeader header = fastweights::parse_safetensors_header(text, size);
  for (const auto& [name, entry] : header.entries) {
    require(entry.begin >= 0 && entry.begin <= entry.end && header.data_begin + entry.end <= size);
  }
  const std::string again = fastweights::write_safetensors_header(header);
  const int64_t data_size = size - header.data_begin;
  const fastweights::SafetensorsHeader back = fastweights::parse_safetensors_header(
      std::string_view(again).substr(8), static_cast<int64_t>(again.size()) + data_size);
  require(back.metadata == header.metadata && back.entries.size() == header.entries.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    read_file(data, static_cast<int64_t>(size));
  } catch (const std::runtime_error&) {
    // rejected, as it should be
  }
  return 0;
}
