#pragma once

#include "fastweights/tensor.h"
#include "fastweights/tools.h"
#include "model/programmer_config.h"

/// Small models through the fused engine, compared with the definition: outputs, fast weights, all gradients.

namespace fastweights {

/// Output times: the end of each series; or beginnings, observations, times in between and ends, different
/// for each series and none for some.
enum class CaseOutputs { Ends, Between };

enum class CaseTimes { Irregular, Regular };

/// A random batch, always the same one.
struct CaseBatch {
  std::vector<int64_t> lengths;  ///< points of each series
  CaseOutputs outputs = CaseOutputs::Ends;
  CaseTimes times = CaseTimes::Irregular;
  double missing = 0;  ///< share of the values
};

struct EngineCase {
  std::string name;
  ProgrammerConfig config;
  CaseBatch batch;
};

/// The table: every rule, drive, control, head width and whatever else the engine knows.
std::vector<EngineCase> engine_cases();

/// Largest errors, relative to the largest number of each tensor (gradients: see engine_cases.cpp); infinite
/// where something is not a number.
struct EngineErrors {
  double outputs = 0, weights = 0, gradients = 0;
  std::string backend;         ///< that ran
  std::string worst_gradient;  ///< its name
  int64_t blocks = 1;          ///< of time into which the engine cut the solve
  double largest() const;
};

/// The engine in each of these types against the definition in float64, on parameters and data that float32
/// can hold; then, if there is a GPU, its engine in float32.
std::vector<EngineErrors> engine_errors(const ProgrammerConfig& config, const CaseBatch& batch,
                                        const std::vector<at::ScalarType>& types);

/// One result for float32, one for float64 and, where there is a GPU, one for its float32; the name says
/// which backend ran.
std::vector<SelftestResult> engine_results(const EngineCase& engine_case);

}  // namespace fastweights
