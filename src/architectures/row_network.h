#pragma once

#include "architectures/rows.h"

/// Architectures that go from row to row. A batch is prepared once: what passes read of it is on the device
/// of the network, and a pass copies nothing from or to the CPU.

namespace fastweights {

class RowNetwork;

/// What one architecture needs of a batch besides its rows.
struct RowExtra {
  virtual ~RowExtra() = default;
};

struct RowBatch final : PreparedBatch::Contents {
  std::shared_ptr<const RowNetwork> network;
  RaggedTimes times;  // of the rows, on the CPU
  RequestedOutputs requested;
  RowData rows;
  OutputRows outputs;
  Tensor static_features;  // [B, F], or undefined
  std::shared_ptr<const RowExtra> extra;

  int64_t samples() const override { return times.offsets.size(0) - 1; }
  int64_t bytes() const override;
  PreparedBatch select(const std::vector<int64_t>& samples) const override;

  template <typename Extra>
  const Extra& get() const {
    return dynamic_cast<const Extra&>(*extra);
  }
};

class RowNetwork : public Baseline {
 public:
  using Baseline::Baseline;

  PreparedBatch prepare(const ModelInput& input, Reuse reuse) const final;
  ModelOutput forward(const PreparedBatch& batch, const PassOptions& options) const final;

 protected:
  virtual SharedOptions shared(const ModelConfig& model) const = 0;
  /// Of a batch that has everything else.
  virtual std::shared_ptr<const RowExtra> extra(const ModelConfig& /*model*/,
                                                const RowBatch& /*batch*/) const {
    return {};
  }
  virtual ModelOutput forward(const ModelConfig& model, const RowBatch& batch,
                              const PassOptions& options) const = 0;

 private:
  friend RowBatch;

  ModelOutput forward(const ModelConfig& model, const CheckedInput& checked,
                      const ForwardOptions& options) const final;
  std::shared_ptr<const RowBatch> make_batch(const CheckedInput& input) const;
  /// What follows from the rows and from all times.
  void complete(RowBatch& batch, const RaggedTimes& requested) const;
};

}  // namespace fastweights
