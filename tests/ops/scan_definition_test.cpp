#include <cmath>

#include "fastweights/tensor.h"
#include "ops/scan/definition.h"
#include "ops/scan_cases.h"
#include "support/support.h"

/// The definition of scan against plain loops and the reference backend against the definition, the
/// flow against a matrix exponential, and their gradients against differences.

namespace fastweights::testing {
namespace {

// keys and values of different widths, programs per stage, queries
ScanInput oblong_input(const Rule& rule, int64_t stages, Read read) {
  const int64_t rows = 6, heads = 2, keys = 3, values = 4;
  ScanInput input;
  const Tensor k = random({rows, stages, heads, keys}, 1);
  input.k = rule.key == KeyForm::Softmax ? at::softmax(k, -1) : k;
  input.v = random({rows, 1, heads, values}, 2);
  input.beta = at::sigmoid(random({rows, stages, heads}, 3));
  input.dt = 0.6 + 0.4 * random({rows}, 4);
  input.w0 = random({3, heads, values, keys}, 5);
  input.q = random({rows, stages, 2, heads, read == Read::Plain ? keys : values}, 6);
  input.offsets = at::tensor({0, 4, 4, 6}, at::kLong);
  input.output_steps = at::tensor({0, 2, 2, 4, 1}, at::kLong);
  input.output_offsets = at::tensor({0, 4, 4, 5}, at::kLong);
  return input;
}

// dW/dt of one head, element by element
Tensor plain_slope(const std::string& rule, const Tensor& k, const Tensor& v, double beta, const Tensor& w) {
  const int64_t rows = v.size(0), columns = k.size(0);
  const auto key = k.accessor<double, 1>(), value = v.accessor<double, 1>();
  const auto weight = w.accessor<double, 2>();
  std::vector<double> left(rows), right(columns);
  for (int64_t i = 0; i < rows; ++i) {
    double read = 0;
    for (int64_t j = 0; j < columns; ++j) read += weight[i][j] * key[j];
    left[i] = rule == "delta_pre"    ? value[i] - read
              : rule == "delta_post" ? std::tanh(value[i] - read)
                                     : value[i];
  }
  double sum = 0;
  for (int64_t j = 0; j < columns; ++j) {
    double read = 0;
    for (int64_t i = 0; i < rows; ++i) read += weight[i][j] * value[i];
    right[j] = rule == "oja" ? key[j] - read : rule == "oja_softmax" ? std::exp(key[j] - read) : key[j];
    sum += right[j];
  }
  const Tensor slope = at::empty_like(w);
  auto out = slope.accessor<double, 2>();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      out[i][j] = beta * left[i] * (rule == "oja_softmax" ? right[j] / sum : right[j]);
  }
  return slope;
}

// sample after sample, head after head, step after step
ScanOutput plain_scan(const ScanInput& input, const std::string& rule, const Tableau& tableau, Read read) {
  const auto row_of = [](const Tensor& x, int64_t row, int64_t stage, int64_t head) {
    return x[row][x.size(1) == 1 ? 0 : stage][head];
  };
  std::vector<Tensor> outputs;
  std::vector<int64_t> shape = input.q.sizes().vec();
  shape.back() = input.w0.size(read == Read::Plain ? 2 : 3);
  ScanOutput out = {
      .w = {}, .y = at::empty(shape, at::kDouble), .dy = at::empty(shape, at::kDouble), .backend = {}};
  for (int64_t b = 0; b < input.w0.size(0); ++b) {
    const int64_t first = input.offsets[b].item<int64_t>(), last = input.offsets[b + 1].item<int64_t>();
    std::vector<Tensor> states = {input.w0[b].clone()};  // of each step, [H, V, K]
    for (int64_t row = first; row < last; ++row) {
      const Tensor next = states.back().clone();
      for (int64_t h = 0; h < input.w0.size(1); ++h) {
        std::vector<Tensor> slopes;
        for (int i = 0; i < tableau.stages(); ++i) {
          const double dt = input.dt[row].item<double>();
          Tensor w = states.back()[h].clone();
          for (int j = 0; j < i; ++j) w.add_(slopes[j], tableau.a[i][j] * dt);
          slopes.push_back(plain_slope(rule, row_of(input.k, row, i, h), row_of(input.v, row, i, h),
                                       row_of(input.beta, row, i, h).item<double>(), w));
          next[h].add_(slopes.back(), tableau.b[i] * dt);
          for (int64_t n = 0; n < 2; ++n) {
            const auto side = [&](const Tensor& m) { return read == Read::Plain ? m : m.t(); };
            out.y[row][i][n][h].copy_(at::mv(side(w), input.q[row][i][n][h]));
            out.dy[row][i][n][h].copy_(at::mv(side(slopes.back()), input.q[row][i][n][h]));
          }
        }
      }
      states.push_back(next);
    }
    for (int64_t m = input.output_offsets[b].item<int64_t>(); m < input.output_offsets[b + 1].item<int64_t>();
         ++m)
      outputs.push_back(states[input.output_steps[m].item<int64_t>()]);
  }
  out.w = at::stack(outputs);
  return out;
}

// six steps with values of order 1; methods of many stages have coefficients of order 10 that cancel
constexpr double kRounding = 1e-13;

TEST(ScanDefinition, IsPlainLoops) {
  for (const Rule& rule : all_rules()) {
    for (const Tableau& method : all_tableaux()) {
      for (const Read read : {Read::Plain, Read::Transposed}) {
        const ScanInput input = oblong_input(rule, method.stages(), read);
        const ScanOutput got =
            scan_definition(input, {.rule = rule, .method = method, .read = read, .reads = ScanReads::Both});
        const ScanOutput expected = plain_scan(input, rule.name, method, read);
        EXPECT_LT(relative_error(got.w, expected.w), kRounding) << rule.name << " " << method.name;
        EXPECT_LT(relative_error(got.y, expected.y), kRounding) << rule.name << " " << method.name;
        EXPECT_LT(relative_error(got.dy, expected.dy), kRounding) << rule.name << " " << method.name;
      }
    }
  }
}

// a scalar that depends on every output
Tensor weighted(const ScanOutput& out, const ScanOutput& weights) {
  return (out.w * weights.w).sum() + (out.y * weights.y).sum() + (out.dy * weights.dy).sum();
}

struct Member {
  const char* name;
  Tensor ScanInput::*member;
};
constexpr Member kDifferentiable[] = {{"k", &ScanInput::k},       {"v", &ScanInput::v},
                                      {"beta", &ScanInput::beta}, {"dt", &ScanInput::dt},
                                      {"w0", &ScanInput::w0},     {"q", &ScanInput::q}};

void expect_reference_is_the_definition(const ScanInput& input, ScanOptions options) {
  options.reads = ScanReads::Both;
  options.backend = Backend::Reference;
  const ScanOutput definition = scan_definition(input, options), reference = scan(input, options);
  EXPECT_EQ(reference.backend, "reference");
  const ScanOutput weights = random_weights(input, options);
  const ScanResult got = run(input, options, weights);
  // the same operations on the same values; only sums over the batch and over rows may be grouped otherwise
  EXPECT_LT(relative_error(reference.w, definition.w), 1e-15) << options.rule.name;
  EXPECT_LT(relative_error(reference.y, definition.y), 1e-15) << options.rule.name;
  EXPECT_LT(relative_error(reference.dy, definition.dy), 1e-15) << options.rule.name;
  for (const Member& m : kDifferentiable) {
    const auto loss = [&](const Tensor& x) {
      ScanInput moved = input;
      moved.*m.member = x;
      return weighted(scan_definition(moved, options), weights);
    };
    EXPECT_LT(relative_error(got.at(std::string("gradient of ") + m.name),
                             autograd_gradient(loss, input.*m.member)),
              kRounding)
        << options.rule.name << ", " << m.name;
  }
}

TEST(ScanDefinition, TheReferenceBackendIsIt) {
  for (const Rule& rule : all_rules()) {
    for (const Method& method : fused_methods(rule)) {
      for (const Read read : {Read::Plain, Read::Transposed}) {
        const Tableau* tableau = std::get_if<Tableau>(&method);
        expect_reference_is_the_definition(oblong_input(rule, tableau ? tableau->stages() : 1, read),
                                           {.rule = rule, .method = method, .read = read});
      }
    }
  }
}

void expect_gradients_are_differences(const ScanInput& input, ScanOptions options) {
  options.reads = ScanReads::Both;
  const ScanOutput weights = random_weights(input, options);
  const ScanResult got = run(input, options, weights);
  for (const Member& m : kDifferentiable) {
    const auto loss = [&](const Tensor& x) {
      ScanInput moved = input;
      moved.*m.member = x;
      return weighted(scan(moved, options), weights);
    };
    // steps of 1e-5 leave 1e-10 of third derivatives, and rounding 1e-11 of the loss
    EXPECT_LT(relative_error(got.at(std::string("gradient of ") + m.name),
                             central_difference(loss, input.*m.member, 1e-5)),
              1e-8)
        << options.rule.name << ", " << m.name;
  }
}

TEST(ScanDefinition, GradientsAreDifferences) {
  for (const Rule& rule : all_rules()) {
    for (const Tableau& method : {euler(), heun3()})
      expect_gradients_are_differences(oblong_input(rule, method.stages(), Read::Plain),
                                       {.rule = rule, .method = method, .backend = Backend::Reference});
  }
}

std::vector<Rule> linear_rules() { return {hebb(), oja(), delta_pre()}; }
std::vector<Rule> flow_rules() { return {hebb(), oja(), delta_pre(), delta_post()}; }

TEST(ScanFlow, GradientsOfTheDefinitionAreDifferences) {
  for (const Rule& rule : flow_rules()) {
    expect_gradients_are_differences(oblong_input(rule, 1, Read::Plain),
                                     {.rule = rule, .method = Flow{}, .backend = Backend::Reference});
  }
}

// M' = beta (s - M p) p^T as [M, 1]' = [M, 1] G
Tensor exponential_step(const Rule& rule, const Tensor& k, const Tensor& v, double beta, double dt,
                        const Tensor& w) {
  const bool oja = rule.name == "oja";
  const Tensor p = oja ? v : k, s = oja ? k : v, m = oja ? w.t() : w;
  const int64_t along = p.size(0), across = s.size(0);
  const Tensor g = at::zeros({along + across, along + across}, at::kDouble);
  if (rule.name != "hebb") g.slice(0, 0, along).slice(1, 0, along).copy_(-beta * outer_product(p, p));
  g.slice(0, along).slice(1, 0, along).copy_(beta * outer_product(s, p));
  const Tensor start = at::cat({m, at::eye(across, at::kDouble)}, 1);
  const Tensor end = at::matmul(start, at::matrix_exp(dt * g)).slice(1, 0, along);
  return oja ? end.t() : end;
}

TEST(ScanFlow, TheDefinitionIsAMatrixExponential) {
  for (const Rule& rule : linear_rules()) {
    ScanInput input = oblong_input(rule, 1, Read::Plain);
    input.output_steps = input.output_offsets = Tensor();
    const Tensor got = scan(input, {.rule = rule, .method = Flow{}}).w;
    for (const int64_t b : {0, 1, 2}) {
      for (const int64_t h : {0, 1}) {
        Tensor w = input.w0[b][h];
        for (int64_t row = input.offsets[b].item<int64_t>(); row < input.offsets[b + 1].item<int64_t>();
             ++row)
          w = exponential_step(rule, input.k[row][0][h], input.v[row][0][h],
                               input.beta[row][0][h].item<double>(), input.dt[row].item<double>(), w);
        EXPECT_LT(relative_error(got[b][h], w), 1e-14) << rule.name;
      }
    }
  }
}

// steps of `parts` equal parts each
ScanInput divided(const ScanInput& input, int64_t parts) {
  ScanInput fine = input;
  for (Tensor* rows : {&fine.k, &fine.v, &fine.beta, &fine.dt}) *rows = rows->repeat_interleave(parts, 0);
  fine.dt = fine.dt / static_cast<double>(parts);
  fine.offsets = input.offsets * parts;
  return fine;
}

TEST(ScanFlow, SmallStepsOfAMethodConvergeToIt) {
  for (const Rule& rule : {oja(), delta_pre(), delta_post()}) {
    ScanInput input = oblong_input(rule, 1, Read::Plain);
    input.q = input.output_steps = input.output_offsets = Tensor();
    const Tensor exact = scan(input, {.rule = rule, .method = Flow{}}).w;
    // each step as several
    const auto error = [&](int64_t parts) {
      return relative_error(scan(divided(input, parts), {.rule = rule, .method = rk4()}).w, exact);
    };
    const double coarse = error(8), fine = error(16);
    // order 4 divides by 16, and steps are not infinitely small
    EXPECT_LT(fine, coarse / 14) << rule.name << ": " << coarse;
    EXPECT_LT(fine, 1e-6) << rule.name;
    EXPECT_GT(coarse, 1e-13) << rule.name;
  }
}

TEST(ScanFlow, TwoHalvesAreAStep) {
  for (const Rule& rule : flow_rules()) {
    ScanInput input = oblong_input(rule, 1, Read::Plain);
    input.q = input.output_steps = input.output_offsets = Tensor();
    const ScanOptions options = {.rule = rule, .method = Flow{}};
    EXPECT_LT(relative_error(scan(divided(input, 2), options).w, scan(input, options).w), 1e-14) << rule.name;
  }
}

// one step: the query reads W after half of it, and the slope is the mean one
TEST(ScanFlow, QueriesReadTheMiddleAndTheMeanSlope) {
  for (const Rule& rule : flow_rules()) {
    ScanInput input = oblong_input(rule, 1, Read::Plain);
    const int64_t samples = input.w0.size(0);
    for (Tensor* rows : {&input.k, &input.v, &input.beta, &input.dt, &input.q})
      *rows = rows->slice(0, 0, samples).contiguous();
    input.offsets = at::arange(samples + 1, at::kLong);
    input.output_steps = input.output_offsets = Tensor();
    const ScanOptions options = {.rule = rule, .method = Flow{}, .reads = ScanReads::Both};
    const ScanOutput whole = scan(input, options);
    ScanInput first = input;
    first.dt = input.dt / 2;
    const Tensor middle = scan(first, options).w, slope = (whole.w - input.w0) / input.dt.view({-1, 1, 1, 1});
    const Tensor q = input.q.select(1, 0).select(1, 0);  // [B, H, K]
    EXPECT_LT(relative_error(whole.y.select(1, 0).select(1, 0), matvec(middle, q)), 1e-14) << rule.name;
    EXPECT_LT(relative_error(whole.dy.select(1, 0).select(1, 0), matvec(slope, q)), 1e-13) << rule.name;
  }
}

// one case with keys (Oja: values) of another length
struct ScaledCase {
  ScanCase c;
  double scale;

  ScanResult run(at::ScalarType type, Backend backend) const {
    ScanInput input = given_input(c, at::kDouble);
    Tensor& p = c.rule.name == "oja" ? input.v : input.k;
    p = (p * scale).to(at::kFloat);
    for (Tensor* x : {&input.k, &input.v, &input.beta, &input.dt, &input.w0, &input.q}) *x = x->to(type);
    const ScanOptions options = options_of(c, backend);
    return testing::run(input, options, random_weights(input, options));
  }
};

ScaledCase scaled_case(const Rule& rule, double scale) {
  return {{.rule = rule, .method = Flow{}, .width = 5, .heads = 3, .queries = 1, .reads = ScanReads::Both},
          scale};
}

// five steps; x = beta dt |p|^2 lies on both sides of where the kernels take a series, down to nothing
TEST(ScanFlow, KeysOfAnyLengthAreTheDefinition) {
  for (const Rule& rule : {oja(), delta_pre(), delta_post()}) {
    for (const double scale : {0.0, 1e-30, 1e-12, 3e-4, 1e-3, 3e-3, 0.03, 0.1, 0.3, 1.0, 3.0}) {
      const ScaledCase c = scaled_case(rule, scale);
      const ScanResult expected = c.run(at::kDouble, Backend::Reference);
      const ScanResult wide = c.run(at::kDouble, Backend::Cpu), narrow = c.run(at::kFloat, Backend::Cpu);
      // the definition itself loses digits of the derivative of psi, a difference divided by x
      const double factor = rule.name == "delta_post" ? 400 : 40;
      for (size_t i = 0; i < expected.entries.size(); ++i) {
        const Tensor& right = expected.entries[i].tensor;
        EXPECT_TRUE(at::isfinite(right).all().item<bool>());
        EXPECT_LT(relative_error(wide.entries[i].tensor, right), factor * 0x1p-53)
            << rule.name << ", " << scale << ": " << expected.entries[i].name;
        EXPECT_LT(relative_error(narrow.entries[i].tensor, right), factor * 0x1p-24)
            << rule.name << ", " << scale << ": " << expected.entries[i].name;
      }
    }
  }
}

// where all has decayed, the gradient of dt is what is left of a difference, but it is a number
TEST(ScanFlow, LongKeysHaveFiniteResultsAndGradients) {
  for (const Rule& rule : {oja(), delta_pre(), delta_post()}) {
    for (const double scale : {10.0, 1e3, 1e6}) {
      const ScaledCase c = scaled_case(rule, scale);
      for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
        for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
          const ScanResult got = c.run(type, backend);
          for (const auto& entry : got.entries)
            EXPECT_TRUE(at::isfinite(entry.tensor).all().item<bool>())
                << got.backend << ", " << rule.name << ", " << scale << ": " << entry.name << " in " << type;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fastweights::testing
