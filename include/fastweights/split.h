#pragma once

#include <string>
#include <vector>

#include "fastweights/dataset.h"

/// Which series train a model, which choose it, and which are kept to say how good it is.

namespace fastweights {

/// Automatic: as the source says, if it says anything; otherwise by groups, if series share any; otherwise
/// stratified by label, or at random where there are none. Folds: every series is tested in one of several
/// runs. Indices: a file says it.
enum class SplitRule { Automatic, Given, Random, Stratified, Grouped, Folds, Indices };

struct SplitConfig {
  SplitRule rule = SplitRule::Automatic;
  double validation = 0.15, test = 0.15;  ///< shares
  int64_t seed = 1;
  int64_t folds = 5, fold = 0;
  /// JSON {"train": [...], "validation": [...], "test": [...]} of numbers from 0 or ids; without train: the
  /// others.
  std::string indices = {};
};

struct Split {
  std::vector<int64_t> train, validation, test;  // samples
  SplitRule rule = SplitRule::Random;            ///< that was taken
};

/// Training series that the source marks and nobody has set apart for validation are divided by the share.
Split split(const DataSet& data, const SplitConfig& config = {});

}  // namespace fastweights
