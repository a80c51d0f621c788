#pragma once

#include <memory>
#include <optional>

#include "fastweights/model.h"
#include "fastweights/network.h"
#include "model/batch.h"
#include "model/config_checks.h"
#include "nn/layers.h"

/// Baselines: architectures that fast weight programmers in continuous time are compared with.

namespace fastweights {

/// The network of a configuration, after checks.
std::shared_ptr<const Network> make_network(const ModelConfig& config, const ModelOptions& options);

// checks that several baselines share

/// Continuous ones: control, solver, and a backend, which can only be the reference.
void check_continuous(const SharedOptions& options, Backend backend);
/// Those that go from row to row.
void check_rows(const SharedOptions& options);
void check_published_rows(const SharedOptions& options, const RowConfig& rows);
void check_heads(int64_t hidden_size, int64_t heads, int64_t feed_forward_size);
/// Parameters of input, state and head, roughly.
double base_parameters(const SharedOptions& options, int64_t layers = 1);
/// Options of fitted architectures: fewer known channels than channels.
void check_known_channels(const ModelConfig& model, const FittedRows& rows);
double field_parameters(double state, double hidden, int64_t layers, double out);
double feed_forward_parameters(double state, int64_t feed_forward_size, int64_t layers);

/// Static features through one hidden layer of relus: [B, F] to [B, size].
struct StaticNet {
  nn::Linear hidden, out;

  Tensor operator()(const Tensor& features) const { return linear(out, at::relu(linear(hidden, features))); }
};
/// None where the model has no static features.
std::optional<StaticNet> make_static_net(const SharedOptions& config, int64_t size, nn::ParameterMaker& make);

/// The requested outputs of a prepared batch. Positions are on the device of the network.
struct RequestedOutputs {
  RaggedTimes times;  // on the CPU
  Tensor last_times;  // [B] on the CPU: the last output of each sample; 0 without outputs
  Tensor sample;      // [M] int64: the sample of each output
  Tensor last;        // [B] int64: the last output of each sample
  Tensor without;     // [B] bool: samples without outputs; undefined if there are none
};
RequestedOutputs requested_outputs(const RaggedTimes& times, const at::Device& device);

/// outputs = head(state) from states [M, d] at the outputs, with dropout on them in training, and what a
/// ModelOutput says besides. `w` [M, H, V, K] are fast weights; undefined: the states stand there.
ModelOutput read_states(const SharedOptions& config, const PassOptions& options, const nn::Linear& head,
                        const RequestedOutputs& requested, const Tensor& states, const Tensor& w = {});

/// Outputs of whole series [B, O], the same at all requested times of a series.
ModelOutput series_output(const Tensor& outputs, const RaggedTimes& requested);

/// The given samples of a checked input, in the given order.
CheckedInput select_samples(const CheckedInput& input, const std::vector<int64_t>& samples);

}  // namespace fastweights
