#pragma once

#include <functional>
#include <string>
#include <vector>

/// Tools: gradient checks, self-test, published models, tensors in files, properties of this machine.
#include "fastweights/environment.h"
#include "fastweights/gradcheck.h"
#include "fastweights/published.h"
#include "fastweights/tensor.h"

namespace fastweights {

/// One case: fast code compared with its plain definition on this machine.
struct SelftestResult {
  std::string name;
  double error;  ///< relative to the largest value
  double tolerance;
  std::string reason;  ///< for the tolerance
  bool passed() const { return error <= tolerance; }
};

/// Runs all cases; `report` is called after each one.
std::vector<SelftestResult> selftest(const std::function<void(const SelftestResult&)>& report = {});

}  // namespace fastweights
