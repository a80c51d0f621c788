#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/scan/features.h"

/// Cases of scan as data, and what a backend makes of one: outputs and all gradients.

namespace fastweights::testing {

/// Whether all stages of a step share a program.
enum class Rows { Shared, PerStage };

/// When W is requested: at the end of each sample; or at the start, twice in the middle and at the end of
/// some, once inside others, and never.
enum class OutputsAt { Ends, Mixed };

enum class Mask { None, Factors };

/// Keys, values and rates made of features.
struct MadeOf {
  int64_t keys = 3, values = 3;  // I, J
  int64_t features = 3;          // F
  Rows rows = Rows::Shared;      // of the features; one per stage, if keys or values ask for it
  Mask mask = Mask::None;
  ProgramForms forms = {};
};

/// Head widths with kernels of their own, and some without.
inline const std::vector<int64_t> kScanWidths = {1, 3, 4, 5, 8, 10, 16, 20, 23, 32, 64};

struct ScanCase {
  Rule rule = delta_pre();
  Method method = rk4();
  int64_t width = 3;
  int64_t heads = 2;
  std::vector<int64_t> steps = {5, 3, 0, 1};  // of each sample
  Rows keys = Rows::Shared, values = Rows::Shared, rates = Rows::Shared;
  int64_t queries = 0;
  Read read = Read::Plain;
  ScanReads reads = ScanReads::Weights;
  OutputsAt outputs_at = OutputsAt::Ends;
  std::optional<MadeOf> made = {};  // or they are given
  uint64_t seed = 1;

  int64_t stages() const;
  std::string name() const;
};

/// Tableaux with at most four stages, and the flow itself where the rule has one.
std::vector<Method> fused_methods();
std::vector<Method> fused_methods(const Rule& rule);

/// Inputs that keep long recurrences tame: keys are shares, rates lie in (0, 1), steps in (0.2, 1). They are
/// rounded to float32, so that both types start from the same values.
ScanInput given_input(const ScanCase& c, at::ScalarType type);
ScanFeatures features_input(const ScanCase& c, at::ScalarType type);

/// w, y, dy as far as they are there, and gradients of a random weighting of them with respect to all that is
/// differentiable.
struct ScanResult {
  struct Entry {
    std::string name;
    Tensor tensor;
    double scale;  // what rounding is measured by: the largest number, or what it is a sum of
  };
  std::vector<Entry> entries;
  std::string backend;

  const Tensor& at(const std::string& name) const;
};
ScanResult run(const ScanCase& c, at::ScalarType type, Backend backend);

/// The definition in float64. Programs are made of features here, too, once more in plain sight.
ScanResult definition(const ScanCase& c);

/// Equal up to rounding, of which there is more the longer the samples are.
void expect_near(const ScanCase& c, const ScanResult& got, const ScanResult& expected, at::ScalarType type);
void expect_same_bits(const ScanResult& got, const ScanResult& expected);

/// Random weights of w and, if there are queries, of y and dy.
ScanOutput random_weights(const ScanInput& input, const ScanOptions& options, uint64_t seed = 1);
ScanOutput random_weights(const ScanFeatures& input, uint64_t seed = 1);

/// Inputs at hand, of which leaves are copied, and gradients of the outputs weighted so; an output without
/// weights is not used.
ScanResult run(const ScanInput& input, const ScanOptions& options, const ScanOutput& weights);
ScanResult run(const ScanFeatures& input, const ProgramForms& forms, const ScanOptions& options,
               const ScanOutput& weights);

ScanOptions options_of(const ScanCase& c, Backend backend);

/// Threads for a scope.
class Threads {
 public:
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

/// One number after another, of lists of any length.
template <typename List>
auto in_turn(const List& list, size_t n) {
  return *(std::begin(list) + n % std::size(list));
}

}  // namespace fastweights::testing
