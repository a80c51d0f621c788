#include "fastweights/network.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace fastweights {

int64_t PreparedBatch::samples() const { return contents_->samples(); }

int64_t PreparedBatch::bytes() const { return contents_->bytes(); }

PreparedBatch PreparedBatch::select(const std::vector<int64_t>& samples) const {
  for (const int64_t b : samples)
    FW_CHECK(b >= 0 && b < this->samples(), "[model] sample ", b, " is out of range for ", this->samples(),
             " samples");
  return contents_->select(samples);
}

std::shared_ptr<PreparedBatch::Contents> PreparedBatch::Contents::with_capacity(const BatchRows&) const {
  FW_CHECK(false, "[model] passes on this batch cannot be recorded");
}

bool PreparedBatch::Contents::can_assign(const Contents&) const { return false; }

void PreparedBatch::Contents::assign(const Contents&) const {
  FW_CHECK(false, "[model] passes on this batch cannot be recorded");
}

std::optional<MemoryPlan> Network::plan(const PreparedBatch&) const { return {}; }

bool Network::can_record(const PreparedBatch&) const { return false; }

void refuse_batch() { FW_CHECK(false, "[model] this batch was prepared by a model of another architecture"); }

ModelOutput make_output(const Tensor& outputs, const RaggedTimes& times, std::vector<Tensor> w,
                        FastWeightState last) {
  ModelOutput result;
  result.outputs = outputs;
  result.times = times.times;
  result.offsets = times.offsets;
  result.w = std::move(w);
  result.last = std::move(last);
  result.backend = "reference";
  return result;
}

namespace {

// rows [M] with a value that is not finite, on the CPU; undefined if all are finite
Tensor rows_not_finite(const Tensor& x) {
  if (x.numel() == 0) return {};
  const Tensor values = x.detach();
  // a sum is cheap, but may overflow
  if (std::isfinite(values.sum().item<double>()) || at::isfinite(values).all().item<bool>()) return {};
  return at::isfinite(values).logical_not().reshape({values.size(0), -1}).any(-1).cpu();
}

}  // namespace

Status finite_status(const ModelOutput& output) {
  const at::NoGradGuard no_grad;
  std::vector<Tensor> checked = output.w;
  checked.push_back(output.outputs);
  Tensor bad;
  for (const Tensor& x : checked) {
    const Tensor rows = rows_not_finite(x);
    if (rows.defined()) bad = bad.defined() ? bad.logical_or(rows) : rows;
  }
  if (!bad.defined()) return {};
  const int64_t row = at::nonzero(bad)[0].item<int64_t>();
  const Tensor offsets = output.offsets.contiguous();
  const int64_t* o = offsets.data_ptr<int64_t>();
  const int64_t b = std::upper_bound(o, o + offsets.size(0), row) - o - 1;
  double largest = 0;
  for (const Tensor& w : output.w) largest = std::fmax(largest, w[row].abs().max().item<double>());
  return {Outcome::NotFinite, b, output.times[row].item<double>(), 0, largest};
}

std::vector<int64_t> selected_rows(const Tensor& offsets, const std::vector<int64_t>& samples) {
  const Tensor contiguous = offsets.contiguous();
  const int64_t* o = contiguous.data_ptr<int64_t>();
  std::vector<int64_t> rows;
  for (const int64_t b : samples) {
    for (int64_t i = o[b]; i < o[b + 1]; ++i) rows.push_back(i);
  }
  return rows;
}

namespace {

Tensor selected_offsets(const Tensor& offsets, const std::vector<int64_t>& samples) {
  const Tensor contiguous = offsets.contiguous();
  const int64_t* o = contiguous.data_ptr<int64_t>();
  std::vector<int64_t> result = {0};
  for (const int64_t b : samples) result.push_back(result.back() + o[b + 1] - o[b]);
  return at::tensor(result, at::kLong);
}

}  // namespace

RaggedTimes select_samples(const RaggedTimes& times, const std::vector<int64_t>& samples) {
  const Tensor rows = at::tensor(selected_rows(times.offsets, samples), at::kLong);
  return {times.times.index_select(0, rows), selected_offsets(times.offsets, samples)};
}

ModelInput select_samples(const ModelInput& input, const std::vector<int64_t>& samples) {
  const Tensor which = at::tensor(samples, at::kLong);
  const RaggedSeries& series = input.series;
  const Tensor rows = at::tensor(selected_rows(series.offsets, samples), at::kLong);
  ModelInput result;
  result.series = {series.values.index_select(0, rows), series.times.index_select(0, rows),
                   selected_offsets(series.offsets, samples)};
  if (input.static_features.defined()) result.static_features = input.static_features.index_select(0, which);
  if (input.output_times) result.output_times = select_samples(*input.output_times, samples);
  if (input.start) {
    FastWeightState start = {{}, input.start->t.index_select(0, which)};
    for (const Tensor& w : input.start->w) start.w.push_back(w.index_select(0, which));
    result.start = start;
  }
  return result;
}

}  // namespace fastweights
