#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "fastweights/tensor.h"

/// A golden file, and the comparison of what we compute with it.

namespace fastweights::golden {

/// Who computes what is compared, and in which numbers.
struct Target {
  const char* name = "reference";
  Backend backend = Backend::Reference;
  at::ScalarType type = at::kDouble;
  double rounding = 1e-10;  ///< allowed, relative to the largest number of a tensor
  at::Device device = at::kCPU;
};

/// Reads tensors and metadata and remembers what was asked for: a file with anything left over was not
/// understood.
class GoldenFile {
 public:
  explicit GoldenFile(const std::string& path, const Target& target = {});

  const Target& target() const { return target_; }

  bool has(const std::string& name) const { return contents_.tensors.contains(name); }
  bool has_text(const std::string& key) const { return contents_.metadata.contains(key); }
  Tensor tensor(const std::string& name);
  std::string text(const std::string& key) const;
  double number(const std::string& key) const;
  nlohmann::json json(const std::string& key) const;
  /// Names that begin with this.
  std::vector<std::string> names(const std::string& prefix) const;
  /// Names nobody asked for.
  std::vector<std::string> unused() const;

  /// Compares and keeps the worst relation of error to tolerance; `expected` names a tensor of this file.
  void compare(const std::string& expected, const Tensor& got, double tolerance);
  void compare_count(const std::string& expected, int64_t got);
  void compare_value(const std::string& what, const Tensor& got, const Tensor& expected, double tolerance);
  void fail(const std::string& what);
  /// Empty if everything agreed.
  const std::string& failure() const { return failure_; }

  /// The comparison that came closest to its tolerance.
  struct Closest {
    std::string what;
    double error = 0, tolerance = 0, relation = 0;
  };
  const Closest& closest() const { return closest_; }

 private:
  NamedTensors contents_;
  Target target_;
  std::set<std::string> used_;
  double worst_ = 1;
  Closest closest_;
  std::string failure_;
};

/// Rounding: two ways to add up the same numbers in float64.
inline constexpr double kRounding = 1e-10;

// each checks one file of its group; trouble is reported through the file or thrown
void check_paths(GoldenFile& file);
void check_logsig(GoldenFile& file);
void check_solvers(GoldenFile& file);
void check_adjoint(GoldenFile& file);
void check_fwp_spline(GoldenFile& file);
void check_fwp_eigenworms(GoldenFile& file);
void check_single_precision_trace(GoldenFile& file);
void check_baselines(GoldenFile& file);
void check_train(GoldenFile& file);
void check_rfwp(GoldenFile& file);

}  // namespace fastweights::golden
