#include <algorithm>
#include <cmath>

#include "fastweights/published.h"
#include "golden.h"
#include "model/programmer_config.h"
#include "model/signal.h"
#include "tensor/autograd.h"

namespace fastweights::golden {

// a run in single precision: only when it looked, and which window it saw. Windows are their own numbers, so
// that what the signal gives says which one it was.
void check_single_precision_trace(GoldenFile& file) {
  const auto windows = static_cast<int64_t>(file.number("windows"));
  ProgrammerConfig config = ProgrammerConfig(published::eigenworms("ode_delta", 1));
  config.channels = 1;
  std::get<PointWindows>(std::get<LogSignatures>(config.control.path).windows).increments = 1;
  // increments are the log-signature of depth 1
  const Tensor points = at::cat({at::zeros({1}, at::kDouble), at::arange(windows, at::kDouble).cumsum(0)}, 0);
  const Signal signal(config.shared(),
                      shared_times(at::arange(windows + 1, at::kDouble), points.unsqueeze(1)));

  std::vector<double> times;
  std::vector<int64_t> indices;
  const Tensor parameter = at::ones({1}, at::kDouble).set_requires_grad(true);
  const Field field = [&](const Time& t, const Tensor& y) {
    times.push_back(t.value());
    indices.push_back(std::llround(signal.at(t).value.item<double>()));
    return 1e-3 * parameter * at::cos(y);
  };
  const Tensor y0 = at::zeros({1, 1}, at::kDouble).set_requires_grad(true);
  const Tensor ts = at::stack({signal.begin()[0], signal.end()[0]}, 0);
  auto steps = std::get<FixedSteps>(config.solver.steps);
  steps.stage_times = StageTimes::Single;
  const Solution solution =
      solve(field, y0, ts, {.steps = steps, .gradient = Gradient::Adjoint, .parameters = {parameter}});
  const auto compare = [&](const std::string& pass) {
    // these are numbers of single precision: equal to the last bit
    file.compare(pass + ".stage_t", at::tensor(times, at::kDouble), 0);
    file.compare(pass + ".window_index", at::tensor(indices, at::kLong), 0);
    times.clear();
    indices.clear();
  };
  compare("forward");
  vector_jacobian({solution.ys[1].sum()}, {y0, parameter}, {at::ones({}, at::kDouble)});
  compare("backward");
}

}  // namespace fastweights::golden
