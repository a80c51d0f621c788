#include <cmath>

#include "fastweights/model.h"
#include "model/config_names.h"
#include "model/plain_model.h"
#include "model/programmer_config.h"
#include "support/support.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

using testing::irregular_times;
using testing::PlainModel;
using testing::random;
using testing::relative_error;
using testing::ThreeEighths;

// channels 4, heads 2, key width 3, value width 5, hidden 7, outputs 6
ProgrammerConfig exact_config() {
  ProgrammerConfig config;
  config.channels = 4;
  config.outputs = 6;
  config.hidden_size = 7;
  config.heads = 2;
  config.key_width = 3;
  config.value_width = 5;
  config.time_unit = 0.7;
  config.solver.method = rk4();
  return config;
}

Model exact_model(const ProgrammerConfig& config) { return Model(config, {.seed = 9, .type = at::kDouble}); }

RaggedSeries observations(const std::vector<int64_t>& lengths) {
  std::vector<Tensor> times, values;
  for (size_t b = 0; b < lengths.size(); ++b) {
    times.push_back(irregular_times(lengths[b], 70 + b));
    values.push_back(2 * random({lengths[b], 4}, 80 + b));
  }
  return ragged(times, values);
}

// gaps are whole numbers, so that steps of 1/8, 1/16, ... end at all knots, where the third derivative jumps
Tensor weights_at_the_end(ProgrammerConfig config, const std::string& method, double step) {
  const Tensor times = at::tensor({0., 1., 3., 4.}, at::kDouble);
  const RaggedSeries series =
      ragged({times, times.slice(0, 0, 3) + 2}, {random({4, 4}, 61), random({3, 4}, 62)});
  config.time_unit = 1;
  config.control.path = NaturalCubic{};
  config.solver.steps = RegularSteps{.size = step};
  config.solver.method = fastweights::method(method);
  const at::NoGradGuard no_grad;
  return exact_model(config).forward({.series = series}).w[0];
}

// slope of log error over log dt by least squares
double measured_order(const ProgrammerConfig& config, const std::string& method, const Tensor& exact) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (double step : {1.0 / 8, 1.0 / 16, 1.0 / 32}) {
    const Tensor error = weights_at_the_end(config, method, step) - exact;
    const double x = std::log(step), y = std::log(error.norm().item<double>());
    n += 1, sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

TEST(ModelOrder, OfTheMethodShowsInTheFastWeights) {
  for (const char* rule : {"delta_post", "oja_softmax"}) {
    for (Drive drive : {Drive::X, Drive::Derivative}) {
      ProgrammerConfig config = exact_config();
      config.rule = rule;
      config.drive = drive;
      // its error is (32 / 256)^4 = 2e-4 of the smallest one that is measured
      const Tensor exact = weights_at_the_end(config, "rk4", 1.0 / 256);
      for (const char* method : {"euler", "midpoint", "heun3", "rk4"}) {
        const double order = measured_order(config, method, exact);
        std::printf("%s, %s, %s: order %.3f\n", rule, name_of(drive).c_str(), method, order);
        EXPECT_NEAR(order, tableau(method).order, 0.15) << rule << " " << name_of(drive) << " " << method;
      }
    }
  }
}

// samples of a control at the stage times of a step: value and derivative [S, C]
testing::Reading at_stages(const Control& control, double from, double to) {
  const Samples x = control.sample(ThreeEighths::times(from, to));
  return {x.value[0], x.derivative[0]};
}

// k, v and beta of Hebb's rule for rows of a signal
struct Hebb {
  Tensor k, v, beta;
};

Hebb hebb_program(const PlainModel& plain, const testing::Reading& x) {
  const Drive drive = plain.config.drive;
  const bool keys_from_x = drive == Drive::X || drive == Drive::DerivativeValues;
  const bool values_from_x = drive == Drive::X || drive == Drive::DerivativeKeys;
  const testing::Raw raw = plain.raw(0, keys_from_x ? x.x : x.dx, values_from_x ? x.x : x.dx);
  return {at::softmax(raw.k, -1), at::tanh(raw.v), 1 / (1 + at::exp(-raw.b))};
}

struct HebbCase {
  Drive drive;
  Interpolation interpolation;
};

TEST(Exactness, HebbIsTheSumOfItsWritings) {
  const std::vector<HebbCase> cases = {{Drive::X, HermiteCubic{}},
                                       {Drive::DerivativeKeys, Linear{}},
                                       {Drive::DerivativeValues, NaturalCubic{}},
                                       {Drive::Derivative, Linear{}}};
  for (const HebbCase& c : cases) {
    SCOPED_TRACE(name_of(c.drive));
    ProgrammerConfig config = exact_config();
    config.rule = "hebb";
    config.drive = c.drive;
    std::visit([&](const auto& path) { config.control.path = path; }, c.interpolation);
    config.value_norm = c.drive == Drive::DerivativeValues;
    const Model model = exact_model(config);
    const PlainModel plain(model);
    const RaggedSeries series = observations({6, 2, 4});
    const at::NoGradGuard no_grad;
    const Tensor got = model.forward({.series = series}).w[0];
    for (int64_t b = 0; b < 3; ++b) {
      const RaggedSeries one = testing::sample_of(series, b, config.time_unit);
      const Control control(one, {.interpolation = c.interpolation});
      const Samples start = control.sample(one.times.slice(0, 0, 1));
      const Hebb first = hebb_program(plain, {start.value[0], start.derivative[0]});
      Tensor w = (first.beta.unsqueeze(-1) * testing::times_transposed(first.v, first.k))[0];
      for (int64_t n = 0; n + 1 < one.times.size(0); ++n) {
        const double from = one.times[n].item<double>(), to = one.times[n + 1].item<double>();
        const Hebb p = hebb_program(plain, at_stages(control, from, to));
        for (int i = 0; i < ThreeEighths::kStages; ++i) {
          const Tensor written = p.beta[i].unsqueeze(-1) * testing::times_transposed(p.v[i], p.k[i]);
          w = w + (to - from) * ThreeEighths::b[i] * written;
        }
      }
      // sums of about 20 terms in another order, and a slow net in other operations
      EXPECT_LT(relative_error(got[b], w), 1e-13) << "sample " << b;
    }
  }
}

// W after each of some intervals over which k, v and beta are constant: x [N, C], durations [N]
Tensor delta_net_steps(const PlainModel& plain, Tensor w, const Tensor& x, const Tensor& durations) {
  const testing::Raw raw = plain.raw(0, x, x);
  const Tensor k = at::softmax(raw.k, -1), v = at::tanh(raw.v), beta = 1 / (1 + at::exp(-raw.b));
  for (int64_t n = 0; n < x.size(0); ++n) {
    const Tensor bdt = beta[n] * durations[n];           // [H, 1]
    const Tensor z = bdt * (k[n] * k[n]).sum(-1, true);  // [H, 1]
    const Tensor g = bdt * (1 - z / 2 + z * z / 6 - z * z * z / 24);
    w = w + testing::times_transposed(g * (v[n] - testing::times(w, k[n])), k[n]);
  }
  return w;
}

// one rk4 step over constant k, v and beta is a step of a DeltaNet; W, k and v are of order 1, and there are
// at most 7 steps: only rounding remains
constexpr double kExact = 1e-13;

TEST(Exactness, DeltaOverHeldObservationsIsADeltaNet) {
  ProgrammerConfig config = exact_config();
  config.rule = "delta_pre";
  config.control.path = Hold{};
  config.initial = InitialWeights::Zero;
  const Model model = exact_model(config);
  const RaggedSeries series = observations({7, 3, 4});
  const Tensor w0 = random({3, 2, 5, 3}, 90);
  const Tensor begins = series.times.index_select(0, series.offsets.slice(0, 0, -1));
  const at::NoGradGuard no_grad;
  const Tensor got = model.forward({.series = series, .start = FastWeightState{{w0}, begins}}).w[0];
  for (int64_t b = 0; b < 3; ++b) {
    const RaggedSeries one = testing::sample_of(series, b, config.time_unit);
    const Tensor durations = one.times.slice(0, 1) - one.times.slice(0, 0, -1);
    const Tensor expected = delta_net_steps(PlainModel(model), w0[b], one.values.slice(0, 0, -1), durations);
    EXPECT_LT(relative_error(got[b], expected), kExact) << "sample " << b;
  }
}

// increments and areas of the path through points [L, C]: its log-signature up to depth 2
Tensor increments_and_areas(const Tensor& points) {
  const Tensor from = points.slice(0, 0, -1) - points[0], step = points.slice(0, 1) - points.slice(0, 0, -1);
  const Tensor integrals = at::matmul(from.t(), step) + at::matmul(step.t(), step) / 2;  // [C, C]
  const Tensor areas = (integrals - integrals.t()) / 2;
  const Tensor pairs = at::triu_indices(points.size(1), points.size(1), 1);
  return at::cat({points[-1] - points[0], areas.index({pairs[0], pairs[1]})}, 0);
}

// windows of 2 increments: what is constant over each, and for how long
struct PlainWindows {
  Tensor x, durations;
};

PlainWindows plain_windows(const RaggedSeries& one, WindowClock clock) {
  std::vector<Tensor> x;
  std::vector<double> durations;
  const int64_t last = one.times.size(0) - 1;
  for (int64_t from = 0; from < last; from += 2) {
    const int64_t to = std::min(from + 2, last);
    const double duration = (one.times[to] - one.times[from]).item<double>();
    const Tensor found = increments_and_areas(one.values.slice(0, from, to + 1));
    x.push_back(clock == WindowClock::Time ? found / duration : found);
    durations.push_back(clock == WindowClock::Time ? duration : 1);
  }
  return {at::stack(x, 0), at::tensor(durations, at::kDouble)};
}

TEST(Exactness, DeltaOverLogSignatureWindowsIsADeltaNet) {
  for (WindowClock clock : {WindowClock::Windows, WindowClock::Time}) {
    ProgrammerConfig config = exact_config();
    config.rule = "delta_pre";
    const PointWindows windows = {.increments = 2, .tail = WindowTail::Keep};
    config.control.path = LogSignatures{.depth = 2, .windows = windows, .clock = clock};
    const Model model = exact_model(config);
    const RaggedSeries series = observations({8, 3, 6});
    const Tensor w0 = random({3, 2, 5, 3}, 91);
    const Tensor begins = series.times.index_select(0, series.offsets.slice(0, 0, -1));
    const at::NoGradGuard no_grad;
    const Tensor got = model.forward({.series = series, .start = FastWeightState{{w0}, begins}}).w[0];
    for (int64_t b = 0; b < 3; ++b) {
      const PlainWindows windows = plain_windows(testing::sample_of(series, b, config.time_unit), clock);
      const Tensor expected = delta_net_steps(PlainModel(model), w0[b], windows.x, windows.durations);
      EXPECT_LT(relative_error(got[b], expected), kExact) << name_of(clock) << ", sample " << b;
    }
  }
}

}  // namespace
}  // namespace fastweights
