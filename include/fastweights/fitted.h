#pragma once

#include <cstdint>

#include "fastweights/architecture.h"

/// Baselines that are fitted to the training data at once instead of trained by steps: MiniROCKET, nearest
/// neighbours, and rules that repeat or connect observed values. docs/baselines.md defines them.

namespace fastweights {

/// Leading channels of the input that are no measurements: time and counts.
struct FittedRows {
  int64_t known_channels = 0;
};

enum class RocketHead { Ridge, Logistic };

/// Random convolution kernels with a linear head. Dempster, Schmidt and Webb 2021.
struct MiniRocket {
  RocketHead head = RocketHead::Ridge;
  int64_t features = 10'000;  ///< rounded down to a multiple of the 84 kernels
  int64_t dilations = 32;     ///< at most, per kernel
  /// Length in rows that dilations are chosen for; every series has it if lengths are equal.
  int64_t reference_length = 9;
  /// Every second kernel without padding, as the authors do for series of equal lengths.
  bool equal_lengths = true;
  FittedRows rows = {};
  double time_unit = 1;  ///< gap of the regular grid that irregular series are resampled to
};

/// One nearest neighbour under dynamic time warping of all channels together, or, with window 0 and one
/// length, under the Euclidean distance.
struct NearestNeighbour {
  double window = 1;                    ///< of warping: fraction of the longer series; 1: none
  int64_t length = 0;                   ///< rows that every series is resampled to; 0: as they are
  int64_t series = 0, stored_rows = 0;  ///< sizes of the training data, which are the parameters
  FittedRows rows = {};
};

enum class SeasonUnit { Rows, Time };

/// How a value of a channel follows from its observed values. Last: the last one. Season: the one a season
/// before. Neighbours: on the line between the two observations around it. FirstAndLast: on the line through
/// the first and the last one.
enum class NaiveForm { Last, Season, Neighbours, FirstAndLast };

struct Naive {
  NaiveForm form = NaiveForm::Last;
  double season = 0;  ///< in units of season_unit; 0: estimated by autocorrelation
  SeasonUnit season_unit = SeasonUnit::Time;
  FittedRows rows = {};
  double time_unit = 1;  ///< gap of the regular grid that seasons are estimated on
};

const ArchitectureType& architecture_type(const MiniRocket&);
const ArchitectureType& architecture_type(const NearestNeighbour&);
const ArchitectureType& architecture_type(const Naive&);

}  // namespace fastweights
