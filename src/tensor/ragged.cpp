#include "fastweights/tensor.h"

#include <atomic>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "tensor/parallel.h"

namespace fastweights {
namespace {

void check_offsets(const Tensor& offsets, int64_t rows, const char* who) {
  FW_CHECK(offsets.defined() && offsets.dim() == 1 && offsets.size(0) >= 1 &&
               offsets.scalar_type() == at::kLong && offsets.device().is_cpu() && offsets.is_contiguous(),
           "[", who, "] offsets must be a contiguous int64 tensor [B + 1] on the CPU");
  const int64_t* o = offsets.data_ptr<int64_t>();
  const int64_t samples = offsets.size(0) - 1;
  FW_CHECK(o[0] == 0, "[", who, "] offsets must start at 0, got ", o[0]);
  for (int64_t b = 0; b < samples; ++b) {
    FW_CHECK(o[b] <= o[b + 1], "[", who, "] offsets must not fall: sample ", b, " runs from row ", o[b],
             " to row ", o[b + 1]);
  }
  FW_CHECK(o[samples] == rows, "[", who, "] offsets must end at the number of rows ", rows, ", got ",
           o[samples]);
}

// one pass over all values: no early exit, so that the loop can run at the speed of memory
struct Oddities {
  std::atomic<bool> missing = false, infinite = false;
};

template <typename T>
void look_for_oddities(const Tensor& values, Oddities& found) {
  const T* v = values.data_ptr<T>();
  parallel_for(values.numel(), 1 << 16, [&](int64_t begin, int64_t end) {
    bool missing = false, infinite = false;
    for (int64_t i = begin; i < end; ++i) {
      missing |= v[i] != v[i];
      infinite |= std::abs(v[i]) > std::numeric_limits<T>::max();
    }
    if (missing) found.missing = true;
    if (infinite) found.infinite = true;
  });
}

}  // namespace

bool has_missing(const RaggedSeries& series, const char* who) {
  const Tensor values = series.values.detach().contiguous();
  Oddities found;
  if (values.scalar_type() == at::kFloat) {
    look_for_oddities<float>(values, found);
  } else {
    look_for_oddities<double>(values, found);
  }
  if (found.infinite) {
    const Tensor first = at::nonzero(at::isinf(values))[0];
    const int64_t row = first[0].item<int64_t>();
    const int64_t* o = series.offsets.data_ptr<int64_t>();
    int64_t b = 0;
    while (o[b + 1] <= row) ++b;
    FW_CHECK(false, "[", who, "] sample ", b, ": value ", row - o[b], " of channel ",
             first[1].item<int64_t>(), " is infinite; values must be finite, or NaN where missing");
  }
  return found.missing;
}

RaggedSeries ragged(const std::vector<Tensor>& times, const std::vector<Tensor>& values) {
  FW_CHECK(times.size() == values.size(), "[ragged] got times for ", times.size(), " series and values for ",
           values.size());
  FW_CHECK(!times.empty(), "[ragged] there must be at least one series");
  Tensor offsets = at::zeros({static_cast<int64_t>(times.size()) + 1}, at::kLong);
  std::vector<Tensor> rows;
  for (size_t b = 0; b < times.size(); ++b) {
    FW_CHECK(times[b].defined() && values[b].defined(), "[ragged] sample ", b, " has an undefined tensor");
    FW_CHECK(times[b].dim() == 1 && values[b].dim() == 2, "[ragged] sample ", b,
             ": times must be [L] and values [L, C], got ", times[b].sizes(), " and ", values[b].sizes());
    FW_CHECK(times[b].size(0) == values[b].size(0), "[ragged] sample ", b, " has ", times[b].size(0),
             " times and ", values[b].size(0), " rows of values");
    FW_CHECK(values[b].size(1) == values[0].size(1), "[ragged] sample ", b, " has ", values[b].size(1),
             " channels, sample 0 has ", values[0].size(1));
    offsets.data_ptr<int64_t>()[b + 1] = offsets.data_ptr<int64_t>()[b] + times[b].size(0);
    rows.push_back(times[b].to(at::kDouble));
  }
  return {.values = at::cat(values, 0), .times = at::cat(rows, 0), .offsets = offsets};
}

RaggedSeries shared_times(const Tensor& times, const Tensor& values) {
  FW_CHECK(times.defined() && values.defined(), "[shared_times] times or values are undefined");
  FW_CHECK(times.dim() == 1, "[shared_times] times must be [L], got ", times.sizes());
  FW_CHECK(values.dim() == 2 || values.dim() == 3, "[shared_times] values must be [B, L, C] or [L, C], got ",
           values.sizes());
  const int64_t length = times.size(0), samples = values.dim() == 3 ? values.size(0) : 1;
  FW_CHECK(values.size(-2) == length, "[shared_times] got ", length, " times and ", values.size(-2),
           " rows of values");
  return {.values = values.reshape({samples * length, values.size(-1)}),
          .times = times.to(at::kDouble).repeat({samples}),
          .offsets = at::arange(samples + 1, at::kLong) * length};
}

void check_series(const RaggedSeries& series, const char* who, int64_t smallest_length) {
  const Tensor& values = series.values;
  const Tensor& times = series.times;
  FW_CHECK(values.defined() && values.dim() == 2, "[", who, "] values must be [N, C], got ",
           values.defined() ? message(values.sizes()) : "nothing");
  FW_CHECK(values.scalar_type() == at::kFloat || values.scalar_type() == at::kDouble, "[", who,
           "] values must be float32 or float64, got ", values.scalar_type());
  FW_CHECK(values.size(1) > 0, "[", who, "] values must have at least one channel");
  FW_CHECK(values.device().is_cpu(), "[", who, "] values must be on the CPU, got ", values.device());
  FW_CHECK(
      times.defined() && times.dim() == 1 && times.scalar_type() == at::kDouble && times.device().is_cpu(),
      "[", who, "] times must be a float64 tensor [N] on the CPU");
  FW_CHECK(times.size(0) == values.size(0), "[", who, "] got ", times.size(0), " times and ", values.size(0),
           " rows of values");
  check_offsets(series.offsets, times.size(0), who);
  const Tensor contiguous = times.contiguous();
  const double* t = contiguous.data_ptr<double>();
  const int64_t* o = series.offsets.data_ptr<int64_t>();
  for (int64_t b = 0; b < series.samples(); ++b) {
    const int64_t length = o[b + 1] - o[b];
    FW_CHECK(length >= smallest_length, "[", who, "] sample ", b, " has ", length,
             length == 1 ? " point" : " points", ", at least ", smallest_length, " are needed");
    // one look at all of them; only if something is wrong, another one for what it is
    const double* own = t + o[b];
    bool good = length == 0 || std::isfinite(own[0]);
    for (int64_t i = 1; i < length; ++i)
      good &= (own[i] > own[i - 1]) & (own[i] <= std::numeric_limits<double>::max());
    for (int64_t i = 0; i < length && !good; ++i) {
      const double now = t[o[b] + i];
      FW_CHECK(std::isfinite(now), "[", who, "] sample ", b, ": time ", i, " is ", now,
               ", it must be finite");
      FW_CHECK(i == 0 || now > t[o[b] + i - 1], "[", who, "] sample ", b, ": times must increase, but time ",
               i, " is ", now, " after ", t[o[b] + i - 1]);
    }
  }
}

}  // namespace fastweights
