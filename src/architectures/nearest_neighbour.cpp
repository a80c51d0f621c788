#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "architectures/baseline.h"
#include "architectures/dtw.h"
#include "architectures/filled.h"
#include "base/error.h"
#include "base/random.h"
#include "model/architecture_spec.h"
#include "tensor/parallel.h"

/// One nearest neighbour among stored series, by dynamic time warping or the Euclidean distance.

namespace fastweights {
namespace {

constexpr int64_t kNoSeries = -1;

WarpedSeries warped(const NearestNeighbour& config, const RaggedSeries& series, int64_t sample) {
  FilledSeries filled = fill_series(series, sample, config.rows.known_channels);
  if (config.length > 0) filled = resampled(std::move(filled), config.length);
  return {filled.length(), filled.channels(), {filled.values.begin(), filled.values.end()}};
}

std::vector<WarpedSeries> all_warped(const NearestNeighbour& config, const RaggedSeries& series) {
  std::vector<WarpedSeries> all;
  for (int64_t b = 0; b < series.samples(); ++b) all.push_back(warped(config, series, b));
  return all;
}

// stored series with what is computed of them once
struct Stored {
  std::vector<WarpedSeries> series;
  std::vector<Envelope> envelopes;

  explicit Stored(std::vector<WarpedSeries> all) : series(std::move(all)) {
    for (const WarpedSeries& one : series) envelopes.push_back(envelope_of(one));
  }
};

// the first of the nearest series other than `left_out`, in the order of their lower bounds
int64_t nearest_series(const Stored& stored, const WarpedSeries& query, double window,
                       int64_t left_out = kNoSeries) {
  std::vector<double> bounds;
  for (const Envelope& envelope : stored.envelopes) bounds.push_back(lower_bounds(query, envelope)[0]);
  std::vector<size_t> order(bounds.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return bounds[a] < bounds[b]; });
  double best = std::numeric_limits<double>::infinity();
  auto found = static_cast<int64_t>(stored.series.size());
  for (const size_t k : order) {
    if (bounds[k] > best) break;
    const auto index = static_cast<int64_t>(k);
    if (index == left_out) continue;
    const WarpedSeries& other = stored.series[k];
    const double distance = warped_distance(query, other, band_of(query, other, window),
                                            lower_bounds(query, stored.envelopes[k]), best);
    if (distance > best || (distance == best && index > found)) continue;
    best = distance;
    found = index;
  }
  return found < static_cast<int64_t>(stored.series.size()) ? found : kNoSeries;
}

class NeighbourNetwork : public Baseline {
 public:
  NeighbourNetwork(const ModelConfig& model, const NearestNeighbour& config, const ModelOptions& options)
      : Baseline(model) {
    const at::TensorOptions type(options.type);
    const int64_t channels = model.channels - config.rows.known_channels;
    parameters_ = {{"lengths", at::zeros({config.series}, type)},
                   {"outputs", at::zeros({config.series, model.outputs}, type)},
                   {"values", at::zeros({config.stored_rows, channels}, type)}};
  }

  std::shared_ptr<Baseline> copy() const override { return std::make_shared<NeighbourNetwork>(*this); }

  ModelOutput forward(const ModelConfig& model, const CheckedInput& checked,
                      const ForwardOptions&) const override {
    const auto& config = model.architecture.get<NearestNeighbour>();
    FW_CHECK(config.series > 0, "[model] a nearest neighbour needs series to search; fit it to data first");
    const Stored stored(stored_series());
    const std::vector<WarpedSeries> queries = all_warped(config, checked.series);
    Tensor found = at::zeros({checked.series.samples()}, at::kLong);
    parallel_for(checked.series.samples(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        found.data_ptr<int64_t>()[b] = nearest_series(stored, queries[static_cast<size_t>(b)], config.window);
    });
    return series_output(parameters_[1].second.index_select(0, found), checked.requested);
  }

 private:
  std::vector<WarpedSeries> stored_series() const {
    const Tensor lengths = parameters_[0].second.to(at::kLong),
                 values = parameters_[2].second.to(at::kFloat);  // [B], [N, C]
    std::vector<WarpedSeries> all;
    int64_t first = 0;
    for (int64_t b = 0; b < lengths.size(0); ++b) {
      const int64_t length = lengths[b].item<int64_t>();
      const Tensor own = values.slice(0, first, first + length).t().contiguous();  // [C, L]
      all.push_back({length, own.size(0), {own.data_ptr<float>(), own.data_ptr<float>() + own.numel()}});
      first += length;
    }
    return all;
  }
};

// the share of training series whose neighbour among the others has their class; of at most some hundreds
double confidence_of(const NearestNeighbour& config, const Stored& stored, const Tensor& classes,
                     uint64_t seed) {
  constexpr size_t kMost = 256;
  std::vector<int64_t> some(stored.series.size());
  std::iota(some.begin(), some.end(), int64_t{0});
  Random random(seed);
  for (size_t i = 0; i < std::min(kMost, some.size()); ++i)
    std::swap(some[i], some[i + random.next() % (some.size() - i)]);
  some.resize(std::min(kMost, some.size()));
  std::vector<int64_t> right(some.size(), 0);
  const int64_t* truth = classes.data_ptr<int64_t>();
  parallel_for(static_cast<int64_t>(some.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t own = some[static_cast<size_t>(i)];
      const int64_t other =
          nearest_series(stored, stored.series[static_cast<size_t>(own)], config.window, own);
      right[static_cast<size_t>(i)] = other != kNoSeries && truth[other] == truth[own] ? 1 : 0;
    }
  });
  const double count = std::accumulate(right.begin(), right.end(), 0.0);
  return (count + 1) / (static_cast<double>(right.size()) + 2);
}

// logits that give the class of a neighbour this probability, and all others the same: [B, O]
Tensor class_logits(const Tensor& classes, int64_t outputs, double confidence) {
  // the class of the neighbour stays the most probable one, even if that is rarely right
  constexpr double kLeast = 0.01;
  const double others = static_cast<double>(std::max<int64_t>(outputs - 1, 1));
  const double own = std::max(std::log(confidence * others / (1 - confidence)), kLeast);
  if (outputs == 1) return own * (2 * classes.to(at::kDouble) - 1).unsqueeze(1);
  return own * at::one_hot(classes, outputs).to(at::kDouble);
}

std::string fit(const ModelConfig& model, const NearestNeighbour& config, const Network& network,
                const FitData& data) {
  const Stored stored(all_warped(config, data.train.input.series));
  std::vector<Tensor> lengths, values;
  for (const WarpedSeries& series : stored.series) {
    lengths.push_back(at::full({1}, series.length, at::kDouble));
    values.push_back(at::tensor(series.values, at::kFloat).view({series.channels, series.length}).t());
  }
  Tensor outputs;
  std::string note;
  if (data.train.classes.defined()) {
    const double confidence = confidence_of(config, stored, data.train.classes, data.seed);
    outputs = class_logits(data.train.classes, model.outputs, confidence);
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", confidence);
    note = message("probability of a neighbour's class, by leaving one out: ", text);
  } else {
    outputs = at::nan_to_num(data.train.targets, 0.0);
  }
  const NamedParameters& parameters = network.parameters();
  parameters[0].second.copy_(at::cat(lengths));
  parameters[1].second.copy_(outputs);
  parameters[2].second.copy_(at::cat(values));
  return note;
}

template <bool euclidean>
Architecture neighbour_for_data(const DataShape& shape) {
  NearestNeighbour o = {.series = shape.series, .stored_rows = shape.rows, .rows = {shape.known_channels}};
  if (euclidean) {
    o.window = 0;
    o.length = std::max<int64_t>(shape.longest, 2);
    o.stored_rows = o.series * o.length;
  }
  return o;
}

void visit_options(NearestNeighbour& o, Fields& visit) {
  visit("window", o.window);
  visit("length", o.length);
  visit("series", o.series);
  visit("stored_rows", o.stored_rows);
  visit("rows", o.rows);
}

void check(const ModelConfig& model, const NearestNeighbour& o) {
  check_at_least("channels", model.channels, 1);
  check_at_least("outputs", model.outputs, 1);
  check_at_least("length", o.length, 0);
  check_at_least("series", o.series, 0);
  check_at_least("stored_rows", o.stored_rows, 0);
  FW_CHECK(o.window >= 0 && o.window <= 1, "[config] window must be between 0 and 1, got ", o.window);
  check_known_channels(model, o.rows);
  check_count(static_cast<double>(o.stored_rows) * static_cast<double>(model.channels), "stored values",
              {{"stored_rows", o.stored_rows}, {"channels", model.channels}});
}

std::shared_ptr<const Network> make(const ModelConfig& model, const NearestNeighbour& o,
                                    const ModelOptions& options) {
  return std::make_shared<NeighbourNetwork>(model, o, options);
}

}  // namespace

const ArchitectureType& architecture_type(const NearestNeighbour&) {
  static const ArchitectureType kType = make_architecture_type<NearestNeighbour>(
      {.names = {{"nearest_neighbour", NearestNeighbour{}}},
       .fields = visit_options,
       .check = check,
       .make = make,
       .fit = fit,
       .tasks = Tasks::Series,
       .models = {{"1nn-dtw", "the nearest training series by dynamic time warping; whole series",
                   "Shokoohi-Yekta et al. 2017, dependent warping", neighbour_for_data<false>},
                  {"1nn-ed", "the nearest training series by the Euclidean distance; whole series",
                   "Bagnall et al. 2017", neighbour_for_data<true>}}});
  return kType;
}

}  // namespace fastweights
