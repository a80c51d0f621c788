#pragma once

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "fastweights/model.h"

/// Configurations with random values in every member.

namespace fastweights::testing {

// random values of every kind; which enumerators came up is kept
class RandomConfigs {
 public:
  explicit RandomConfigs(uint64_t seed) : random_(seed) {}

  ControlConfig control() {
    const Windows windows = coin() ? Windows(DurationWindows{number()})
                                   : Windows(PointWindows{whole(), one_of(WindowTail::Keep)});
    const LogSignatures signatures = {.depth = whole(),
                                      .windows = windows,
                                      .clock = one_of(WindowClock::Time),
                                      .last_window = one_of(LastWindow::Twice)};
    return {.path = alternative<ControlPath>({NaturalCubic{one_of(EndFilling::EndPoint)}, HermiteCubic{},
                                              Linear{}, Rectilinear{whole()}, Hold{}, signatures}),
            .never_observed = one_of(NeverObserved::Reject)};
  }

  SolverConfig solver() {
    const FixedSteps grid = {.size = number(),
                             .edges = one_of(StageEdges::Shortened),
                             .shortening = number(),
                             .stage_times = one_of(StageTimes::Single)};
    const AdaptiveSteps adaptive = {.rtol = number(),
                                    .atol = number(),
                                    .control = one_of(ErrorControl::Joint),
                                    .first_step = number(),
                                    .smallest_step = number(),
                                    .largest_step = coin() ? number() : HUGE_VAL,
                                    .max_steps = whole(),
                                    .first_step_gradient = one_of(FirstStepGradient::Through)};
    const std::vector<std::string> methods = method_names();
    return {.method = method(methods[random_.next() % methods.size()]),
            .steps = alternative<ModelSteps>(
                {ObservationSteps{whole(), number(), one_of(StageEdges::Shortened)},
                 RegularSteps{number(), one_of(StageEdges::Shortened)}, grid, adaptive}),
            .gradient = one_of(Gradient::Adjoint),
            .memory_limit = whole()};
  }

  FastWeights fast_weights() {
    return {.rule = word(),
            .drive = one_of(Drive::Derivative),
            .control = control(),
            .solver = solver(),
            .backend = one_of(Backend::Cuda),
            .hidden_size = whole(),
            .heads = whole(),
            .key_width = whole(),
            .value_width = whole(),
            .feed_forward_size = whole(),
            .static_hidden_size = whole(),
            .layers = whole(),
            .layer_input = one_of(LayerInput::Update),
            .residual = coin(),
            .value_norm = coin(),
            .initial = one_of(InitialWeights::FirstObservation),
            .query = one_of(QueryTime::FirstObservation),
            .read = one_of(Read::Transposed),
            .learning_rate = one_of(LearningRate::Raw),
            .value_activation = one_of(ValueActivation::None),
            .dropout = number(),
            .value_dropout = number(),
            .time_unit = number(),
            .deterministic = coin(),
            .unused_layer = coin()};
  }

  NeuralCde neural_cde() {
    return {.control = control(),
            .solver = solver(),
            .backend = one_of(Backend::Cuda),
            .field = {.hidden_size = whole(),
                      .layers = whole(),
                      .form = one_of(FieldForm::RankOne),
                      .end = one_of(FieldEnd::TanhHidden),
                      .tied = coin()},
            .hidden_size = whole(),
            .static_hidden_size = whole(),
            .dropout = number(),
            .time_unit = number()};
  }

  OdeRnn ode_rnn() {
    return {.control = control(),
            .solver = solver(),
            .field = {.hidden_size = whole(), .layers = whole()},
            .rows = {.input = one_of(RowInput::PublishedInPlace),
                     .values_only = coin(),
                     .known_channels = whole()},
            .hidden_size = whole()};
  }

  OdeRfwp ode_rfwp() {
    return {.form = RfwpForm::Latent,
            .rule = word(),
            .control = control(),
            .solver = solver(),
            .rows = {.order = one_of(UpdateOrder::DataFirst), .known_channels = whole()},
            .latent = {.divergence = number()},
            .heads = whole()};
  }

  LatentOde latent_ode() {
    return {.latent = {.size = whole(), .divergence = number(), .reconstruction = number()}};
  }

  Architecture architecture() {
    switch (random_.next() % 5) {
      case 0:
        return neural_cde();
      case 1:
        return ode_rnn();
      case 2:
        return ode_rfwp();
      case 3:
        return latent_ode();
      default:
        return fast_weights();
    }
  }

  ModelConfig config() {
    return {
        .channels = whole(), .static_features = whole(), .outputs = whole(), .architecture = architecture()};
  }

  size_t enumerators_seen() const { return seen_.size(); }

 private:
  // of an enumeration by its last enumerator
  template <typename E>
  E one_of(E last) {
    const auto value = static_cast<int>(random_.next() % (static_cast<uint64_t>(last) + 1));
    seen_.insert({typeid(E).name(), value});
    return static_cast<E>(value);
  }
  template <typename Variant>
  Variant alternative(const std::vector<Variant>& all) {
    const auto index = static_cast<int>(random_.next() % all.size());
    seen_.insert({typeid(Variant).name(), index});
    return all[static_cast<size_t>(index)];
  }
  bool coin() { return random_.next() % 2 == 0; }
  int64_t whole() { return static_cast<int64_t>(random_.next() >> (random_.next() % 64)); }
  // of all sizes, with all 53 bits
  double number() { return std::ldexp(random_.uniform(-1, 1), static_cast<int>(random_.next() % 200) - 100); }
  std::string word() {
    const char* words[] = {"", "rk4", "mine", "quote\"d", "back\\slash", "line\nbreak", "\xc3\xbc", "\t"};
    return words[random_.next() % 8];
  }

  Random random_;
  std::set<std::pair<std::string, int>> seen_;
};

}  // namespace fastweights::testing
