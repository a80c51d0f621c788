#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fastweights/tensor.h"

/// Tensors on disk in the safetensors format: F64, F32, F16, BF16, I64, I32, U8 and BOOL, with a map of
/// strings as metadata. A malformed file is a std::runtime_error that names the file and the error.

namespace fastweights {

/// An open file. Opening it reads and checks names, shapes and metadata; tensors are read on request.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;

  const std::string& path() const;
  /// Sorted.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const;
  std::vector<int64_t> shape(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const;
  /// Reads one tensor; an unknown name is an error.
  Tensor read(const std::string& name) const;

 private:
  struct Contents;
  std::unique_ptr<Contents> contents_;
};

struct NamedTensors {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads a whole file.
NamedTensors load_safetensors(const std::string& path);

/// Writes a whole file atomically: first under a temporary name in the same folder.
void save_safetensors(const std::string& path, const NamedTensors& contents);

}  // namespace fastweights
