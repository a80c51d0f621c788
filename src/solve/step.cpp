#include "solve/step.h"

#include <cmath>

#include "fastweights/error.h"
#include "tensor/autograd.h"
#include "tensor/stage_sums.h"

namespace fastweights {
namespace {

std::vector<double> scaled(std::vector<double> weights, const Time& dt) {
  for (double& weight : weights) weight *= dt.value();
  return weights;
}

// a time in the precision of the solve; an operation on float32 numbers that is done in double and then
// rounded is the one of float32
Time rounded(const Time& t, const Span& span) {
  return span.stage_times == StageTimes::Single ? Time(static_cast<float>(t.value())) : t;
}

Time next_single(const Time& t, float towards) {
  return std::nextafter(static_cast<float>(t.value()), towards);
}

// eps for the samples of this step: who waits does not move
Time shift_by(double eps, const Span& span) {
  const Time dt = span.dt();
  if (dt.shared()) return rounded(eps, span);
  return Time(eps * (dt.tensor().detach() > 0).to(at::kDouble));
}

// where the first and the last stage of a step look at the field
Time start_of(const Span& span) {
  if (span.shortening > 0) return rounded(span.t0 + shift_by(span.shortening, span), span);
  if (!span.first_inside) return span.t0;
  return span.stage_times == StageTimes::Single ? next_single(span.t0, INFINITY) : just_after(span.t0);
}

Time end_of(const Span& span) {
  if (!span.last_inside) return span.t1;
  return span.stage_times == StageTimes::Single ? next_single(span.t1, -INFINITY) : just_before(span.t1);
}

// what a method goes through: the step, or what a shortened one leaves of it
struct Stretch {
  Time start, length;
};

// of torchdiffeq 0.1.0's methods rk4 alone goes from eps behind the start to eps before the end
bool goes_shorter(const Tableau& tableau, const Span& span) {
  return span.shortening > 0 && tableau.name == "rk4";
}

Stretch stretch_of(const Tableau& tableau, const Span& span) {
  const Time dt = rounded(span.dt(), span);
  if (!goes_shorter(tableau, span)) return {span.t0, dt};
  return {start_of(span), rounded(dt - shift_by(2 * span.shortening, span), span)};
}

Time stage_time(const Tableau& tableau, int stage, const Stretch& stretch, const Span& span) {
  const double c = tableau.c[stage];
  const bool sum = goes_shorter(tableau, span) || span.stage_times == StageTimes::Single;
  if (c == 1 && (span.last_inside || !sum)) return end_of(span);
  return rounded(stretch.start + rounded(c * stretch.length, span), span);
}

// slopes before the multistep formula takes over
constexpr int kAdamsStart = 3;

bool corrector_converged(const Tensor& before, const Tensor& now, const Adams& adams) {
  const at::NoGradGuard no_grad;
  const Tensor tolerance = adams.atol + adams.rtol * at::maximum(before.abs(), now.abs());
  return ((before - now).abs() / tolerance).max().item<double>() < 1;
}

// y1 - y0 of a multistep step from the slopes in `history`, newest first
Tensor adams_increment(const Adams& adams, Evaluator& f, const Tensor& y0, const Span& span,
                       std::vector<Tensor>& history) {
  const int order = static_cast<int>(history.size());
  const Time dt = span.dt();
  Tensor dy = advance({}, dt, history, adams_bashforth(order));
  if (adams.kind == AdamsKind::Explicit) return dy;

  std::vector<double> moulton = adams_moulton(order + 1);
  const double newest = moulton.front();
  moulton.erase(moulton.begin());
  const Tensor known = advance({}, dt, history, moulton);
  const Time end = end_of(span);
  for (int i = 0; i < adams.max_iterations; ++i) {
    const Tensor before = dy;
    dy = advance(known, dt, {f(end, y0 + before)}, {newest});
    if (corrector_converged(before, dy, adams)) return dy;
  }
  // the published rule: forget the oldest slope, which lowers the order of the next step
  history.pop_back();
  return dy;
}

TakenStep adams_step(const Adams& adams, Evaluator& f, const State& state, const Span& span) {
  const Tensor slope = f(start_of(span), state.y);
  std::vector<Tensor> history = state.slopes;
  history.insert(history.begin(), slope);
  if (static_cast<int>(history.size()) > adams.max_order - 1) history.pop_back();
  StepResult result;
  if (static_cast<int>(history.size()) < kAdamsStart) {
    static const Tableau kStart = rk4();
    Span whole = span;
    whole.shortening = 0;
    result.y1 = runge_kutta_step(kStart, f, state.y, slope, whole).y1;
  } else {
    result.y1 = state.y + adams_increment(adams, f, state.y, span, history);
  }
  result.slopes = {slope};
  State next = {result.y1, std::move(history)};
  return {std::move(result), std::move(next)};
}

Time times_of(const Time& t, const Tensor& rows) {
  return rows.defined() && !t.shared() ? Time(t.tensor().index_select(0, rows)) : t;
}

// polynomial through both ends, the middle, and the slopes at both ends, with x from 0 to 1 over the step
Tensor quartic(const Tableau& tableau, const Tensor& y0, const StepResult& step, const Time& dt,
               const Tensor& x, const Tensor& rows) {
  const Tensor middle = select_rows(advance(y0, dt, step.slopes, tableau.mid), rows);
  const Tensor start = select_rows(y0, rows), end = select_rows(step.y1, rows);
  const Tensor h = times_of(dt, rows).like(start);
  const Tensor rise = h * select_rows(step.slopes.front(), rows),
               fall = h * select_rows(step.slopes.back(), rows);
  const Tensor a = 2 * (fall - rise) - 8 * (end + start) + 16 * middle;
  const Tensor b = 5 * rise - 3 * fall + 18 * start + 14 * end - 32 * middle;
  const Tensor c = fall - 4 * rise - 11 * start - 5 * end + 16 * middle;
  return start + x * (rise + x * (c + x * (b + x * a)));
}

}  // namespace

Tensor select_rows(const Tensor& tensor, const Tensor& rows) {
  return rows.defined() ? tensor.index_select(0, rows.to(tensor.device())) : tensor;
}

Tensor mask_like(const Tensor& mask, const Tensor& y) {
  std::vector<int64_t> shape(y.dim(), 1);
  shape[0] = mask.size(0);
  return mask.view(shape).to(y.device());
}

Tensor Evaluator::operator()(const Time& t, const Tensor& y) {
  ++calls_;
  Tensor slope;
  if (watching_) {
    // recorded only to see whether there is something to record
    const at::AutoGradMode on(true);
    slope = f_(t, y);
    if (slope.defined()) {
      saw_gradient_ = saw_gradient_ || slope.requires_grad();
      slope = slope.detach();
    }
  } else {
    slope = f_(t, y);
  }
  FW_CHECK(slope.defined() && slope.sizes() == y.sizes(), "[solve] f(t, y) must have the shape of y ",
           y.sizes(), ", got ", slope.defined() ? message(slope.sizes()) : "nothing");
  FW_CHECK(slope.scalar_type() == y.scalar_type() && slope.device() == y.device(),
           "[solve] f(t, y) must have the type and device of y, ", y.scalar_type(), " on ", y.device(),
           ", got ", slope.scalar_type(), " on ", slope.device(),
           "; t.like(y) gives times of the right type");
  return slope;
}

Tensor advance(const Tensor& base, const Time& dt, const std::vector<Tensor>& slopes,
               const std::vector<double>& weights) {
  if (dt.has_tensor()) {
    const Tensor sum = weighted_sum({}, slopes, weights);
    const Tensor step = dt.like(sum) * sum;
    return base.defined() ? base + step : step;
  }
  return weighted_sum(base, slopes, scaled(weights, dt));
}

StageTable stage_table(const Tableau& tableau, const Span& span) {
  const Stretch stretch = stretch_of(tableau, span);
  StageTable table = {{start_of(span)}, stretch.length};
  for (int i = 1; i < tableau.stages(); ++i) table.times.push_back(stage_time(tableau, i, stretch, span));
  return table;
}

StepResult runge_kutta_step(const Tableau& tableau, Evaluator& f, const Tensor& y0, const Tensor& first_slope,
                            const Span& span) {
  const Stretch stretch = stretch_of(tableau, span);
  const Time& dt = stretch.length;
  StepResult result;
  result.slopes.reserve(tableau.stages());
  result.slopes.push_back(first_slope.defined() ? first_slope : f(start_of(span), y0));
  StageSums sums(y0);
  const auto stage = [&](const std::vector<double>& weights) {
    return dt.has_tensor() ? advance(y0, dt, result.slopes, weights)
                           : sums.next(result.slopes, scaled(weights, dt));
  };
  Tensor y = y0;
  for (int i = 1; i < tableau.stages(); ++i) {
    y = stage(tableau.a[i]);
    result.slopes.push_back(f(stage_time(tableau, i, stretch, span), y));
  }
  result.y1 = tableau.reuses_last_slope() ? y : stage(tableau.b);
  return result;
}

TakenStep take_step(const Method& method, Evaluator& f, const State& state, const Span& span) {
  if (const Adams* adams = std::get_if<Adams>(&method)) return adams_step(*adams, f, state, span);
  const Tableau& tableau = std::get<Tableau>(method);
  StepResult result =
      runge_kutta_step(tableau, f, state.y, state.slopes.empty() ? Tensor() : state.slopes[0], span);
  State next = {result.y1, {}};
  // where edges are moved or rounded, the slope at the end belongs to this step alone
  const bool same_edge = !span.first_inside && span.shortening == 0 && span.stage_times == StageTimes::Double;
  if (tableau.reuses_last_slope() && same_edge) next.slopes.push_back(result.slopes.back());
  return {std::move(result), std::move(next)};
}

Tensor interpolate(OutputInterpolation kind, const Method& method, Evaluator& f, const Tensor& y0,
                   const StepResult& step, const Span& span, const Time& t, const Tensor& rows) {
  const Tensor start = select_rows(y0, rows), end = select_rows(step.y1, rows);
  const Time t0 = times_of(span.t0, rows), t1 = times_of(span.t1, rows);
  const Tensor x = (t - t0).like(start) / (t1 - t0).like(start);
  if (kind == OutputInterpolation::Linear) return start + x * (end - start);
  if (kind == OutputInterpolation::Quartic)
    return quartic(std::get<Tableau>(method), y0, step, span.dt(), x, rows);
  const Tensor h = (t1 - t0).like(start);
  const Tensor rise = h * select_rows(step.slopes.front(), rows),
               fall = h * select_rows(f(end_of(span), step.y1), rows);
  const Tensor rest = 1 - x;
  return (1 + 2 * x) * rest * rest * start + x * rest * rest * rise + x * x * (3 - 2 * x) * end +
         x * x * (x - 1) * fall;
}

}  // namespace fastweights
