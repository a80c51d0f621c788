#include <algorithm>
#include <cmath>
#include <numeric>

#include "architectures/baseline.h"
#include "architectures/linear_head.h"
#include "architectures/rocket_kernels.h"
#include "base/error.h"
#include "base/random.h"
#include "model/architecture_spec.h"
#include "model/config_names.h"

/// MiniROCKET: proportions of positive values of dilated convolutions, and a linear head.

namespace fastweights {
namespace {

// the products of all pairs of series take time and memory
constexpr int64_t kMostSeries = 10'000;

RocketPlan plan_of(const MiniRocket& config) {
  RocketPlan plan = rocket_plan(config.reference_length, config.features, config.dilations);
  plan.alternate = config.equal_lengths;
  return plan;
}

std::vector<FilledSeries> regular_series(const MiniRocket& config, const RaggedSeries& series) {
  std::vector<FilledSeries> all;
  for (int64_t b = 0; b < series.samples(); ++b)
    all.push_back(on_regular_grid(fill_series(series, b, config.rows.known_channels), config.time_unit));
  return all;
}

Tensor with_statics(const Tensor& features, const Tensor& statics) {
  return statics.defined() ? at::cat({features, statics.to(features.scalar_type())}, 1) : features;
}

class MiniRocketNetwork : public Baseline {
 public:
  MiniRocketNetwork(const ModelConfig& model, const MiniRocket& config, const ModelOptions& options)
      : Baseline(model) {
    const RocketPlan plan = plan_of(config);
    const at::TensorOptions type(options.type);
    const int64_t channels = model.channels - config.rows.known_channels,
                  features = plan.feature_count() + model.static_features;
    parameters_ = {{"biases", at::zeros({plan.feature_count()}, type)},
                   {"channels", rocket_channels(plan, channels, options.seed).to(options.type)},
                   {"head.weight", at::zeros({model.outputs, features}, type)},
                   {"head.bias", at::zeros({model.outputs}, type)}};
  }

  std::shared_ptr<Baseline> copy() const override { return std::make_shared<MiniRocketNetwork>(*this); }

  ModelOutput forward(const ModelConfig& model, const CheckedInput& checked,
                      const ForwardOptions&) const override {
    const MiniRocket& config = model.architecture.get<MiniRocket>();
    const Tensor features = rocket_features(plan_of(config), parameters_[1].second, parameters_[0].second,
                                            regular_series(config, checked.series));
    const Tensor all = with_statics(features, checked.static_features);
    return series_output(at::linear(all, parameters_[2].second, parameters_[3].second), checked.requested);
  }
};

// the given number of samples at random, in order
std::vector<int64_t> some_samples(int64_t all, int64_t most, uint64_t seed) {
  std::vector<int64_t> samples(static_cast<size_t>(all));
  std::iota(samples.begin(), samples.end(), int64_t{0});
  if (all <= most) return samples;
  Random random(seed);
  for (int64_t i = 0; i < most; ++i)
    std::swap(samples[static_cast<size_t>(i)],
              samples[static_cast<size_t>(i) + random.next() % static_cast<uint64_t>(all - i)]);
  samples.resize(static_cast<size_t>(most));
  std::sort(samples.begin(), samples.end());
  return samples;
}

FitData::Part select_part(const FitData::Part& part, const std::vector<int64_t>& samples) {
  const Tensor index = at::tensor(samples, at::kLong);
  const auto rows = [&](const Tensor& x) { return x.defined() ? x.index_select(0, index) : x; };
  return {select_samples(part.input, samples), rows(part.classes), rows(part.targets)};
}

std::string fit(const ModelConfig& model, const MiniRocket& config, const Network& network,
                const FitData& data) {
  FW_CHECK(config.head == RocketHead::Ridge || data.train.classes.defined(),
           "[config] linear_head logistic is for classes; use ridge");
  const NamedParameters& parameters = network.parameters();
  const RocketPlan plan = plan_of(config);
  const Tensor &biases = parameters[0].second, &channels = parameters[1].second;
  const int64_t samples = data.train.input.series.samples();
  const FitData::Part train = samples > kMostSeries
                                  ? select_part(data.train, some_samples(samples, kMostSeries, data.seed))
                                  : data.train;
  const std::vector<FilledSeries> series = regular_series(config, train.input.series);
  biases.copy_(rocket_biases(plan, channels, series, data.seed, biases.scalar_type()));
  const HeadData head_data = {
      with_statics(rocket_features(plan, channels, biases, series), train.input.static_features),
      train.classes, train.targets};
  std::optional<HeadData> validation;
  if (config.head == RocketHead::Logistic && data.validation) {
    const FitData::Part& part = *data.validation;
    validation = {
        with_statics(rocket_features(plan, channels, biases, regular_series(config, part.input.series)),
                     part.input.static_features),
        part.classes, part.targets};
  }
  const LinearHead head = config.head == RocketHead::Ridge
                              ? ridge_head(head_data, model.outputs)
                              : logistic_head(head_data, validation, model.outputs);
  parameters[2].second.copy_(head.weight);
  parameters[3].second.copy_(head.bias);
  const int64_t used = train.input.series.samples();
  return head.note + (used < samples ? message("; fitted to ", used, " of ", samples, " series") : "");
}

Architecture minirocket_for_data(const DataShape& shape) {
  return MiniRocket{.reference_length = std::max<int64_t>(shape.longest, 2),
                    .equal_lengths = shape.longest == shape.shortest,
                    .rows = {shape.known_channels},
                    .time_unit = shape.median_gap};
}

void visit_options(MiniRocket& o, Fields& visit) {
  visit("linear_head", o.head);
  visit("features", o.features);
  visit("dilations", o.dilations);
  visit("reference_length", o.reference_length);
  visit("equal_lengths", o.equal_lengths);
  visit("rows", o.rows);
  visit("time_unit", o.time_unit);
}

void check(const ModelConfig& model, const MiniRocket& o) {
  check_at_least("channels", model.channels, 1);
  check_at_least("outputs", model.outputs, 1);
  check_at_least("features", o.features, kRocketKernels);
  check_at_least("dilations", o.dilations, 1);
  check_at_least("reference_length", o.reference_length, 2);
  check_positive("time_unit", o.time_unit);
  check_known_channels(model, o.rows);
  check_count(static_cast<double>(o.features) * static_cast<double>(model.outputs), "parameters",
              {{"features", o.features}, {"outputs", model.outputs}});
}

std::shared_ptr<const Network> make(const ModelConfig& model, const MiniRocket& o,
                                    const ModelOptions& options) {
  return std::make_shared<MiniRocketNetwork>(model, o, options);
}

}  // namespace

const ArchitectureType& architecture_type(const MiniRocket&) {
  static const ArchitectureType kType = make_architecture_type<MiniRocket>(
      {.names = {{"minirocket", MiniRocket{}}},
       .fields = visit_options,
       .check = check,
       .make = make,
       .fit = fit,
       .tasks = Tasks::Series,
       .models = {{"minirocket", "convolutions with fixed kernels and a linear head; whole series",
                   "Dempster et al. 2021", minirocket_for_data}}});
  return kType;
}

}  // namespace fastweights
