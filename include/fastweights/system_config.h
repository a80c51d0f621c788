#pragma once

#include <cstdint>

/// Which system a model is, and what those have that are no fast weight programmers in continuous time.

namespace fastweights {

/// Fast weight programmers in continuous time, and the systems they are compared with or descend from
/// (docs/systems.md has their equations and sources). Discrete ones go from row to row of a series.
enum class System {
  FastWeights,
  NeuralCde,     ///< z' = F(z) x'(t); on log-signatures a neural RDE
  GruOde,        ///< the field of a GRU on the path so far, driven by time
  DirectGruOde,  ///< z' = tanh of a GRU's field at x(t)
  OdeRnn,        ///< a GRU at observations, an ODE in between
  GruDt,         ///< a GRU that is told the time since the last observation
  GruD,          ///< a GRU whose state decays between observations
  Gru,
  Lstm,
  Lem,                ///< long expressive memory
  LatentOde,          ///< variational: an ODE-RNN reads, an ODE tells
  LinearTransformer,  ///< fast weights written by sums of outer products, row by row
  DeltaNet,           ///< fast weights written by the delta rule, row by row
  RecurrentFwp,       ///< a delta net whose slow net reads what its fast net said before
  OdeRfwp,            ///< the same with an ODE on its recurrent state between observations
  LatentOdeRfwp       ///< and a variational first state
};

/// Of a network that maps a state z to a matrix: all of its entries, or the outer product of two vectors.
enum class FieldForm { Full, RankOne };

/// Where the last tanh of a neural CDE's network is: on its output, or before the last layer (neural RDEs).
enum class FieldEnd { TanhOutput, TanhHidden };

/// Networks of vector fields that are no learning rules: neural CDEs and RDEs, ODEs between observations.
struct FieldConfig {
  int64_t hidden_size = 64;
  int64_t layers = 2;  ///< hidden ones
  FieldForm form = FieldForm::Full;
  FieldEnd end = FieldEnd::TanhOutput;
  bool tied = false;  ///< all layers between hidden ones are one, as published for neural RDEs by accident
};

/// What a discrete system reads at a row: the time since the row before, the values and which of them were
/// observed. Published: channels are time, counts of observations and values; and the counts' differences
/// were taken in place, so that each is made from one that had been changed already (PublishedInPlace).
enum class RowInput { Masked, Published, PublishedInPlace };

/// Whether a recurrent state goes through its ODE before or after it reads a row.
enum class UpdateOrder { OdeFirst, DataFirst };

/// Discrete systems.
struct RowConfig {
  RowInput input = RowInput::Masked;
  bool values_only = false;  ///< published inputs: counts are not read
  /// Channels in front that are always known, such as time: they do not make a row an observation.
  int64_t known_channels = 0;
  UpdateOrder order = UpdateOrder::OdeFirst;
};

/// Variational systems: the loss of a training pass gets `divergence` times the divergence of the first
/// state's distribution from the prior, and `reconstruction` times the error of the values told from it.
struct LatentConfig {
  int64_t size = 16;  ///< of a latent ODE's state; a latent ODE-RFWP's is hidden_size
  double divergence = 0.01, reconstruction = 1;
};

}  // namespace fastweights
