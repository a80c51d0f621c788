#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/parsers.h"
#include "data/zip.h"

/// numpy arrays (.npy, .npz): float32, float64, int32, int64, little endian, and strings.

namespace fastweights::data {

/// An array in C order; one of the three vectors is in use.
struct NpyArray {
  enum class Kind { Real, Integer, Text };
  Kind kind = Kind::Real;
  std::vector<int64_t> shape = {};
  std::vector<double> reals = {};
  std::vector<int64_t> integers = {};
  std::vector<std::string> texts = {};  // UTF-8
};

NpyArray real_array(std::vector<int64_t> shape, std::vector<double> values);
NpyArray integer_array(std::vector<int64_t> values);
NpyArray text_array(std::vector<std::string> values);

/// `name` is for error messages, `limit` for the memory. Format versions 1, 2 and 3, C and Fortran order.
NpyArray parse_npy(std::string_view bytes, const std::string& name, size_t limit = kNoLimit);
std::string npy_bytes(const NpyArray& array);

/// Arrays by name, without the ending .npy.
std::map<std::string, NpyArray> parse_npz_arrays(std::string_view bytes, const std::string& file,
                                                 size_t limit = kNoLimit);
std::string npz_bytes(const std::map<std::string, NpyArray>& arrays, Packing packing);

}  // namespace fastweights::data
