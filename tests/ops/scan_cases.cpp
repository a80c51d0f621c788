#include "ops/scan_cases.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>

#include "base/error.h"
#include "support/support.h"
#include "tensor/autograd.h"
#include "tensor/runtime.h"

namespace fastweights::testing {
namespace {

bool oja_rule(const Rule& rule) { return rule.name == "oja" || rule.name == "oja_softmax"; }

Tensor integers(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

// random numbers in float32 precision, one seed after another
struct Source {
  uint64_t seed;
  at::ScalarType type;

  Tensor operator()(at::IntArrayRef shape) { return random(shape, seed++ * 7919); }
  Tensor rounded(const Tensor& x) const { return x.to(at::kFloat).to(type); }
};

struct Times {
  Tensor offsets, output_steps, output_offsets;
};

Times times_of(const ScanCase& c) {
  std::vector<int64_t> offsets = {0}, outputs, output_offsets = {0};
  for (size_t b = 0; b < c.steps.size(); ++b) {
    const int64_t n = c.steps[b];
    offsets.push_back(offsets.back() + n);
    if (c.outputs_at == OutputsAt::Ends) {
      outputs.push_back(n);
    } else if (b % 3 == 0) {
      for (int64_t at : {int64_t{0}, n / 2, n / 2, n}) outputs.push_back(at);
    } else if (b % 3 == 1) {
      outputs.push_back(n / 3);
    }
    output_offsets.push_back(static_cast<int64_t>(outputs.size()));
  }
  return {integers(offsets), integers(outputs), integers(output_offsets)};
}

// lengths of values for which Oja's steps do not overshoot
double value_scale(const ScanCase& c) {
  return oja_rule(c.rule) ? 1.4 / std::sqrt(static_cast<double>(c.width)) : 2;
}

int64_t rows_of(Rows rows, int64_t stages) { return rows == Rows::Shared ? 1 : stages; }

Tensor leaf(const Tensor& x) { return x.defined() ? x.detach().clone().set_requires_grad(true) : x; }

using Leaves = std::vector<std::pair<std::string, Tensor>>;

ScanResult::Entry entry(const std::string& name, const Tensor& tensor) {
  const double largest = tensor.numel() > 0 ? tensor.abs().max().item<double>() : 0;
  return {name, tensor, largest > 0 ? largest : 1};
}

// what came out, and gradients with respect to what went in
ScanResult collected(const ScanOutput& out, const Leaves& leaves, const ScanOutput& weights) {
  ScanResult result = {{}, out.backend};
  std::vector<Tensor> outputs, factors, inputs;
  for (const auto& [name, tensor, factor] :
       {std::tuple("w", out.w, weights.w), {"y", out.y, weights.y}, {"dy", out.dy, weights.dy}}) {
    if (tensor.defined()) result.entries.push_back(entry(name, tensor.detach()));
    if (!factor.defined()) continue;
    outputs.push_back(tensor);
    factors.push_back(factor);
  }
  for (const auto& named : leaves) inputs.push_back(named.second);
  const std::vector<Tensor> gradients = vector_jacobian(outputs, inputs, factors);
  for (size_t i = 0; i < leaves.size(); ++i)
    result.entries.push_back(entry("gradient of " + leaves[i].first, gradients[i]));
  return result;
}

// projections of the slow net before their activation, [R, rows, H, D] or [R, rows, H]
struct Raw {
  Tensor k, v, beta;
};

Raw raw_program(const ScanFeatures& f) {
  const auto product = [&](const Tensor& z, const Tensor& weight, int64_t rows) {
    return at::matmul(z.slice(1, 0, rows).unsqueeze(2).unsqueeze(2), weight.transpose(-1, -2)).squeeze(3);
  };
  const Tensor first = f.z.slice(2, 0, f.k_weight.size(2)),
               last = f.z.slice(2, f.z.size(2) - f.v_weight.size(2));
  return {product(first, f.k_weight, f.key_rows), product(last, f.v_weight, f.value_rows),
          product(first, f.beta_weight.unsqueeze(1), f.key_rows).squeeze(-1)};
}

ScanInput formed(const Raw& raw, const ScanFeatures& f, const ProgramForms& forms) {
  ScanInput input;
  input.k = forms.key == KeyForm::Softmax ? at::softmax(raw.k, -1) : raw.k;
  input.v = forms.value == ValueForm::Tanh ? at::tanh(raw.v) : raw.v;
  input.beta = forms.rate == LearningRate::Sigmoid ? at::sigmoid(raw.beta) : raw.beta;
  if (f.v_mask.defined()) {
    std::vector<Tensor> rows;
    for (int64_t b = 0; b < f.w0.size(0); ++b) {
      const int64_t count = (f.offsets[b + 1] - f.offsets[b]).item<int64_t>();
      rows.push_back(f.v_mask[b].expand({count, 1, f.w0.size(1), f.w0.size(2)}));
    }
    input.v = input.v * at::cat(rows, 0);
  }
  input.dt = f.dt;
  input.w0 = f.w0;
  input.offsets = f.offsets;
  input.output_steps = f.output_steps;
  input.output_offsets = f.output_offsets;
  return input;
}

Leaves leaves_of(ScanFeatures& f) {
  Leaves named;
  for (const auto& [name, tensor] : {std::pair("z", &f.z),
                                     {"k_weight", &f.k_weight},
                                     {"beta_weight", &f.beta_weight},
                                     {"v_weight", &f.v_weight},
                                     {"dt", &f.dt},
                                     {"w0", &f.w0}}) {
    *tensor = leaf(*tensor);
    named.emplace_back(name, *tensor);
  }
  return named;
}

// Sums of numbers of either sign cancel, and rounding is measured by what they are sums of. Gradients of
// weights are sums over the steps ...
double scale_of_weight(const Tensor& grad_raw, const Tensor& features) {
  const Tensor grad = grad_raw.dim() == 3 ? grad_raw.unsqueeze(-1) : grad_raw;
  const Tensor z = features.slice(1, 0, grad.size(1));
  return at::einsum("rphd,rpi->hdi", {grad.abs(), z.abs()}).max().item<double>();
}

// ... and of dt over heads and stages: a longer step is one with higher rates
double scale_of_dt(const Tensor& dt, const Tensor& beta, const Tensor& grad_beta) {
  if (dt.numel() == 0) return 0;
  return ((beta * grad_beta).abs().sum({1, 2}) / dt).max().item<double>();
}

void measure(ScanResult& result, const std::string& name, double scale) {
  for (ScanResult::Entry& entry : result.entries) {
    if (entry.name == "gradient of " + name) entry.scale = std::max(entry.scale, scale);
  }
}

// a step rounds some twenty times in numbers of the size of the largest one (stages, dot products, sums), and
// the steps' errors, of either sign, add up like a random walk
double tolerance(const ScanCase& c, at::ScalarType type) {
  const double steps = static_cast<double>(*std::max_element(c.steps.begin(), c.steps.end()));
  const double rounding = type == at::kDouble ? 0x1p-53 : 0x1p-24;
  return 20 * (1 + std::sqrt(steps)) * rounding;
}

double error(const ScanResult::Entry& got, const ScanResult::Entry& expected) {
  if (got.name != expected.name || got.tensor.sizes() != expected.tensor.sizes()) return INFINITY;
  if (got.tensor.numel() == 0) return 0;
  const Tensor difference = (got.tensor.to(at::kDouble) - expected.tensor).abs();
  const double found = difference.max().item<double>() / expected.scale;
  return std::isnan(found) ? INFINITY : found;
}

}  // namespace

int64_t ScanCase::stages() const {
  const Tableau* tableau = std::get_if<Tableau>(&method);
  return tableau ? tableau->stages() : 1;
}

std::string ScanCase::name() const {
  const Tableau* tableau = std::get_if<Tableau>(&method);
  const auto rows = [](Rows r) { return r == Rows::Shared ? "1" : "S"; };
  std::string text =
      message(rule.name, ", ", tableau ? tableau->name : "flow", ", width ", width, ", heads ", heads,
              ", steps ", at::IntArrayRef(steps), ", rows of k, v, beta ", rows(keys), rows(values),
              rows(rates), outputs_at == OutputsAt::Ends ? ", W at the ends" : ", W here and there");
  if (queries > 0)
    text += message(", queries ", queries, read == Read::Plain ? " plain" : " transposed", " reads ",
                    static_cast<int>(reads));
  if (made)
    text += message(", made of ", made->keys, " and ", made->values, " of ", made->features, " features",
                    made->mask == Mask::None ? "" : ", masked", ", forms ", static_cast<int>(made->forms.key),
                    static_cast<int>(made->forms.value), static_cast<int>(made->forms.rate));
  return text;
}

std::vector<Method> fused_methods() {
  std::vector<Method> methods;
  for (const Tableau& t : all_tableaux()) {
    if (t.stages() <= 4) methods.push_back(t);
  }
  return methods;
}

std::vector<Method> fused_methods(const Rule& rule) {
  std::vector<Method> methods = fused_methods();
  // in place: g++ 12 warns of the absent text of a method otherwise
  if (rule.name != "oja_softmax") methods.emplace_back(std::in_place_type<Flow>);
  return methods;
}

ScanInput given_input(const ScanCase& c, at::ScalarType type) {
  Source random = {c.seed, type};
  const Times times = times_of(c);
  const int64_t samples = static_cast<int64_t>(c.steps.size()), rows = times.offsets[samples].item<int64_t>();
  const auto shape = [&](Rows r) { return std::vector<int64_t>{rows, rows_of(r, c.stages()), c.heads}; };
  const auto wide = [&](Rows r) {
    std::vector<int64_t> sizes = shape(r);
    sizes.push_back(c.width);
    return random(sizes);
  };
  ScanInput input;
  input.k = random.rounded(c.rule.key == KeyForm::Softmax ? at::softmax(3 * wide(c.keys), -1) : wide(c.keys));
  input.v = random.rounded(value_scale(c) * wide(c.values));
  input.beta = random.rounded(at::sigmoid(2 * random(shape(c.rates))));
  input.dt = random.rounded(0.6 + 0.4 * random({rows}));
  input.w0 = random.rounded(0.5 * random({samples, c.heads, c.width, c.width}));
  if (c.queries > 0) input.q = random.rounded(random({rows, c.stages(), c.queries, c.heads, c.width}));
  input.offsets = times.offsets;
  input.output_steps = times.output_steps;
  input.output_offsets = times.output_offsets;
  return input;
}

ScanFeatures features_input(const ScanCase& c, at::ScalarType type) {
  Source random = {c.seed, type};
  const Times times = times_of(c);
  const MadeOf& made = *c.made;
  const int64_t samples = static_cast<int64_t>(c.steps.size()), rows = times.offsets[samples].item<int64_t>();
  const double width = std::sqrt(static_cast<double>(c.width)),
               keys = std::sqrt(static_cast<double>(made.keys)),
               values = std::sqrt(static_cast<double>(made.values));
  const bool all_shared = c.keys == Rows::Shared && c.values == Rows::Shared && made.rows == Rows::Shared;
  ScanFeatures input = {};
  input.z = random.rounded(random({rows, all_shared ? 1 : c.stages(), made.features}));
  const double key_scale = made.forms.key == KeyForm::Softmax ? 4 / keys : 2 / (keys * width);
  input.k_weight = random.rounded(key_scale * random({c.heads, c.width, made.keys}));
  // a rate that is no sigmoid may be negative, and what it makes grow must not grow far
  const double rate_scale = made.forms.rate == LearningRate::Sigmoid ? 4 / keys : 0.5 / keys;
  input.beta_weight = random.rounded(rate_scale * random({c.heads, made.keys}));
  input.v_weight = random.rounded(1.5 * value_scale(c) / values * random({c.heads, c.width, made.values}));
  if (made.mask == Mask::Factors) {
    const Tensor chance = random({samples, c.heads, c.width});
    input.v_mask = random.rounded(at::where(chance < -0.4, at::zeros_like(chance), chance + 0.7));
  }
  input.key_rows = rows_of(c.keys, c.stages());
  input.value_rows = rows_of(c.values, c.stages());
  input.dt = random.rounded(0.6 + 0.4 * random({rows}));
  input.w0 = random.rounded(0.5 * random({samples, c.heads, c.width, c.width}));
  input.offsets = times.offsets;
  input.output_steps = times.output_steps;
  input.output_offsets = times.output_offsets;
  return input;
}

const Tensor& ScanResult::at(const std::string& name) const {
  for (const Entry& entry : entries) {
    if (entry.name == name) return entry.tensor;
  }
  throw std::out_of_range("no tensor " + name);
}

ScanOutput random_weights(const ScanInput& input, const ScanOptions& options, uint64_t seed) {
  Source random = {seed + 1000, input.w0.scalar_type()};
  const Tensor& w0 = input.w0;
  ScanOutput weights;
  weights.w = random.rounded(random({input.output_steps.size(0), w0.size(1), w0.size(2), w0.size(3)}));
  if (!input.q.defined()) return weights;
  std::vector<int64_t> shape = input.q.sizes().vec();
  shape.back() = w0.size(options.read == Read::Plain ? 2 : 3);
  const Tensor y = random.rounded(random(shape)), dy = random.rounded(random(shape));
  if (options.reads != ScanReads::Slopes) weights.y = y;
  if (options.reads != ScanReads::Weights) weights.dy = dy;
  return weights;
}

ScanOutput random_weights(const ScanFeatures& input, uint64_t seed) {
  ScanInput given;
  given.w0 = input.w0;
  given.output_steps = input.output_steps;
  return random_weights(given, {}, seed);
}

ScanResult run(const ScanInput& input, const ScanOptions& options, const ScanOutput& weights) {
  ScanInput given = input;
  Leaves leaves;
  for (const auto& [name, tensor] : {std::pair("k", &given.k),
                                     {"v", &given.v},
                                     {"beta", &given.beta},
                                     {"dt", &given.dt},
                                     {"w0", &given.w0},
                                     {"q", &given.q}}) {
    *tensor = leaf(*tensor);
    if (tensor->defined()) leaves.emplace_back(name, *tensor);
  }
  return collected(scan(given, options), leaves, weights);
}

ScanResult run(const ScanFeatures& input, const ProgramForms& forms, const ScanOptions& options,
               const ScanOutput& weights) {
  ScanFeatures features = input;
  const Leaves leaves = leaves_of(features);
  return collected(scan_features(features, forms, options), leaves, weights);
}

ScanOptions options_of(const ScanCase& c, Backend backend) {
  return {.rule = c.rule, .method = c.method, .read = c.read, .reads = c.reads, .backend = backend};
}

ScanResult run(const ScanCase& c, at::ScalarType type, Backend backend) {
  const ScanOptions options = options_of(c, backend);
  if (c.made) {
    const ScanFeatures input = features_input(c, type);
    return run(input, c.made->forms, options, random_weights(input, c.seed));
  }
  const ScanInput input = given_input(c, type);
  return run(input, options, random_weights(input, options, c.seed));
}

ScanResult definition(const ScanCase& c) {
  if (!c.made) {
    const ScanInput input = given_input(c, at::kDouble);
    ScanResult result = run(c, at::kDouble, Backend::Reference);
    measure(result, "dt", scale_of_dt(input.dt, input.beta, result.at("gradient of beta")));
    return result;
  }
  ScanFeatures features = features_input(c, at::kDouble);
  Leaves leaves = leaves_of(features);
  const size_t count = leaves.size();
  const Raw raw = raw_program(features);
  const ScanInput input = formed(raw, features, c.made->forms);
  leaves.insert(leaves.end(), {{"k", raw.k}, {"v", raw.v}, {"b", raw.beta}, {"beta", input.beta}});
  ScanResult result =
      collected(scan(input, options_of(c, Backend::Reference)), leaves, random_weights(features, c.seed));
  const Tensor z = features.z.detach(), first = z.slice(2, 0, c.made->keys),
               last = z.slice(2, c.made->features - c.made->values);
  measure(result, "k_weight", scale_of_weight(result.at("gradient of k"), first));
  measure(result, "beta_weight", scale_of_weight(result.at("gradient of b"), first));
  measure(result, "v_weight", scale_of_weight(result.at("gradient of v"), last));
  measure(result, "dt",
          scale_of_dt(features.dt.detach(), input.beta.detach(), result.at("gradient of beta")));
  result.entries.resize(result.entries.size() - leaves.size() + count);
  return result;
}

void expect_near(const ScanCase& c, const ScanResult& got, const ScanResult& expected, at::ScalarType type) {
  ASSERT_EQ(got.entries.size(), expected.entries.size());
  for (size_t i = 0; i < got.entries.size(); ++i)
    EXPECT_LT(error(got.entries[i], expected.entries[i]), tolerance(c, type))
        << got.entries[i].name << " in " << type;
}

void expect_same_bits(const ScanResult& got, const ScanResult& expected) {
  ASSERT_EQ(got.entries.size(), expected.entries.size());
  for (size_t i = 0; i < got.entries.size(); ++i)
    EXPECT_TRUE(at::equal(got.entries[i].tensor, expected.entries[i].tensor)) << got.entries[i].name;
}

Threads::Threads(int count) : before_(thread_count()) { set_thread_count(count); }
Threads::~Threads() { set_thread_count(before_); }

}  // namespace fastweights::testing
