#include "fastweights/tools.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/lyndon.h"
#include "fastweights/control.h"
#include "fastweights/solve.h"
#include "selftest/definitions.h"
#include "selftest/engine_cases.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

constexpr const char* kRounding = "float64 rounding over some hundred operations";
constexpr const char* kSingleRounding = "float32 rounding of inputs and outputs; the sums are in float64";

Tensor random(at::IntArrayRef shape, int64_t seed) {
  // the same numbers with every LibTorch version
  int64_t size = 1;
  for (int64_t extent : shape) size *= extent;
  const Tensor i = at::arange(size, at::kDouble) + 1000.0 * static_cast<double>(seed);
  const Tensor wild = (i * 12.9898).sin() * 43758.5453;
  return (wild - wild.floor() - 0.5).reshape(shape) * 2;
}

Tensor irregular_times(int64_t count, int64_t seed) { return (random({count}, seed).abs() + 0.1).cumsum(0); }

double relative_error(const Tensor& got, const Tensor& expected) {
  const Tensor reference = expected.to(at::kDouble);
  const double scale = std::max(reference.abs().max().item<double>(), 1e-300);
  const double error = (got.to(at::kDouble) - reference).abs().max().item<double>() / scale;
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

// values and gradients of two ways to compute the same from one input
struct Comparison {
  double value, gradient;
};

template <typename Fast, typename Definition>
Comparison compare(const Tensor& input, const Tensor& weight, Fast fast, Definition definition) {
  const at::AutoGradMode on(true);
  const Tensor x = input.detach().clone().set_requires_grad(true);
  const Tensor reference_x = input.detach().to(at::kDouble).clone().set_requires_grad(true);
  const Tensor got = fast(x), expected = definition(reference_x);
  const Tensor grad = vector_jacobian({got}, {x}, {weight.to(got.scalar_type())})[0];
  const Tensor reference_grad = vector_jacobian({expected}, {reference_x}, {weight})[0];
  return {relative_error(got.detach(), expected.detach()), relative_error(grad, reference_grad)};
}

class Cases {
 public:
  explicit Cases(const std::function<void(const SelftestResult&)>& report) : report_(report) {}

  void add(std::string name, double error, double tolerance, std::string reason) {
    results.push_back({std::move(name), error, tolerance, std::move(reason)});
    if (report_) report_(results.back());
  }

  std::vector<SelftestResult> results;

 private:
  const std::function<void(const SelftestResult&)>& report_;
};

void spline_cases(Cases& cases) {
  for (const auto type : {at::kDouble, at::kFloat}) {
    const bool single = type == at::kFloat;
    const Tensor times = irregular_times(23, 1), values = random({23, 3}, 2).to(type);
    const Tensor query = times[0] + (times[-1] - times[0]) * (random({41}, 3) + 1) / 2;
    const auto fast = [&](const Tensor& x) {
      const Control control(shared_times(times, x), {.interpolation = NaturalCubic{}});
      return control.sample(query).value[0];
    };
    const auto definition = [&](const Tensor& x) { return natural_cubic_definition(times, x, query); };
    const Comparison c = compare(values, random({41, 3}, 4), fast, definition);
    const std::string name =
        std::string("natural cubic against the dense system, ") + (single ? "float32" : "float64");
    const double tolerance = single ? 3e-6 : 1e-12;
    cases.add(name, c.value, tolerance, single ? kSingleRounding : kRounding);
    cases.add(name + ", gradient", c.gradient, tolerance, single ? kSingleRounding : kRounding);
  }
}

Tensor lyndon_coefficients(const Tensor& points, int64_t depth) {
  const TensorSeries logarithm = logarithm_definition(signature_definition(points, depth));
  std::vector<Tensor> result;
  for (const Word& word : lyndon_words(points.size(1), depth)) {
    int64_t index = 0;
    for (int64_t letter : word) index = index * points.size(1) + letter;
    result.push_back(logarithm[word.size() - 1][index]);
  }
  return at::stack(result, 0);
}

void logsignature_cases(Cases& cases) {
  struct Shape {
    int64_t channels, depth;
  };
  for (const Shape& shape : {Shape{1, 3}, {3, 5}, {7, 3}, {10, 2}}) {
    const Tensor points = random({6, shape.channels}, 5);
    const Tensor times = irregular_times(6, 6);
    const LogSignatureOptions options = {.depth = shape.depth};
    const auto fast = [&](const Tensor& x) { return logsignature(shared_times(times, x), options)[0]; };
    const auto definition = [&](const Tensor& x) { return lyndon_coefficients(x, shape.depth); };
    const Tensor weight = random({logsignature_size(shape.channels, options)}, 7);
    const Comparison c = compare(points, weight, fast, definition);
    const std::string name =
        message("log-signature against tensor algebra, ", shape.channels, " channels, depth ", shape.depth);
    cases.add(name, c.value, 1e-12, kRounding);
    cases.add(name + ", gradient", c.gradient, 1e-12, kRounding);
  }
}

// y' = A y against the matrix exponential: the error falls with the order of the method
void solver_cases(Cases& cases) {
  const Tensor a = random({4, 4}, 8), y0 = random({5, 4}, 9);
  const Tensor ts = at::tensor({0.0, 0.6, 1.0}, at::kDouble);
  const Field linear = [&](const Time&, const Tensor& y) { return y.matmul(a.t()); };
  const Tensor expected = y0.matmul(at::matrix_exp(a).t());
  for (const Tableau& method : all_tableaux()) {
    const auto error = [&](double step) {
      const Solution s = solve(linear, y0, ts, {.method = method, .steps = FixedSteps{step}});
      return (s.ys[2] - expected).norm().item<double>();
    };
    const double coarse = method.order >= 8 ? 0.25 : 0.1;
    const double order = std::log2(error(coarse) / error(coarse / 2));
    cases.add("order of " + method.name + " on a linear system", std::abs(order - method.order), 0.5,
              "two step sizes show the order only roughly");
  }
  for (const char* name : {"bosh3", "dopri5", "tsit5", "dopri8"}) {
    // steps end at the outputs, so that the interpolation between steps has no part in the error
    const AdaptiveSteps steps = {.rtol = 1e-8, .atol = 1e-10, .stop_times = ts};
    const SolveOptions options = {.method = tableau(name), .steps = steps};
    const Tensor together = solve(linear, y0, ts, options).ys[2];
    cases.add(std::string("adaptive ") + name + " against the matrix exponential",
              relative_error(together, expected), 1e-6, "a hundred times the tolerance asked for");
    // number by number, since a matrix product may round differently for another number of rows
    const Field own = [](const Time& t, const Tensor& y) { return -3 * y * y.abs() + t.like(y).cos(); };
    const Tensor batch = solve(own, y0, ts, options).ys,
                 alone = solve(own, y0.slice(0, 2, 3), ts, options).ys;
    cases.add(std::string("adaptive ") + name + ", a sample alone and in a batch",
              relative_error(batch.slice(1, 2, 3), alone), 1e-12,
              "steps per sample do not depend on the batch");
  }
}

void gradient_cases(Cases& cases) {
  const at::AutoGradMode on(true);
  const Tensor w = random({4, 4}, 10).set_requires_grad(true),
               y0 = random({3, 4}, 11).set_requires_grad(true);
  const Tensor ts = at::linspace(0, 2, 41, at::kDouble);
  const Field field = [&](const Time& t, const Tensor& y) {
    return at::tanh(y.matmul(w.t())) - 0.3 * t.like(y) * y;
  };
  const Tensor weight = random({41, 3, 4}, 12);
  const auto gradient = [&](SolveOptions options) {
    options.parameters = {w};
    const Solution s = solve(field, y0, ts, options);
    return vector_jacobian({s.ys}, {w, y0}, {weight});
  };
  const std::vector<Tensor> exact = gradient({});
  const std::vector<Tensor> checkpointed =
      gradient({.gradient = Gradient::Checkpointed, .memory_limit = 2000});
  const std::vector<Tensor> adjoint = gradient({.gradient = Gradient::Adjoint});
  cases.add("gradient with checkpoints against the recorded one", relative_error(checkpointed[0], exact[0]),
            1e-13, kRounding);
  cases.add("gradient of the continuous adjoint against the exact one", relative_error(adjoint[0], exact[0]),
            1e-4, "the adjoint is a solve of its own with the error of its steps");
  // central difference in one direction
  const Tensor direction = random({4, 4}, 13);
  const double eps = 1e-6;
  const auto loss = [&](double shift) {
    const at::NoGradGuard no_grad;
    const Tensor moved = w.detach() + shift * direction;
    const Field f = [&](const Time& t, const Tensor& y) {
      return at::tanh(y.matmul(moved.t())) - 0.3 * t.like(y) * y;
    };
    return (solve(f, y0.detach(), ts).ys * weight).sum().item<double>();
  };
  const double slope = (loss(eps) - loss(-eps)) / (2 * eps),
               product = (exact[0] * direction).sum().item<double>();
  cases.add("exact gradient against a central difference", std::abs(slope - product) / std::abs(slope), 1e-8,
            "the difference is good to about 1e-10 at this distance");
}

void model_cases(Cases& cases) {
  for (const EngineCase& engine_case : engine_cases()) {
    for (SelftestResult& r : engine_results(engine_case))
      cases.add(std::move(r.name), r.error, r.tolerance, std::move(r.reason));
  }
}

}  // namespace

std::vector<SelftestResult> selftest(const std::function<void(const SelftestResult&)>& report) {
  const at::NoGradGuard no_grad;
  Cases cases(report);
  spline_cases(cases);
  logsignature_cases(cases);
  solver_cases(cases);
  gradient_cases(cases);
  model_cases(cases);
  return std::move(cases.results);
}

}  // namespace fastweights
