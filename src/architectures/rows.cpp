#include "architectures/rows.h"

#include <algorithm>

namespace fastweights {

RowData make_rows(const SharedOptions& config, const RaggedSeries& series) {
  const at::ScalarType type = series.values.scalar_type();
  RowData result;
  result.packed = pack(series.offsets);
  const Signal signal(config, series);
  const Tensor clock = signal.clock({series.times, series.offsets});
  const auto ordered = [&](const Tensor& rows) {
    return rows.index_select(0, result.packed.packed_to_batch);
  };
  result.values = ordered(signal.sample({clock, series.offsets}).value);
  const Tensor seen = at::isnan(series.values.detach()).logical_not();
  const Tensor any = seen.slice(1, config.known_channels).any(1);
  result.mask = ordered(seen.to(type));
  result.observed = ordered(any);

  const Tensor times = series.times.contiguous(), offsets = series.offsets.contiguous();
  const Tensor seen_rows = any.contiguous();
  const double* t = times.data_ptr<double>();
  const int64_t* o = offsets.data_ptr<int64_t>();
  const bool* observed = seen_rows.data_ptr<bool>();
  Tensor gap = at::zeros_like(times), since = at::zeros_like(times);
  for (int64_t b = 0; b < series.samples(); ++b) {
    double last = t[o[b]];
    for (int64_t i = o[b] + 1; i < o[b + 1]; ++i) {
      if (observed[i - 1]) last = t[i - 1];
      gap.data_ptr<double>()[i] = (t[i] - t[i - 1]) / config.time_unit;
      since.data_ptr<double>()[i] = (t[i] - last) / config.time_unit;
    }
  }
  result.gap = ordered(gap).to(type).unsqueeze(1);
  result.since = ordered(since).to(type).unsqueeze(1);
  return result;
}

OutputRows output_rows(const SharedOptions& config, const CheckedInput& input, const RowData& rows) {
  const Tensor times = input.series.times.contiguous(), offsets = input.series.offsets.contiguous();
  const Tensor requested = input.requested.times.contiguous(),
               requested_offsets = input.requested.offsets.contiguous();
  const double *t = times.data_ptr<double>(), *r = requested.data_ptr<double>();
  const int64_t *o = offsets.data_ptr<int64_t>(), *ro = requested_offsets.data_ptr<int64_t>();
  std::vector<int64_t> found;
  std::vector<double> elapsed;
  for (int64_t b = 0; b < input.series.samples(); ++b) {
    for (int64_t i = ro[b]; i < ro[b + 1]; ++i) {
      const int64_t row = std::max(std::upper_bound(t + o[b], t + o[b + 1], r[i]) - t - 1, o[b]);
      found.push_back(row);
      elapsed.push_back((r[i] - t[row]) / config.time_unit);
    }
  }
  OutputRows result;
  result.packed_rows = rows.packed.batch_to_packed.index_select(0, at::tensor(found, at::kLong));
  result.elapsed = at::tensor(elapsed, at::kDouble).to(input.series.values.scalar_type()).unsqueeze(1);
  return result;
}

}  // namespace fastweights
