#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// The header of a safetensors file, checked to the last byte before anything is allocated. Std and JSON
/// only, so that it can be fuzzed on its own. Trouble is std::runtime_error without the name of the file,
/// which the caller adds.

namespace fastweights {

/// The key of a checksum in the metadata of files that this library has written.
inline constexpr const char* kSafetensorsChecksum = "fastweights.checksum";

/// Bytes per element of the types we read; 0 for a name we do not know.
int64_t safetensors_type_size(std::string_view type);

struct SafetensorsEntry {
  std::string type;  // F64, F32, ...
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;  // bytes, counted from the end of the header
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
  int64_t data_begin = 0;  // where the data starts in the file
};

/// Length of the JSON text from the first 8 bytes of a file of this size.
int64_t safetensors_header_length(const unsigned char (&first_bytes)[8], int64_t file_size);

/// Parses and checks the JSON text of a file of this size.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t file_size);

/// The first bytes of a file: length and JSON text, padded to 8 bytes.
std::string write_safetensors_header(const SafetensorsHeader& header);

}  // namespace fastweights
