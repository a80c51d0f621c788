#pragma once

#include <cstdint>
#include <string>

#include "fastweights/architecture.h"
#include "fastweights/tensor.h"

/// Baselines, and predecessors of fast weight programmers; docs/baselines.md has their equations and sources.
/// Discrete architectures process a series row by row.

namespace fastweights {

/// The matrix F(z) of a neural CDE: the network computes all entries, or two vectors whose outer product is
/// F.
enum class FieldForm { Full, RankOne };

/// Position of the last tanh of a neural CDE's network: on its output, or before the last layer (neural
/// RDEs).
enum class FieldEnd { TanhOutput, TanhHidden };

/// The network of a vector field.
struct FieldConfig {
  int64_t hidden_size = 64;
  int64_t layers = 2;  ///< hidden ones
};

/// The network F of a neural CDE.
struct CdeFieldConfig {
  int64_t hidden_size = 64;
  int64_t layers = 2;  ///< hidden ones
  FieldForm form = FieldForm::Full;
  FieldEnd end = FieldEnd::TanhOutput;
  bool tied = false;  ///< all layers between hidden ones share one weight, as in the published neural RDEs
};

/// The input of a discrete architecture at a row. Masked: the time since the previous row, the values, and a
/// mask of the observed values. Published: the channels are time, counts of observations and values.
/// PublishedInPlace: as the published code, which takes differences of the counts in place, so that each
/// difference uses a count that has already changed.
enum class RowInput { Masked, Published, PublishedInPlace };

/// Whether a recurrent state evolves by its ODE before or after it reads a row.
enum class UpdateOrder { OdeFirst, DataFirst };

/// Variational terms of the training loss: `divergence` times the divergence of the initial state's
/// distribution from the prior, and `reconstruction` times the error of the decoded values.
struct LatentConfig {
  int64_t size = 16;  ///< of the latent state
  double divergence = 0.01, reconstruction = 1;
};

/// z' = F(z) x'(t); on log-signatures a neural RDE.
struct NeuralCde {
  ControlConfig control = {};
  SolverConfig solver = {};
  Backend backend = Backend::Auto;  ///< Auto or Reference
  CdeFieldConfig field = {};
  int64_t hidden_size = 32;
  int64_t static_hidden_size = 256;
  double dropout = 0, time_unit = 1;
};

/// PathSoFar: the field of a GRU on the path so far, driven by time. Direct: z' = tanh of a GRU's field at
/// x(t).
enum class GruOdeForm { PathSoFar, Direct };

struct GruOde {
  GruOdeForm form = GruOdeForm::PathSoFar;
  ControlConfig control = {};
  SolverConfig solver = {};
  Backend backend = Backend::Auto;  ///< Auto or Reference
  int64_t hidden_size = 32;
  int64_t static_hidden_size = 256;
  double dropout = 0, time_unit = 1;
};

/// How GRU-dt, GRU-D and ODE-RNN read rows.
struct RowConfig {
  RowInput input = RowInput::Masked;
  bool values_only = false;  ///< published inputs: omit the counts
  /// Leading channels that are always known, such as time: they do not make a row an observation.
  int64_t known_channels = 0;
};

/// A GRU at observations, an ODE in between.
struct OdeRnn {
  ControlConfig control = {};
  SolverConfig solver = {};
  FieldConfig field = {};
  RowConfig rows = {};
  int64_t hidden_size = 32;
  int64_t static_hidden_size = 256;
  double dropout = 0, time_unit = 1;
};

/// How a GRU receives the time since the last observation: as an input, or as a decay of its state.
enum class GapForm { Input, Decay };

/// GRU-dt and GRU-D.
struct GapGru {
  GapForm form = GapForm::Input;
  ControlConfig control = {};
  RowConfig rows = {};
  int64_t hidden_size = 32;
  int64_t static_hidden_size = 256;
  double dropout = 0, time_unit = 1;
};

enum class RecurrentCell { Gru, Lstm, Lem };

/// GRU, LSTM and long expressive memory over rows.
struct Recurrent {
  RecurrentCell cell = RecurrentCell::Gru;
  ControlConfig control = {};
  int64_t layers = 1;
  int64_t hidden_size = 32;
  int64_t static_hidden_size = 256;
  double dropout = 0, time_unit = 1;
};

/// Variational: an ODE-RNN encodes the series, an ODE decodes it.
struct LatentOde {
  struct Rows {
    int64_t known_channels = 0;
  };
  ControlConfig control = {};
  SolverConfig solver = {};
  FieldConfig field = {};
  LatentConfig latent = {};
  Rows rows = {};
  int64_t hidden_size = 32;
  int64_t static_hidden_size = 256;
  double dropout = 0, time_unit = 1;
};

/// How fast weights are written row by row: by sums of outer products (linear transformer), by the delta rule
/// (delta net), or by the delta rule of a slow net that also reads the previous output (recurrent).
enum class RowMemory { Sum, Delta, Recurrent };

/// Discrete fast weight programmers.
struct DiscreteFwp {
  RowMemory memory = RowMemory::Delta;
  ControlConfig control = {};
  Backend backend = Backend::Auto;  ///< Recurrent: Auto or Reference
  int64_t hidden_size = 32;
  int64_t heads = 4;
  int64_t feed_forward_size = 0;  ///< 0: 4 d
  int64_t layers = 1;
  int64_t static_hidden_size = 256;
  double dropout = 0, time_unit = 1;
};

/// A recurrent fast weight programmer with an ODE on its recurrent state between observations; Latent: with a
/// variational initial state.
enum class RfwpForm { Plain, Latent };

struct OdeRfwp {
  struct Rows {
    UpdateOrder order = UpdateOrder::OdeFirst;
    int64_t known_channels = 0;
  };
  struct Latent {
    double divergence = 0.01;
  };
  RfwpForm form = RfwpForm::Plain;
  std::string rule = "delta_pre";  ///< a built-in one
  ControlConfig control = {};
  SolverConfig solver = {};
  FieldConfig field = {};
  Rows rows = {};
  Latent latent = {};  ///< Latent only
  int64_t hidden_size = 32;
  int64_t heads = 4;
  int64_t feed_forward_size = 0;  ///< 0: 4 d
  int64_t static_hidden_size = 256;
  double dropout = 0, time_unit = 1;
};

const ArchitectureType& architecture_type(const NeuralCde&);
const ArchitectureType& architecture_type(const GruOde&);
const ArchitectureType& architecture_type(const OdeRnn&);
const ArchitectureType& architecture_type(const GapGru&);
const ArchitectureType& architecture_type(const Recurrent&);
const ArchitectureType& architecture_type(const LatentOde&);
const ArchitectureType& architecture_type(const DiscreteFwp&);
const ArchitectureType& architecture_type(const OdeRfwp&);

}  // namespace fastweights
