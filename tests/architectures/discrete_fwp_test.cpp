#include "architectures/plain_rows.h"
#include "model/config_names.h"

namespace fastweights::testing {
namespace {

Tensor norm(Weights& weights, const std::string& name, const Tensor& x) {
  const Tensor centred = x - x.mean();
  return weights.at(name + ".weight") * centred / at::sqrt(centred.square().mean() + 1e-5) +
         weights.at(name + ".bias");
}

// what the slow net says to a head at a row
struct Said {
  Tensor q, k, v, b;
};

Said said(const Tensor& numbers) {
  const int64_t h = numbers.size(0) / 3;
  return {numbers.slice(0, 0, h), numbers.slice(0, h, 2 * h), numbers.slice(0, 2 * h, 3 * h),
          numbers.slice(0, 3 * h)};
}

// y and W behind each row, of one head or of all
struct Fast {
  std::vector<Tensor> y, w;
};

// Katharopoulos et al. 2020, equation 9: attention with weights f(q) . f(k), over all rows so far
Fast linear_attention(const std::vector<Tensor>& rows) {
  const auto f = [](const Tensor& x) { return at::where(x > 0, x + 1, at::exp(x)); };
  Fast result;
  for (size_t n = 0; n < rows.size(); ++n) {
    Tensor above = at::zeros_like(said(rows[n]).v), below = at::zeros({}, at::kDouble), w = below;
    for (size_t m = 0; m <= n; ++m) {
      const Said then = said(rows[m]);
      const Tensor weight = f(said(rows[n]).q).dot(f(then.k));
      above = above + weight * then.v;
      below = below + weight;
      w = w + at::outer(then.v, f(then.k));
    }
    result.y.push_back(above / (below + 1e-6));
    result.w.push_back(w);
  }
  return result;
}

// Schlag et al. 2021, equations 23 to 25: W behind a row
Tensor delta_rule(const Tensor& w, const Said& now) {
  const Tensor k = at::softmax(now.k, 0);
  return w + at::sigmoid(now.b) * at::outer(now.v - w.mv(k), k);
}

Tensor read(const Tensor& w, const Said& now) { return w.mv(at::softmax(now.q, 0)); }

Fast delta_net(const std::vector<Tensor>& rows) {
  const int64_t h = rows[0].size(0) / 3;
  Tensor w = at::zeros({h, h}, at::kDouble);
  Fast result;
  for (const Tensor& numbers : rows) {
    w = delta_rule(w, said(numbers));
    result.y.push_back(read(w, said(numbers)));
    result.w.push_back(w);
  }
  return result;
}

// fast weights of a block from what the slow net says to all heads at each row
using FastNet = std::function<Fast(Weights& weights, const std::string& name, const std::vector<Tensor>& rows,
                                   int64_t heads)>;

FastNet each_head(const std::function<Fast(const std::vector<Tensor>& rows)>& head) {
  return [head](Weights&, const std::string&, const std::vector<Tensor>& rows, int64_t heads) {
    std::vector<std::vector<Tensor>> y(rows.size()), w(rows.size());
    for (int64_t h = 0; h < heads; ++h) {
      std::vector<Tensor> mine;
      for (const Tensor& numbers : rows) mine.push_back(numbers.chunk(heads)[h]);
      const Fast found = head(mine);
      for (size_t n = 0; n < rows.size(); ++n) {
        y[n].push_back(found.y[n]);
        w[n].push_back(found.w[n]);
      }
    }
    Fast result;
    for (size_t n = 0; n < rows.size(); ++n) {
      result.y.push_back(at::cat(y[n]));
      result.w.push_back(at::stack(w[n]));
    }
    return result;
  };
}

// Irie et al. 2021, section 3.2: the slow net hears what the heads said before
Fast recurrent(Weights& weights, const std::string& name, const std::vector<Tensor>& rows, int64_t heads) {
  const int64_t h = rows[0].size(0) / heads / 3;
  std::vector<Tensor> w(heads, at::zeros({h, h}, at::kDouble));
  Tensor y = at::zeros({heads * h}, at::kDouble);
  Fast result;
  for (const Tensor& numbers : rows) {
    const auto now = (numbers + layer(weights, name + ".again", at::tanh(y))).chunk(heads);
    std::vector<Tensor> ys;
    for (int64_t i = 0; i < heads; ++i) {
      w[i] = delta_rule(w[i], said(now[i]));
      ys.push_back(read(w[i], said(now[i])));
    }
    y = at::cat(ys);
    result.y.push_back(y);
    result.w.push_back(at::stack(w));
  }
  return result;
}

// pre-norm blocks, as in a transformer
Equations blocks(const DiscreteFwp& config, const FastNet& fast_net) {
  return [=](Weights& weights, const std::vector<Tensor>& rows, const Tensor& features) {
    PlainStates result;
    std::vector<Tensor>& x = result.states;
    for (const Tensor& row : rows) {
      x.push_back(layer(weights, "embed", row));
      if (features.defined()) x.back() = x.back() + static_net(weights, features);
    }
    for (int64_t l = 0; l < config.layers; ++l) {
      const std::string name = "layers." + std::to_string(l), ff = name + ".feed_forward";
      std::vector<Tensor> numbers;
      for (const Tensor& state : x)
        numbers.push_back(layer(weights, name + ".slow", norm(weights, name + ".norm", state)));
      const Fast fast = fast_net(weights, name, numbers, config.heads);
      for (size_t n = 0; n < x.size(); ++n) {
        x[n] = x[n] + layer(weights, name + ".out", fast.y[n]);
        const Tensor hidden = at::relu(layer(weights, ff + ".in", norm(weights, ff + ".norm", x[n])));
        x[n] = x[n] + layer(weights, ff + ".out", hidden);
      }
      result.w = fast.w;
    }
    return result;
  };
}

ModelConfig config_of(RowMemory memory, int64_t layers, int64_t static_features) {
  return row_config(DiscreteFwp{.memory = memory, .heads = 2, .feed_forward_size = 7}, layers,
                    static_features);
}

std::string expect_discrete_equations(const ModelConfig& config) {
  const FastNet recurrent_net = recurrent;
  const auto& options = config.architecture.get<DiscreteFwp>();
  const FastNet net = options.memory == RowMemory::Sum     ? each_head(linear_attention)
                      : options.memory == RowMemory::Delta ? each_head(delta_net)
                                                           : recurrent_net;
  return expect_equations(config, blocks(options, net));
}

class DiscreteFwps : public ::testing::TestWithParam<RowMemory> {};

TEST_P(DiscreteFwps, IsItsEquations) { expect_discrete_equations(config_of(GetParam(), 1, 0)); }

TEST_P(DiscreteFwps, BlocksStackAndStaticFeaturesAreAdded) {
  expect_discrete_equations(config_of(GetParam(), 2, 4));
}

// products in chunks or kernels, whatever is faster
TEST_P(DiscreteFwps, FewWideHeadsHaveTheSameEquations) {
  ModelConfig config = config_of(GetParam(), 1, 0);
  EXPECT_EQ(expect_discrete_equations(config) == "reference", GetParam() == RowMemory::Recurrent);
  config.architecture.get<DiscreteFwp>().hidden_size = 41;
  config.architecture.get<DiscreteFwp>().heads = 1;
  EXPECT_EQ(expect_discrete_equations(config), "reference");
}

TEST_P(DiscreteFwps, SamplesDoNotKnowEachOther) { expect_samples_alone(config_of(GetParam(), 2, 4)); }

TEST_P(DiscreteFwps, WorksInSinglePrecision) { expect_single_precision(config_of(GetParam(), 2, 4)); }

INSTANTIATE_TEST_SUITE_P(All, DiscreteFwps,
                         ::testing::Values(RowMemory::Sum, RowMemory::Delta, RowMemory::Recurrent),
                         [](const auto& info) {
                           return info.param == RowMemory::Sum     ? "linear_transformer"
                                  : info.param == RowMemory::Delta ? "delta_net"
                                                                   : "recurrent_fwp";
                         });

TEST(DeltaNet, KernelsAndTheDefinitionAgree) {
  ModelConfig config = config_of(RowMemory::Delta, 2, 0);
  const ModelInput input = some_input(config);
  std::vector<Tensor> outputs, weights;
  for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
    config.architecture.get<DiscreteFwp>().backend = backend;
    const ModelOutput out = Model(config, {.type = at::kDouble}).forward(input);
    EXPECT_EQ(out.backend == "reference", backend == Backend::Reference) << out.backend;
    outputs.push_back(out.outputs.detach());
    weights.push_back(out.w[0].detach());
  }
  EXPECT_LT(relative_error(outputs[1], outputs[0]), 1e-12);
  EXPECT_LT(relative_error(weights[1], weights[0]), 1e-12);
}

}  // namespace
}  // namespace fastweights::testing
