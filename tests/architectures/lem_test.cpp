#include "architectures/plain_rows.h"

namespace fastweights::testing {
namespace {

// Rusch et al. 2022, section 2, with a time step of 1
std::vector<Tensor> lem(Weights& weights, const std::string& name, const std::vector<Tensor>& rows,
                        Tensor y) {
  const auto v = [&](int64_t i, const Tensor& u) { return layer(weights, name + ".input", u).chunk(4)[i]; };
  const auto w = [&](int64_t i) { return weights.at(name + ".from_y.weight").chunk(3)[i]; };
  Tensor z = at::zeros_like(y);
  std::vector<Tensor> states;
  for (const Tensor& u : rows) {
    const Tensor dt = at::sigmoid(w(0).mv(y) + v(0, u)), dt_bar = at::sigmoid(w(1).mv(y) + v(1, u));
    z = (1 - dt) * z + dt * at::tanh(w(2).mv(y) + v(2, u));
    y = (1 - dt_bar) * y + dt_bar * at::tanh(weights.at(name + ".from_z.weight").mv(z) + v(3, u));
    states.push_back(y);
  }
  return states;
}

TEST(LongExpressiveMemory, IsItsEquations) {
  expect_equations(row_config(Recurrent{.cell = RecurrentCell::Lem}, 1, 0),
                   [](Weights& weights, const std::vector<Tensor>& rows, const Tensor&) {
                     return PlainStates{lem(weights, "layers.0", rows, at::zeros({6}, at::kDouble)), {}};
                   });
}

TEST(LongExpressiveMemory, LayersStackAndTheFirstKnowsStaticFeatures) {
  expect_equations(row_config(Recurrent{.cell = RecurrentCell::Lem}, 2, 4),
                   [](Weights& weights, const std::vector<Tensor>& rows, const Tensor& features) {
                     const auto first = lem(weights, "layers.0", rows, static_net(weights, features));
                     return PlainStates{lem(weights, "layers.1", first, at::zeros({6}, at::kDouble)), {}};
                   });
}

TEST(LongExpressiveMemory, SamplesDoNotKnowEachOther) {
  expect_samples_alone(row_config(Recurrent{.cell = RecurrentCell::Lem}, 2, 4));
}

TEST(LongExpressiveMemory, WorksInSinglePrecision) {
  expect_single_precision(row_config(Recurrent{.cell = RecurrentCell::Lem}, 2, 4));
}

}  // namespace
}  // namespace fastweights::testing
