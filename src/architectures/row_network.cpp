#include "architectures/row_network.h"

#include <typeinfo>

#include "tensor/device.h"

namespace fastweights {

int64_t RowBatch::bytes() const {
  int64_t sum = 0;
  for (const Tensor& x : {rows.input, rows.gap, rows.since, rows.observed})
    sum += static_cast<int64_t>(x.nbytes());
  return sum;
}

PreparedBatch RowBatch::select(const std::vector<int64_t>& samples) const {
  auto result = std::make_shared<RowBatch>();
  result->network = network;
  result->times = select_samples(times, samples);
  result->rows = select_samples(rows, samples, result->times.offsets);
  if (static_features.defined())
    result->static_features =
        static_features.index_select(0, index_on_device(samples, static_features.device()));
  network->complete(*result, select_samples(requested.times, samples));
  return PreparedBatch(result);
}

void RowNetwork::complete(RowBatch& batch, const RaggedTimes& requested) const {
  batch.requested = requested_outputs(requested, device());
  batch.outputs = output_rows(shared(config()).time_unit, batch.times, requested, batch.rows);
  batch.extra = extra(config(), batch);
}

std::shared_ptr<const RowBatch> RowNetwork::make_batch(const CheckedInput& input) const {
  auto batch = std::make_shared<RowBatch>();
  batch->network = std::static_pointer_cast<const RowNetwork>(shared_from_this());
  batch->times = {input.series.times.contiguous(), input.series.offsets};
  batch->rows = make_rows(shared(config()), input.series, device());
  batch->static_features = on_device(input.static_features, device());
  complete(*batch, input.requested);
  return batch;
}

PreparedBatch RowNetwork::prepare(const ModelInput& input, Reuse) const {
  return PreparedBatch(make_batch(check(input)));
}

ModelOutput RowNetwork::forward(const PreparedBatch& batch, const PassOptions& options) const {
  const auto& rows = contents_of<RowBatch>(batch);
  if (typeid(*rows.network) != typeid(*this)) refuse_batch();
  return forward(config(), rows, options);
}

ModelOutput RowNetwork::forward(const ModelConfig& model, const CheckedInput& checked,
                                const ForwardOptions& options) const {
  return forward(model, *make_batch(checked), PassOptions{options});
}

}  // namespace fastweights
