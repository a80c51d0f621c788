#include "model/config_names.h"
#include "systems/plain_rows.h"

namespace fastweights::testing {
namespace {

constexpr int64_t kHeads = 2, kWidth = 3;  // of hidden_size 6

Tensor norm(Weights& weights, const std::string& name, const Tensor& x) {
  const Tensor centred = x - x.mean();
  return weights.at(name + ".weight") * centred / at::sqrt(centred.square().mean() + 1e-5) +
         weights.at(name + ".bias");
}

// y of all rows of one head, given what the slow net says to the head at each
using Head = std::function<std::vector<Tensor>(const std::vector<Tensor>& said)>;

// Katharopoulos et al. 2020, equation 9: attention with weights f(q) . f(k), over all rows so far
std::vector<Tensor> linear_attention(const std::vector<Tensor>& said) {
  const auto f = [](const Tensor& x) { return at::where(x > 0, x + 1, at::exp(x)); };
  std::vector<Tensor> ys;
  for (size_t n = 0; n < said.size(); ++n) {
    Tensor above = at::zeros({kWidth}, at::kDouble), below = at::zeros({}, at::kDouble);
    for (size_t m = 0; m <= n; ++m) {
      const Tensor weight = f(said[n].slice(0, 0, kWidth)).dot(f(said[m].slice(0, kWidth, 2 * kWidth)));
      above = above + weight * said[m].slice(0, 2 * kWidth, 3 * kWidth);
      below = below + weight;
    }
    ys.push_back(above / (below + 1e-6));
  }
  return ys;
}

// Schlag et al. 2021, equations 23 to 25: W behind a row
Tensor delta_rule(const Tensor& w, const Tensor& said) {
  const Tensor k = at::softmax(said.slice(0, kWidth, 2 * kWidth), 0);
  const Tensor v = said.slice(0, 2 * kWidth, 3 * kWidth);
  return w + at::sigmoid(said[3 * kWidth]) * at::outer(v - w.mv(k), k);
}

Tensor read(const Tensor& w, const Tensor& said) { return w.mv(at::softmax(said.slice(0, 0, kWidth), 0)); }

std::vector<Tensor> delta_net(const std::vector<Tensor>& said) {
  Tensor w = at::zeros({kWidth, kWidth}, at::kDouble);
  std::vector<Tensor> ys;
  for (const Tensor& numbers : said) {
    w = delta_rule(w, numbers);
    ys.push_back(read(w, numbers));
  }
  return ys;
}

// fast weights of a block: y of each row from what the slow net says
using FastNet = std::function<std::vector<Tensor>(Weights& weights, const std::string& name,
                                                  const std::vector<Tensor>& said)>;

FastNet each_head(const Head& head) {
  return [head](Weights&, const std::string&, const std::vector<Tensor>& said) {
    std::vector<std::vector<Tensor>> heads;
    for (int64_t h = 0; h < kHeads; ++h) {
      std::vector<Tensor> mine;
      for (const Tensor& numbers : said) mine.push_back(numbers.chunk(kHeads)[h]);
      heads.push_back(head(mine));
    }
    std::vector<Tensor> ys;
    for (size_t n = 0; n < said.size(); ++n) ys.push_back(at::cat({heads[0][n], heads[1][n]}));
    return ys;
  };
}

// Irie et al. 2021, section 3.2: the slow net hears what the heads said before
std::vector<Tensor> recurrent(Weights& weights, const std::string& name, const std::vector<Tensor>& said) {
  std::vector<Tensor> w(kHeads, at::zeros({kWidth, kWidth}, at::kDouble)), ys;
  Tensor y = at::zeros({kHeads * kWidth}, at::kDouble);
  for (const Tensor& numbers : said) {
    const auto now = (numbers + layer(weights, name + ".again", at::tanh(y))).chunk(kHeads);
    for (int64_t h = 0; h < kHeads; ++h) w[h] = delta_rule(w[h], now[h]);
    y = at::cat({read(w[0], now[0]), read(w[1], now[1])});
    ys.push_back(y);
  }
  return ys;
}

// pre-norm blocks, as in a transformer
Equations blocks(int64_t layers, const FastNet& fast) {
  return [=](Weights& weights, const std::vector<Tensor>& rows, const Tensor& features) {
    std::vector<Tensor> x;
    for (const Tensor& row : rows) {
      x.push_back(layer(weights, "embed", row));
      if (features.defined()) x.back() = x.back() + static_net(weights, features);
    }
    for (int64_t l = 0; l < layers; ++l) {
      const std::string name = "layers." + std::to_string(l), ff = name + ".feed_forward";
      std::vector<Tensor> said;
      for (const Tensor& state : x)
        said.push_back(layer(weights, name + ".slow", norm(weights, name + ".norm", state)));
      const std::vector<Tensor> ys = fast(weights, name, said);
      for (size_t n = 0; n < x.size(); ++n) {
        x[n] = x[n] + layer(weights, name + ".out", ys[n]);
        const Tensor hidden = at::relu(layer(weights, ff + ".in", norm(weights, ff + ".norm", x[n])));
        x[n] = x[n] + layer(weights, ff + ".out", hidden);
      }
    }
    return x;
  };
}

ModelConfig config_of(System system, int64_t layers, int64_t static_features) {
  ModelConfig config = row_config(system, layers, static_features);
  config.heads = kHeads;
  config.feed_forward_size = 7;
  return config;
}

FastNet equations_of(System system) {
  if (system == System::LinearTransformer) return each_head(linear_attention);
  return system == System::DeltaNet ? each_head(delta_net) : FastNet(recurrent);
}

class DiscreteFwp : public ::testing::TestWithParam<System> {};

TEST_P(DiscreteFwp, IsItsEquations) {
  expect_equations(config_of(GetParam(), 1, 0), blocks(1, equations_of(GetParam())));
}

TEST_P(DiscreteFwp, BlocksStackAndStaticFeaturesAreAdded) {
  expect_equations(config_of(GetParam(), 2, 4), blocks(2, equations_of(GetParam())));
}

TEST_P(DiscreteFwp, SamplesDoNotKnowEachOther) { expect_samples_alone(config_of(GetParam(), 2, 4)); }

TEST_P(DiscreteFwp, WorksInSinglePrecision) { expect_single_precision(config_of(GetParam(), 2, 4)); }

INSTANTIATE_TEST_SUITE_P(Systems, DiscreteFwp,
                         ::testing::Values(System::LinearTransformer, System::DeltaNet, System::RecurrentFwp),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(DeltaNet, KernelsAndTheDefinitionAgree) {
  ModelConfig config = config_of(System::DeltaNet, 2, 0);
  const ModelInput input = some_input(config);
  std::vector<Tensor> outputs, weights;
  for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
    config.backend = backend;
    const ModelOutput out = SequenceModel(config, {.type = at::kDouble}).forward(input);
    EXPECT_EQ(out.backend == "reference", backend == Backend::Reference) << out.backend;
    outputs.push_back(out.outputs.detach());
    weights.push_back(out.w[0].detach());
  }
  EXPECT_LT(relative_error(outputs[1], outputs[0]), 1e-12);
  EXPECT_LT(relative_error(weights[1], weights[0]), 1e-12);
}

}  // namespace
}  // namespace fastweights::testing
