#include "ops/scan/definition.h"

#include "fastweights/product.h"
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

// W' = beta (s - M p) p^T moves M along p alone, where it decays with beta |p|^2
DefinitionStep exact_flow(const ScanInput& rows, const Rule& rule, const Tensor& w) {
  const Tensor dt = rows.dt.view({-1, 1, 1, 1}), slope = stage_slope(rows, rule, 0, w);
  // Hebb's slope does not depend on W
  if (rule.slope.kernel == RuleKernel::Hebb) return {w + dt * slope, {w}, {slope}};
  const Tensor p = of_stage(is_oja(rule) ? rows.v : rows.k, 0);
  const Tensor rate = of_stage(rows.beta, 0) * p.square().sum(-1);  // [N, H]
  return {w + decay(rate.unsqueeze(-1).unsqueeze(-1) * dt) * dt * slope, {w}, {slope}};
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
  return tableau ? runge_kutta(rows, options.rule, *tableau, w) : exact_flow(rows, options.rule, w);
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
