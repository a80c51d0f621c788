#include "ops/scan/reference.h"

#include "fastweights/product.h"

namespace fastweights {
namespace {

// one step of all samples that have it; the stages of a step share a single programme
struct Rows {
  ScanInput input;  // with B' rows
  Tensor samples;   // [B']: whose they are
  Tensor index;     // [B']: where they stand among the rows of all steps

  Tensor at(const Tensor& x, int64_t stage) const { return x.select(1, x.size(1) == 1 ? 0 : stage); }
  Tensor slope(const Rule& rule, int64_t stage, const Tensor& w) const {
    return rule.slope(at(input.k, stage), at(input.v, stage), at(input.beta, stage).unsqueeze(-1), w);
  }
  Tensor dt() const { return input.dt.view({-1, 1, 1, 1}); }
};

std::vector<Rows> rows_by_step(const ScanInput& input) {
  const Tensor lengths = input.offsets.slice(0, 1) - input.offsets.slice(0, 0, -1);
  const int64_t longest = lengths.max().item<int64_t>();
  std::vector<Rows> steps(longest);
  if (longest == 0) return steps;
  std::vector<Tensor> order;
  std::vector<int64_t> counts;
  for (int64_t n = 0; n < longest; ++n) {
    steps[n].samples = at::nonzero(lengths > n).squeeze(1);
    steps[n].index = input.offsets.index_select(0, steps[n].samples) + n;
    order.push_back(steps[n].index);
    counts.push_back(steps[n].index.size(0));
  }
  // all steps are picked at once: the gradient of one that is picked alone is as long as that of all
  const Tensor all = at::cat(order, 0);
  const auto cut = [&](Tensor ScanInput::*member) {
    if (!(input.*member).defined()) return;
    const std::vector<Tensor> parts = at::split_with_sizes((input.*member).index_select(0, all), counts, 0);
    for (int64_t n = 0; n < longest; ++n) steps[n].input.*member = parts[n];
  };
  for (const auto member : {&ScanInput::k, &ScanInput::v, &ScanInput::beta, &ScanInput::dt, &ScanInput::q})
    cut(member);
  return steps;
}

Tensor read(const Tensor& w, const Tensor& q, Read side) {
  // [B', Q, H, K] with W [B', H, V, K]
  const Tensor matrices = w.unsqueeze(1).expand({q.size(0), q.size(1), w.size(1), w.size(2), w.size(3)});
  return side == Read::Plain ? matvec(matrices, q) : matvec_transposed(matrices, q);
}

struct Step {
  Tensor next;                // W behind the step
  std::vector<Tensor> w, dw;  // at the stages
};

// W_i = W + dt sum_j a_ij W'_j,  W+ = W + dt sum_i b_i W'_i
Step runge_kutta(const Rows& rows, const Rule& rule, const Tableau& tableau, const Tensor& w) {
  const Tensor dt = rows.dt();
  Step step = {w, {}, {}};
  for (int i = 0; i < tableau.stages(); ++i) {
    Tensor stage = w;
    for (int j = 0; j < i; ++j) {
      if (tableau.a[i][j] != 0) stage = stage + tableau.a[i][j] * dt * step.dw[j];
    }
    step.w.push_back(stage);
    step.dw.push_back(rows.slope(rule, i, stage));
    step.next = step.next + tableau.b[i] * dt * step.dw.back();
  }
  return step;
}

// W' = beta (s - M p) p^T goes along p alone, where it decays with beta |p|^2
Step exact_flow(const Rows& rows, const Rule& rule, const Tensor& w) {
  const Tensor p = rows.at(rule.name == "oja" ? rows.input.v : rows.input.k, 0);
  const Tensor slope = rows.slope(rule, 0, w), dt = rows.dt();
  Tensor factor = at::ones_like(dt);
  if (rule.name != "hebb") {
    const Tensor rate = rows.at(rows.input.beta, 0) * p.square().sum(-1);  // [B', H]
    const Tensor x = rate.unsqueeze(-1).unsqueeze(-1) * dt;
    // neither branch may meet numbers that are the other one's: what it made of them would not stay out of
    // the gradient
    const Tensor near = x.abs() < 1e-2, small = at::where(near, x, at::zeros_like(x)),
                 large = at::where(near, at::ones_like(x), x);
    const Tensor series =
        1 - small / 2 * (1 - small / 3 * (1 - small / 4 * (1 - small / 5 * (1 - small / 6))));
    factor = at::where(near, series, -at::expm1(-large) / large);
  }
  return {w + factor * dt * slope, {w}, {slope}};
}

}  // namespace

ScanOutput scan_reference(const ScanInput& input, const ScanOptions& options) {
  const Tableau* tableau = std::get_if<Tableau>(&options.method);
  std::vector<Tensor> rows, ys, dys, states = {input.w0};
  for (const Rows& here : rows_by_step(input)) {
    const Tensor w = states.back().index_select(0, here.samples);
    const Step step =
        tableau ? runge_kutta(here, options.rule, *tableau, w) : exact_flow(here, options.rule, w);
    states.push_back(states.back().index_copy(0, here.samples, step.next));
    if (!input.q.defined()) continue;
    rows.push_back(here.index);
    for (int64_t i = 0; i < input.q.size(1); ++i) {
      const Tensor q = here.input.q.select(1, i);
      ys.push_back(read(step.w[i], q, options.read));
      dys.push_back(read(step.dw[i], q, options.read));
    }
  }
  const Tensor counts = input.output_offsets.slice(0, 1) - input.output_offsets.slice(0, 0, -1);
  const Tensor sample = at::arange(counts.size(0), at::kLong).repeat_interleave(counts);
  ScanOutput out;
  out.w = at::stack(states, 0).index({input.output_steps, sample});
  out.backend = "reference";
  if (!input.q.defined()) return out;
  const auto assembled = [&](const std::vector<Tensor>& reads) {
    std::vector<Tensor> steps;
    const int64_t stages = input.q.size(1), width = input.w0.size(options.read == Read::Plain ? 2 : 3);
    if (rows.empty())
      return at::empty({0, stages, input.q.size(2), input.q.size(3), width}, input.q.options());
    // from steps of all samples back to samples one after another
    const Tensor order = at::argsort(at::cat(rows, 0), int64_t{0}, /*descending=*/false);
    for (size_t n = 0; n < rows.size(); ++n) {
      const std::vector<Tensor> of_step(reads.begin() + n * stages, reads.begin() + (n + 1) * stages);
      steps.push_back(at::stack(of_step, 1));
    }
    return at::cat(steps, 0).index_select(0, order);
  };
  if (options.reads != ScanReads::Slopes) out.y = assembled(ys);
  if (options.reads != ScanReads::Weights) out.dy = assembled(dys);
  return out;
}

ScanInput programme_reference(const ScanFeatures& input, const ProgrammeForms& forms) {
  const int64_t features = input.z.size(2), values = input.v_weight.size(2);
  const auto made = [&](const Tensor& weight, int64_t begin, int64_t rows) {
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
  const Tensor k = made(input.k_weight, 0, input.key_rows);
  result.k = forms.key == KeyForm::Softmax ? at::softmax(k, -1) : k;
  const Tensor b = made(input.beta_weight.unsqueeze(1), 0, input.key_rows).squeeze(-1);
  result.beta = forms.rate == LearningRate::Sigmoid ? at::sigmoid(b) : b;
  const Tensor v = made(input.v_weight, features - values, input.value_rows);
  result.v = forms.value == ValueForm::Tanh ? at::tanh(v) : v;
  if (input.v_mask.defined()) {
    const Tensor lengths = input.offsets.slice(0, 1) - input.offsets.slice(0, 0, -1);
    result.v = result.v * input.v_mask.repeat_interleave(lengths, 0).unsqueeze(1);
  }
  return result;
}

}  // namespace fastweights
