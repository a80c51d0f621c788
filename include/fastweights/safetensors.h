#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fastweights/tensor.h"

/// Tensors on disk in the safetensors format: F64, F32, F16, BF16, I64, I32, U8 and BOOL, with a map of texts
/// as metadata. A file that is not what it claims gets a std::runtime_error that names the file and what is
/// wrong.

namespace fastweights {

/// An open file. Names, shapes and metadata are known and checked once it is open; tensors are read when
/// asked for.
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

/// Writes a whole file, first under a temporary name beside it, so that a reader never sees half of it.
void save_safetensors(const std::string& path, const NamedTensors& contents);

}  // namespace fastweights
