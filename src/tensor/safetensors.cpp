#include "fastweights/tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/checksum.h"
#include "base/error.h"
#include "base/files.h"
#include "tensor/safetensors_header.h"

namespace fastweights {
namespace {

struct TypePair {
  const char* name;
  at::ScalarType type;
};
constexpr std::array<TypePair, 8> kTypes = {{{"F64", at::kDouble},
                                             {"F32", at::kFloat},
                                             {"F16", at::kHalf},
                                             {"BF16", at::kBFloat16},
                                             {"I64", at::kLong},
                                             {"I32", at::kInt},
                                             {"U8", at::kByte},
                                             {"BOOL", at::kBool}}};

at::ScalarType scalar_type(const std::string& name) {
  for (const TypePair& pair : kTypes) {
    if (name == pair.name) return pair.type;
  }
  throw std::runtime_error("unknown type " + name);
}

const char* type_name(const std::string& tensor, at::ScalarType type) {
  for (const TypePair& pair : kTypes) {
    if (type == pair.type) return pair.name;
  }
  throw std::invalid_argument(
      message("[save_safetensors] '", tensor, "' has the type ", type, ", which cannot be written"));
}

void read_bytes(std::ifstream& in, int64_t position, void* to, int64_t count) {
  in.clear();
  in.seekg(position);
  in.read(static_cast<char*>(to), count);
  if (in.gcount() != count) {
    throw std::runtime_error(
        message("the file ended after ", in.gcount(), " of ", count, " bytes at byte ", position));
  }
}

std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()};
}

// of everything that a file says: metadata, and names, types, shapes and values of tensors
std::string checksum_of(const NamedTensors& contents) {
  Checksum sum;
  const auto add = [&](const std::string& text) { sum.add(text.size()).add(text); };
  for (const auto& [key, value] : contents.metadata) {
    if (key == kSafetensorsChecksum) continue;
    add(key);
    add(value);
  }
  for (const auto& [name, tensor] : contents.tensors) {
    add(name);
    add(type_name(name, tensor.scalar_type()));
    for (const int64_t extent : tensor.sizes()) sum.add(static_cast<uint64_t>(extent));
    sum.add(bytes_of(tensor));
  }
  return "xxh64 " + sum.text();
}

}  // namespace

struct SafetensorsFile::Contents {
  std::string path;
  mutable std::ifstream in;
  SafetensorsHeader header;

  const SafetensorsEntry& entry(const std::string& name) const {
    const auto found = header.entries.find(name);
    if (found == header.entries.end()) throw std::runtime_error(path + ": there is no tensor '" + name + "'");
    return found->second;
  }
};

SafetensorsFile::SafetensorsFile(const std::string& path) : contents_(std::make_unique<Contents>()) {
  contents_->path = path;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw std::runtime_error(path + ": " + (error ? error.message() : "not a file"));
  }
  contents_->in.open(path, std::ios::binary);
  if (!contents_->in) throw std::runtime_error(path + ": cannot be opened: " + std::strerror(errno));
  try {
    const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
    unsigned char first[8] = {};
    if (size >= 8) read_bytes(contents_->in, 0, first, 8);
    std::string text(safetensors_header_length(first, size), '\0');
    read_bytes(contents_->in, 8, text.data(), static_cast<int64_t>(text.size()));
    contents_->header = parse_safetensors_header(text, size);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

SafetensorsFile::~SafetensorsFile() = default;
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;

const std::string& SafetensorsFile::path() const { return contents_->path; }

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : contents_->header.entries) names.push_back(name);
  return names;
}

bool SafetensorsFile::contains(const std::string& name) const {
  return contents_->header.entries.contains(name);
}

std::vector<int64_t> SafetensorsFile::shape(const std::string& name) const {
  return contents_->entry(name).shape;
}

const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return contents_->header.metadata;
}

Tensor SafetensorsFile::read(const std::string& name) const {
  const SafetensorsEntry& entry = contents_->entry(name);
  Tensor tensor = at::empty(entry.shape, scalar_type(entry.type));
  if (tensor.numel() == 0) return tensor;
  try {
    read_bytes(contents_->in, contents_->header.data_begin + entry.begin, tensor.data_ptr(),
               entry.end - entry.begin);
    if (tensor.scalar_type() == at::kBool) {
      // a bool that is neither 0 nor 1 is undefined behaviour waiting to happen
      const auto* bytes = static_cast<const unsigned char*>(tensor.data_ptr());
      for (int64_t i = 0; i < tensor.numel(); ++i) {
        if (bytes[i] > 1)
          throw std::runtime_error(message("'", name, "' has the byte ", int{bytes[i]}, " as a BOOL"));
      }
    }
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path() + ": " + error.what());
  }
  return tensor;
}

NamedTensors load_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  NamedTensors result = {{}, file.metadata()};
  for (const std::string& name : file.names()) result.tensors[name] = file.read(name);
  const auto known = result.metadata.find(kSafetensorsChecksum);
  // files of earlier versions and of other programs have none
  if (known == result.metadata.end()) return result;
  if (known->second != checksum_of(result))
    throw std::runtime_error(path + ": the file is damaged: its contents do not match their checksum");
  result.metadata.erase(known);
  return result;
}

void save_safetensors(const std::string& path, const NamedTensors& contents) {
  // large types first, so that every tensor is aligned
  std::vector<std::pair<std::string, Tensor>> order;
  NamedTensors own = {{}, contents.metadata};
  for (const auto& [name, tensor] : contents.tensors) {
    FW_CHECK(tensor.defined(), "[save_safetensors] '", name, "' is undefined");
    FW_CHECK(tensor.layout() == at::kStrided, "[save_safetensors] '", name, "' is not a dense tensor");
    FW_CHECK(name != "__metadata__", "[save_safetensors] a tensor cannot be called __metadata__");
    own.tensors[name] = tensor.detach().cpu().contiguous();
    order.emplace_back(name, own.tensors[name]);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second.element_size() > b.second.element_size();
  });
  SafetensorsHeader header;
  header.metadata = contents.metadata;
  int64_t end = 0;
  for (const auto& [name, tensor] : order) {
    const auto bytes = static_cast<int64_t>(tensor.nbytes());
    header.entries[name] = {type_name(name, tensor.scalar_type()), tensor.sizes().vec(), end, end + bytes};
    end += bytes;
  }
  header.metadata[kSafetensorsChecksum] = checksum_of(own);
  const std::string first = write_safetensors_header(header);
  std::vector<std::string_view> pieces = {first};
  for (const auto& [name, tensor] : order) pieces.push_back(bytes_of(tensor));
  replace_file(path, pieces);
}

}  // namespace fastweights
