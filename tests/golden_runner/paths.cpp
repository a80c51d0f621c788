#include "fastweights/control.h"
#include "golden.h"
#include "tensor/autograd.h"

namespace fastweights::golden {
namespace {

ControlOptions control_options(const GoldenFile& file) {
  const std::string kind = file.text("kind");
  if (kind == "natural cubic spline" || kind == "natural_cubic_v0_torchcde") {
    return {.interpolation = NaturalCubic{EndFilling::EndPoint}};
  }
  if (kind == "natural_cubic_torchcde") {
    return {.interpolation = NaturalCubic{EndFilling::WholeGap}};
  }
  if (kind == "hermite_bdiff_torchcde") return {.interpolation = HermiteCubic{}};
  if (kind == "linear") return {.interpolation = Linear{}};
  if (kind == "rectilinear") {
    return {.interpolation = Rectilinear{static_cast<int64_t>(file.number("time_channel"))}};
  }
  throw std::runtime_error("not understood: path kind '" + kind + "'");
}

// [batch * rows, C] or [batch, rows, C] to (*batch, rows, C) as in the file
Tensor like_data(const Tensor& ours, const Tensor& data) {
  std::vector<int64_t> shape(data.sizes().begin(), data.sizes().end() - 2);
  const int64_t samples = data.numel() / (data.size(-1) * data.size(-2));
  shape.push_back(ours.numel() / (samples * data.size(-1)));
  shape.push_back(data.size(-1));
  return ours.reshape(shape);
}

void compare_coefficients(GoldenFile& file, const Control& control, const Tensor& data) {
  const char* names[] = {"out.a", "out.b", "out.two_c", "out.three_d"};
  for (int64_t term = 0; term < 4; ++term) {
    file.compare(names[term], like_data(control.coefficients().select(1, term), data), kRounding);
  }
}

void compare_gradient(GoldenFile& file, const Tensor& times, const Tensor& data,
                      const ControlOptions& options) {
  const Tensor x = data.clone().set_requires_grad(true);
  const Control control(shared_times(times, x.reshape({-1, data.size(-2), data.size(-1)})), options);
  const Samples samples = control.sample(file.tensor("query.t"));
  const Tensor value = like_data(samples.value, data), derivative = like_data(samples.derivative, data);
  const Tensor loss = (file.tensor("in.weight_value") * value).sum() +
                      (file.tensor("in.weight_derivative") * derivative).sum();
  file.compare("out.loss", loss.detach(), kRounding);
  file.compare("grad.X", vector_jacobian({loss}, {x}, {at::ones_like(loss)})[0], kRounding);
}

}  // namespace

void check_paths(GoldenFile& file) {
  const ControlOptions options = control_options(file);
  const Tensor data = file.tensor("in.X");
  // a rectilinear path has no times of its own, its time is a channel
  const Tensor times = std::holds_alternative<Rectilinear>(options.interpolation)
                           ? at::arange(data.size(-2), at::kDouble)
                           : file.tensor("in.times");
  if (file.has("grad.X")) return compare_gradient(file, times, data, options);
  const Control control(shared_times(times, data.reshape({-1, data.size(-2), data.size(-1)})), options);
  const Samples samples = control.sample(file.tensor("query.t"));
  file.compare("query.value", like_data(samples.value, data), kRounding);
  file.compare("query.derivative", like_data(samples.derivative, data), kRounding);
  if (file.has("out.a")) compare_coefficients(file, control, data);
  if (file.has("out.knot_times")) {
    file.compare("out.knot_times", control.knots().slice(0, 0, control.offsets()[1].item<int64_t>()), 0);
  }
  if (file.has("out.knots")) {
    const Tensor knots = control.sample(RaggedTimes{control.knots(), control.offsets()}).value;
    file.compare("out.knots", like_data(knots, data), kRounding);
  }
}

}  // namespace fastweights::golden
