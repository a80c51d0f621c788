#pragma once

#include <string>

#include "fastweights/architecture.h"
#include "fastweights/device.h"

/// Continuous-time fast weight programmers: rule, drive, control, solver and backend are independent choices.
/// The defaults are the recommended choices. The peculiarities of the published code are named options
/// (published.h sets them together).

namespace fastweights {

/// W(t0): the rule at t0 with W = 0; zero; static features through a network; or the rule at a learned
/// projection of the first observation (for a tensor map: that projection itself).
enum class InitialWeights { Rule, Zero, StaticFeatures, FirstObservation };

/// The time at which the query is computed from the signal: at the output; at the last time of the whole
/// batch, as published; or the query is computed from the projected first observation.
enum class QueryTime { Output, LastOfBatch, FirstObservation };

/// What the next layer of a deep model reads: W q (the paper), or dW/dt q (the published code; its final
/// readout uses W).
enum class LayerInput { Weights, Update };

struct FastWeights {
  std::string rule = "delta_pre";
  Drive drive = Drive::X;
  ControlConfig control = {};
  SolverConfig solver = {};
  Backend backend = Backend::Auto;

  int64_t hidden_size = 32;       ///< d
  int64_t heads = 4;              ///< H
  int64_t key_width = 0;          ///< 0: d / H
  int64_t value_width = 0;        ///< 0: d / H
  int64_t feed_forward_size = 0;  ///< 0: 4 d
  int64_t static_hidden_size = 256;
  int64_t layers = 1;
  LayerInput layer_input = LayerInput::Weights;
  bool residual = false;    ///< around the fast weights; deep models
  bool value_norm = false;  ///< a LayerNorm and one more layer on values that have a projection of their own

  InitialWeights initial = InitialWeights::Rule;
  QueryTime query = QueryTime::Output;
  Read read = Read::Plain;
  LearningRate learning_rate = LearningRate::Sigmoid;
  ValueActivation value_activation = ValueActivation::Tanh;
  double dropout = 0;          ///< in the readout
  double value_dropout = 0;    ///< on values, the same at all times
  double time_unit = 1;        ///< times are divided by this; the median gap of the data is a good choice
  bool deterministic = false;  ///< batch-invariant: a sample's bits do not depend on its batch
  bool unused_layer = false;   ///< the published code's initial_network, which is never read
};

/// dW/dt = F(W) x'(t) with a network F of W itself, and no rule. The size of F limits it to small models; the
/// paper includes it for comparison.
struct TensorMap {
  ControlConfig control = {};
  SolverConfig solver = {};
  Backend backend = Backend::Auto;
  int64_t hidden_size = 32;  ///< d, rows of W
  int64_t feed_forward_size = 0;
  int64_t static_hidden_size = 256;
  int64_t map_hidden_size = 32;
  int64_t map_layers = 2;
  InitialWeights initial = InitialWeights::Zero;  ///< not Rule
  QueryTime query = QueryTime::Output;            ///< not FirstObservation
  double dropout = 0;
  double time_unit = 1;
  bool deterministic = false;
  bool unused_layer = false;
};

const ArchitectureType& architecture_type(const FastWeights&);
const ArchitectureType& architecture_type(const TensorMap&);

}  // namespace fastweights
