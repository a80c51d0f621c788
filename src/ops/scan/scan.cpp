#include "fastweights/scan.h"

#include <algorithm>

#include "base/error.h"
#include "ops/scan/cpu/fused.h"
#include "ops/scan/cuda/device_scan.h"
#include "ops/scan/grouped.h"
#include "ops/scan/kernel.h"

namespace fastweights {
namespace {

void check_offsets(const Tensor& offsets, const char* name, int64_t samples, int64_t rows) {
  FW_CHECK(offsets.defined() && offsets.scalar_type() == at::kLong && offsets.dim() == 1 &&
               offsets.size(0) == samples + 1,
           "[scan] ", name, " must be int64 [", samples + 1, "]");
  const Tensor plain = offsets.contiguous();
  const int64_t* o = plain.data_ptr<int64_t>();
  FW_CHECK(o[0] == 0 && o[samples] == rows, "[scan] ", name, " must run from 0 to ", rows, ", got ", o[0],
           " to ", o[samples]);
  for (int64_t b = 0; b < samples; ++b) FW_CHECK(o[b + 1] >= o[b], "[scan] ", name, " fall at sample ", b);
}

void check_outputs(const ScanInput& input) {
  const int64_t samples = input.w0.size(0);
  FW_CHECK(input.output_steps.scalar_type() == at::kLong && input.output_steps.dim() == 1,
           "[scan] output_steps must be int64 [M], got ", input.output_steps.sizes());
  check_offsets(input.output_offsets, "output_offsets", samples, input.output_steps.size(0));
  const Tensor offsets = input.offsets.contiguous(), steps = input.output_steps.contiguous(),
               outputs = input.output_offsets.contiguous();
  const int64_t *o = offsets.data_ptr<int64_t>(), *n = steps.data_ptr<int64_t>(),
                *m = outputs.data_ptr<int64_t>();
  for (int64_t b = 0; b < samples; ++b) {
    for (int64_t i = m[b]; i < m[b + 1]; ++i) {
      FW_CHECK(n[i] >= 0 && n[i] <= o[b + 1] - o[b], "[scan] sample ", b, " has ", o[b + 1] - o[b],
               " steps, but W is requested after ", n[i]);
      FW_CHECK(i == m[b] || n[i] >= n[i - 1], "[scan] sample ", b, ": output_steps must not fall, but ", n[i],
               " comes after ", n[i - 1]);
    }
  }
}

void check_device(const Tensor& x, const char* name, const ScanInput& input) {
  FW_CHECK(x.device() == input.w0.device(), "[scan] ", name, " must be on ", input.w0.device(),
           " like w0, got ", x.device());
}

void check_program(const Tensor& x, const char* name, const std::vector<int64_t>& rest,
                   const ScanInput& input, int64_t stages) {
  const bool shape = x.defined() && x.dim() == static_cast<int64_t>(rest.size()) + 2 &&
                     x.size(0) == input.dt.size(0) && x.sizes().slice(2) == at::IntArrayRef(rest);
  FW_CHECK(shape, "[scan] ", name, " must be [", input.dt.size(0), ", P, ", at::IntArrayRef(rest), "], got ",
           x.defined() ? message(x.sizes()) : "nothing");
  FW_CHECK(x.size(1) == 1 || x.size(1) == stages, "[scan] ", name, " must have 1 or ", stages,
           " programs per step, got ", x.size(1));
  FW_CHECK(x.scalar_type() == input.w0.scalar_type(), "[scan] ", name, " must be ", input.w0.scalar_type(),
           " like w0, got ", x.scalar_type());
  check_device(x, name, input);
}

void check_input(const ScanInput& input, const ScanOptions& options) {
  FW_CHECK(input.w0.defined() && input.w0.dim() == 4 && at::isFloatingType(input.w0.scalar_type()),
           "[scan] w0 must be floating-point [B, H, V, K], got ",
           input.w0.defined() ? message(input.w0.sizes()) : "nothing");
  FW_CHECK(input.w0.numel() > 0, "[scan] w0 has no elements: ", input.w0.sizes());
  FW_CHECK(input.dt.defined() && input.dt.dim() == 1, "[scan] dt must be [R], got ",
           input.dt.defined() ? message(input.dt.sizes()) : "nothing");
  FW_CHECK(input.dt.scalar_type() == input.w0.scalar_type(), "[scan] dt must be ", input.w0.scalar_type(),
           " like w0, got ", input.dt.scalar_type());
  check_device(input.dt, "dt", input);
  const int64_t samples = input.w0.size(0), heads = input.w0.size(1);
  const Tableau* tableau = std::get_if<Tableau>(&options.method);
  const int64_t stages = tableau ? tableau->stages() : 1;
  // an input with offsets on the device may have padding rows after the last sample
  const bool padded = input.on_device.offsets.defined();
  check_offsets(input.offsets, "offsets", samples,
                padded ? std::min(input.offsets[-1].item<int64_t>(), input.dt.size(0)) : input.dt.size(0));
  check_program(input.k, "k", {heads, input.w0.size(3)}, input, stages);
  check_program(input.v, "v", {heads, input.w0.size(2)}, input, stages);
  check_program(input.beta, "beta", {heads}, input, stages);
  check_outputs(input);
  FW_CHECK(options.rule.slope, "[scan] the rule has no slope");
  FW_CHECK(tableau || has_flow(options.rule), "[scan] rule ", options.rule.name,
           " has no flow; take a Runge-Kutta method");
  if (!input.q.defined()) return;
  const int64_t width = input.w0.size(options.read == Read::Plain ? 3 : 2);
  const Tensor& q = input.q;
  FW_CHECK(q.dim() == 5 && q.size(0) == input.dt.size(0) && q.size(1) == stages && q.size(2) >= 1 &&
               q.size(2) <= kernels::kScanQueries && q.size(3) == heads && q.size(4) == width,
           "[scan] q must be [", input.dt.size(0), ", ", stages, ", 1 or 2, ", heads, ", ", width, "], got ",
           q.sizes());
  check_device(q, "q", input);
  FW_CHECK(q.scalar_type() == input.w0.scalar_type(), "[scan] q must be ", input.w0.scalar_type(),
           " like w0, got ", q.scalar_type());
}

// (dW/dt) q from the slopes' vectors: dW/dt = g k^T for Delta's rules and Hebb's, v g^T for Oja's
Tensor slope_reads(const ScanInput& input, const ScanOptions& options, const Tensor& g) {
  const bool oja = is_oja(options.rule);
  const Tensor slope = g.unsqueeze(2), p = (oja ? input.v : input.k).unsqueeze(2);
  const bool forth = (options.read == Read::Plain) != oja;
  const Tensor &left = forth ? slope : p, &right = forth ? p : slope;
  return left * (right * input.q).sum(-1, /*keepdim=*/true);
}

}  // namespace

std::string scan_refusal(const ScanInput& input, const ScanOptions& options) {
  const Tensor& w0 = input.w0;
  std::string refusal = kernel_refusal(options.rule, options.method, w0.size(2), w0.size(3));
  if (!refusal.empty()) return refusal;
  if (w0.is_cuda()) return device_scan_refusal(w0);
  if (w0.scalar_type() != at::kFloat && w0.scalar_type() != at::kDouble)
    return message("tensors are ", w0.scalar_type(), ", not float32 or float64");
  if (!w0.device().is_cpu()) return message("tensors are on ", w0.device());
  return "";
}

namespace {

enum class Path { Reference, Cpu, Device };

// the backend that computes, or an error that says why the requested one cannot; looks at w0 alone
Path path_of(const ScanInput& input, const ScanOptions& options) {
  if (options.backend == Backend::Reference) return Path::Reference;
  const bool on_device = input.w0.is_cuda();
  const char* requested = options.backend == Backend::Cuda ? "cuda" : "cpu";
  const bool elsewhere = options.backend != Backend::Auto && on_device != (options.backend == Backend::Cuda);
  const std::string refusal =
      elsewhere ? message("tensors are on ", input.w0.device()) : scan_refusal(input, options);
  FW_CHECK(refusal.empty() || options.backend == Backend::Auto, "[scan] backend ", requested,
           " cannot be used: ", refusal);
  if (!refusal.empty()) return Path::Reference;
  return on_device ? Path::Device : Path::Cpu;
}

}  // namespace

ScanOutput scan(const ScanInput& given, const ScanOptions& options) {
  ScanInput input = given;
  if (!input.output_steps.defined() && input.offsets.defined() && input.offsets.dim() == 1) {
    input.output_steps = input.offsets.slice(0, 1) - input.offsets.slice(0, 0, -1);
    input.output_offsets = at::arange(input.offsets.size(0), at::kLong);
  }
  check_input(input, options);
  const Path path = path_of(input, options);
  if (path == Path::Reference) return grouped_scan(input, options);
  const bool slopes = input.q.defined() && options.reads != ScanReads::Weights;
  const StageSlopes stage_slopes = slopes ? StageSlopes::Yes : StageSlopes::No;
  const bool device = path == Path::Device;
  const KernelOutput out =
      device ? device_scan(input, options, stage_slopes) : fused_scan(input, options, stage_slopes);
  ScanOutput result = {
      .w = out.w, .y = out.y, .dy = {}, .backend = device ? device_backend() : cpu_backend()};
  if (slopes) result.dy = slope_reads(input, options, out.g);
  return result;
}

ScanOutput scan_features(const ScanFeatures& input, const ProgramForms& forms, const ScanOptions& options) {
  ScanInput start;
  start.w0 = input.w0;
  const Path path = path_of(start, options);
  FW_CHECK(path != Path::Device, "[scan] features are for the CPU's kernels");
  if (path == Path::Reference) return grouped_scan(project_features(input, forms), options);
  return {.w = fused_scan(input, forms, options).w, .y = {}, .dy = {}, .backend = cpu_backend()};
}

}  // namespace fastweights
