#include "architectures/rows.h"

#include <algorithm>

#include "tensor/device.h"

namespace fastweights {

RowData make_rows(const SharedOptions& config, const RaggedSeries& series, const at::Device& device) {
  const at::ScalarType type = series.values.scalar_type();
  const Packed packed = pack(series.offsets);
  const Signal signal(config, series);
  const Tensor clock = signal.clock({series.times, series.offsets});
  const Tensor values = signal.sample({clock, series.offsets}).value;
  const Tensor seen = at::isnan(series.values.detach()).logical_not();
  const Tensor any = seen.slice(1, config.known_channels).any(1).contiguous();

  const Tensor times = series.times.contiguous(), offsets = series.offsets.contiguous();
  const double* t = times.data_ptr<double>();
  const int64_t* o = offsets.data_ptr<int64_t>();
  const bool* observed = any.data_ptr<bool>();
  Tensor gap = at::zeros_like(times), since = at::zeros_like(times);
  for (int64_t b = 0; b < series.samples(); ++b) {
    double last = t[o[b]];
    for (int64_t i = o[b] + 1; i < o[b + 1]; ++i) {
      if (observed[i - 1]) last = t[i - 1];
      gap.data_ptr<double>()[i] = (t[i] - t[i - 1]) / config.time_unit;
      since.data_ptr<double>()[i] = (t[i] - last) / config.time_unit;
    }
  }
  const auto ordered = [&](const Tensor& rows) {
    return on_device(rows.index_select(0, packed.packed_to_batch), device);
  };
  const Tensor gaps = gap.to(type).unsqueeze(1);
  return {.packed = pack(series.offsets, device),
          .input = ordered(at::cat({gaps, values, seen.to(type)}, 1)),
          .gap = ordered(gaps),
          .since = ordered(since.to(type).unsqueeze(1)),
          .observed = ordered(any)};
}

RowData select_samples(const RowData& rows, const std::vector<int64_t>& samples, const Tensor& offsets) {
  const at::Device device = rows.input.device();
  RowData result;
  result.packed = pack(offsets, device);
  const Tensor from = index_on_device(selected_rows(rows.packed, samples, result.packed), device);
  for (const auto member : {&RowData::input, &RowData::gap, &RowData::since, &RowData::observed})
    result.*member = (rows.*member).index_select(0, from);
  return result;
}

OutputRows output_rows(double time_unit, const RaggedTimes& times, const RaggedTimes& requested,
                       const RowData& rows) {
  const double *t = times.times.data_ptr<double>(), *r = requested.times.data_ptr<double>();
  const int64_t *o = times.offsets.data_ptr<int64_t>(), *ro = requested.offsets.data_ptr<int64_t>();
  OutputRows result;
  std::vector<double> elapsed;
  for (int64_t b = 0; b + 1 < times.offsets.size(0); ++b) {
    for (int64_t i = ro[b]; i < ro[b + 1]; ++i) {
      const int64_t row = std::max(std::upper_bound(t + o[b], t + o[b + 1], r[i]) - t - 1, o[b]);
      result.on_cpu.push_back(rows.packed.row(b, row - o[b]));
      elapsed.push_back((r[i] - t[row]) / time_unit);
    }
  }
  const at::Device device = rows.input.device();
  result.packed_rows = index_on_device(result.on_cpu, device);
  result.elapsed =
      on_device(at::tensor(elapsed, at::kDouble).to(rows.input.scalar_type()).unsqueeze(1), device);
  return result;
}

PickedRows picked_rows(const Packed& packed, const std::vector<int64_t>& packed_rows,
                       const at::Device& device) {
  std::vector<int64_t> sorted = packed_rows;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<int64_t> rows, output_to_picked;
  PickedRows result;
  result.begin = {0};
  for (int64_t n = 0; n < packed.steps(); ++n) {
    for (size_t i = rows.size(); i < sorted.size() && sorted[i] < packed.begin[n] + packed.active[n]; ++i)
      rows.push_back(sorted[i] - packed.begin[n]);
    result.begin.push_back(static_cast<int64_t>(rows.size()));
  }
  for (const int64_t row : packed_rows)
    output_to_picked.push_back(std::lower_bound(sorted.begin(), sorted.end(), row) - sorted.begin());
  result.rows = index_on_device(rows, device);
  result.output_to_picked = index_on_device(output_to_picked, device);
  return result;
}

}  // namespace fastweights
