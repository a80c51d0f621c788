#include "ops/scan/definition.h"

#include "fastweights/tensor.h"
#include "ops/scan/plan.h"

namespace fastweights {
namespace {

// all stages share one entry, or each has its own
Tensor of_stage(const Tensor& x, int64_t stage) { return x.select(1, x.size(1) == 1 ? 0 : stage); }

Tensor stage_slope(const ScanInput& rows, const Rule& rule, int64_t stage, const Tensor& w) {
  return rule.slope(of_stage(rows.k, stage), of_stage(rows.v, stage),
                    of_stage(rows.beta, stage).unsqueeze(-1), w);
}

// W_i = W + dt sum_j a_ij W'_j,  W+ = W + dt sum_i b_i W'_i
DefinitionStep runge_kutta(const ScanInput& rows, const Rule& rule, const Tableau& tableau, const Tensor& w) {
  const Tensor dt = rows.dt.view({-1, 1, 1, 1});
  DefinitionStep step = {w, {}, {}};
  for (int i = 0; i < tableau.stages(); ++i) {
    Tensor stage = w;
    for (int j = 0; j < i; ++j) {
      if (tableau.a[i][j] != 0) stage = stage + tableau.a[i][j] * dt * step.dw[j];
    }
    step.w.push_back(stage);
    step.dw.push_back(stage_slope(rows, rule, i, stage));
    step.next = step.next + tableau.b[i] * dt * step.dw.back();
  }
  return step;
}

// (1 - e^-x) / x; neither branch sees the other's x, which would put NaN into the gradient
Tensor decay(const Tensor& x) {
  const Tensor near = x.abs() < 1e-2, small = at::where(near, x, at::zeros_like(x)),
               large = at::where(near, at::ones_like(x), x);
  const Tensor series = 1 - small / 2 * (1 - small / 3 * (1 - small / 4 * (1 - small / 5 * (1 - small / 6))));
  return at::where(near, series, -at::expm1(-large) / large);
}

// the mean of tanh(e) while e' = -tanh(e) runs for x: sinh(e+) = sinh(e) exp(-x), and the mean is (e - e+) /
// x
Tensor mean_tanh(const Tensor& e, const Tensor& x) {
  constexpr double kFar = 20;  // from here on tanh is 1
  const Tensor near = x.abs() < 1e-3, small = at::where(near, x, at::zeros_like(x)),
               large = at::where(near, at::ones_like(x), x);
  const Tensor t = at::tanh(e), t2 = t.square(), slope = -t * (1 - t2);
  const Tensor series = t + small * slope / 2 * (1 + small / 3 * (3 * t2 - 1)) +
                        small.pow(3) / 24 * slope * (1 - 12 * t2 + 15 * t2.square());
  // far from 0 e moves with speed 1; then the formula, without cancellation
  const Tensor size = e.abs(), straight = at::minimum(large, size - kFar).clamp_min(0);
  const Tensor from = size - straight, rest = large - straight, left = at::exp(-rest);
  const Tensor sinh = at::sinh(from), cosh_end = (1 + (sinh * left).square()).sqrt();
  const Tensor way = straight + at::asinh(sinh * -at::expm1(-2 * rest) / (cosh_end + at::cosh(from) * left));
  return at::where(near, series, at::sign(e) * way / large);
}

// k, v and beta are those of the middle of the step and constant over it. Then M moves along p alone, and
// e = s - M p obeys e' = -beta |p|^2 phi(e) (M, p, s: README.md, section 1).
DefinitionStep flow(const ScanInput& rows, const Rule& rule, const Tensor& w) {
  const bool oja = is_oja(rule);
  const RuleKernel kernel = rule.slope.kernel;
  const Tensor k = of_stage(rows.k, 0), v = of_stage(rows.v, 0), beta = of_stage(rows.beta, 0);
  const Tensor &p = oja ? v : k, &s = oja ? k : v;
  const Tensor e = s - (oja ? matvec_transposed(w, v) : matvec(w, k));  // [N, H, D]
  // mean of dW/dt over the first `duration` of the step: [N, H, V, K]
  const auto mean_slope = [&](const Tensor& duration) {
    const Tensor x = (beta * p.square().sum(-1) * duration.view({-1, 1})).unsqueeze(-1);
    const Tensor phi = kernel == RuleKernel::Hebb        ? s
                       : kernel == RuleKernel::DeltaPost ? mean_tanh(e, x)
                                                         : e * decay(x);
    const Tensor g = beta.unsqueeze(-1) * phi;
    return oja ? p.unsqueeze(-1) * g.unsqueeze(-2) : g.unsqueeze(-1) * p.unsqueeze(-2);
  };
  const Tensor half = rows.dt / 2, slope = mean_slope(rows.dt);
  const auto wide = [](const Tensor& duration) { return duration.view({-1, 1, 1, 1}); };
  return {w + wide(rows.dt) * slope, {w + wide(half) * mean_slope(half)}, {slope}};
}

ScanInput row_of(const ScanInput& input, int64_t row) {
  ScanInput result;
  for (const auto member : {&ScanInput::k, &ScanInput::v, &ScanInput::beta, &ScanInput::dt, &ScanInput::q}) {
    if ((input.*member).defined()) result.*member = (input.*member).slice(0, row, row + 1);
  }
  return result;
}

}  // namespace

DefinitionStep definition_step(const ScanInput& rows, const ScanOptions& options, const Tensor& w) {
  const Tableau* tableau = std::get_if<Tableau>(&options.method);
  return tableau ? runge_kutta(rows, options.rule, *tableau, w) : flow(rows, options.rule, w);
}

Tensor stage_reads(const std::vector<Tensor>& matrices, const Tensor& q, Read read) {
  std::vector<Tensor> reads;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const Tensor queries = q.select(1, static_cast<int64_t>(i));  // [N, Q, H, K]
    const Tensor w = matrices[i].unsqueeze(1).expand(
        {q.size(0), q.size(2), q.size(3), matrices[i].size(2), matrices[i].size(3)});
    reads.push_back(read == Read::Plain ? matvec(w, queries) : matvec_transposed(w, queries));
  }
  return at::stack(reads, 1);
}

ScanOutput scan_definition(const ScanInput& input, const ScanOptions& options) {
  const auto entry = [](const Tensor& index, int64_t i) { return index[i].item<int64_t>(); };
  std::vector<Tensor> outputs, ys, dys;
  for (int64_t b = 0; b < input.w0.size(0); ++b) {
    std::vector<Tensor> w = {input.w0.slice(0, b, b + 1)};  // after 0, 1, 2, ... steps
    for (int64_t row = entry(input.offsets, b); row < entry(input.offsets, b + 1); ++row) {
      const ScanInput now = row_of(input, row);
      const DefinitionStep step = definition_step(now, options, w.back());
      w.push_back(step.next);
      if (!input.q.defined()) continue;
      ys.push_back(stage_reads(step.w, now.q, options.read));
      dys.push_back(stage_reads(step.dw, now.q, options.read));
    }
    for (int64_t m = entry(input.output_offsets, b); m < entry(input.output_offsets, b + 1); ++m)
      outputs.push_back(w[entry(input.output_steps, m)]);
  }
  const auto joined = [](const std::vector<Tensor>& parts) {
    return parts.empty() ? Tensor() : at::cat(parts);
  };
  return {.w = joined(outputs), .y = joined(ys), .dy = joined(dys), .backend = "definition"};
}

ScanInput project_features(const ScanFeatures& input, const ProgramForms& forms) {
  const int64_t features = input.z.size(2), values = input.v_weight.size(2);
  const auto projected = [&](const Tensor& weight, int64_t begin, int64_t rows) {
    // [R, rows, 1, I] times [H, D, I]
    const Tensor z = input.z.slice(1, 0, rows).slice(2, begin, begin + weight.size(2));
    return at::einsum("rpi,hdi->rphd", {z, weight});
  };
  ScanInput result;
  result.dt = input.dt;
  result.w0 = input.w0;
  result.offsets = input.offsets;
  result.output_steps = input.output_steps;
  result.output_offsets = input.output_offsets;
  const Tensor k = projected(input.k_weight, 0, input.key_rows);
  result.k = forms.key == KeyForm::Softmax ? at::softmax(k, -1) : k;
  const Tensor b = projected(input.beta_weight.unsqueeze(1), 0, input.key_rows).squeeze(-1);
  result.beta = forms.rate == LearningRate::Sigmoid ? at::sigmoid(b) : b;
  const Tensor v = projected(input.v_weight, features - values, input.value_rows);
  result.v = forms.value == ValueForm::Tanh ? at::tanh(v) : v;
  if (input.v_mask.defined()) {
    const Tensor lengths = input.offsets.slice(0, 1) - input.offsets.slice(0, 0, -1);
    result.v = result.v * input.v_mask.repeat_interleave(lengths, 0).unsqueeze(1);
  }
  return result;
}

}  // namespace fastweights
