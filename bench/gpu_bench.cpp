#include "gpu_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "fastweights/environment.h"
#include "fastweights/scan.h"
#include "fastweights/tensor.h"
#include "scan_runs.h"
#include "scan_shapes.h"
#include "selftest/engine_cases.h"
#include "tensor/autograd.h"
#include "tensor/device.h"
#include "tensor/runtime.h"
#include "train/device_adam.h"

namespace fastweights::bench {
namespace {

using Json = nlohmann::ordered_json;

// a model and a batch that stay on the device
class GpuRun {
 public:
  GpuRun(const ProgrammerConfig& config, const ScanBatch& batch, const at::Device& device)
      : model_(config, {.device = device}),
        input_(prepared(batch)),
        labels_(batch.labels.to(device)),
        parameters_(model_.parameter_tensors()),
        adam_(*model_.network(), {}) {
    adam_.begin_step(1e-4);
  }

  // of all parameters
  Tensor gradient() {
    const at::AutoGradMode on(true);
    const ModelOutput out = model_.forward(input_, {.mode = Mode::Train});
    plan_ = out.plan;
    const std::vector<Tensor> grads = gradients(loss_of(out.outputs, labels_), parameters_);
    std::vector<Tensor> parts;
    for (const Tensor& grad : grads) parts.push_back(grad.reshape({-1}));
    const at::NoGradGuard no_grad;
    return at::cat(parts, 0);
  }
  // forward in training mode, loss, backward, Adam
  void step() {
    const Tensor flat = gradient();
    const at::NoGradGuard no_grad;
    adam_.apply({.by_parameter = {}, .flat = flat, .norm = flat.norm()}, 1.0);
  }
  void forward() {
    const at::NoGradGuard no_grad;
    plan_ = model_.forward(input_).plan;
  }
  double prepare_ms() const { return prepare_ms_; }
  const MemoryPlan& plan() const { return plan_; }
  int64_t bytes() const { return input_.bytes(); }

 private:
  PreparedBatch prepared(const ScanBatch& batch) {
    const auto start = std::chrono::steady_clock::now();
    PreparedBatch input = model_.prepare({.series = batch.series});
    synchronise(model_.device());
    prepare_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return input;
  }

  Model model_;
  double prepare_ms_ = 0;
  PreparedBatch input_;
  Tensor labels_;
  std::vector<Tensor> parameters_;
  DeviceAdam adam_;
  MemoryPlan plan_;
};

// milliseconds on the device; more than one run at a time, so that the CPU is ahead as it is in training
template <typename Work>
double timed(const at::Device& device, int repeat, const Work& work) {
  constexpr int kWarm = 2, kTogether = 3;
  for (int i = 0; i < kWarm; ++i) work();
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    DeviceTimer timer(device);
    for (int k = 0; k < kTogether; ++k) work();
    times.push_back(timer.milliseconds() / kTogether);
  }
  return median(times);
}

bool device_gate(const ScanShape& shape) {
  bool passed = true;
  for (const SelftestResult& result : engine_results({shape.name, shape.config, shape.gate})) {
    if (result.passed()) continue;
    passed = false;
    std::fprintf(stderr, "FAILED %s: error %g, allowed %g; %s is not timed\n", result.name.c_str(),
                 result.error, result.tolerance, shape.name.c_str());
  }
  return passed;
}

void print_line(const Json& line, const ScanBenchSettings& settings) {
  if (settings.json) {
    std::printf("%s\n", line.dump().c_str());
  } else {
    std::printf("%-12s %-9s %10.3f ms   peak %8.0f MB   %s\n", line["shape"].get<std::string>().c_str(),
                line["what"].get<std::string>().c_str(), line["ms"].get<double>(),
                line["peak_mb"].get<double>(), line["note"].get<std::string>().c_str());
  }
  std::fflush(stdout);
}

Json line_of(const std::string& shape, const char* what, double ms, double peak, const std::string& note) {
  return {{"shape", shape}, {"what", what},    {"backend", "cuda"},
          {"ms", ms},       {"peak_mb", peak}, {"note", note}};
}

double megabytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// the same work as a graph, without the CPU, which issues more than a hundred small pieces of it each time
template <typename Work>
void measure_graph(const std::string& shape, const char* what, const std::string& note, const Work& work,
                   const at::Device& device, const ScanBenchSettings& settings) {
  try {
    DeviceGraph graph(device);
    graph.record(work, work);
    const double ms = timed(device, settings.repeat, [&] { graph.replay(); });
    print_line(line_of(shape, what, ms, megabytes(device_use(device).peak), note), settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: no graph: %s\n", shape.c_str(), error.what());
  }
}

void measure_tf32(const std::string& shape, GpuRun& run, const at::Device& device,
                  const ScanBenchSettings& settings) {
  const Tensor exact = run.gradient();
  const Tf32Scope on(Tf32::Yes);
  const double error = ((run.gradient() - exact).norm() / exact.norm()).item<double>();
  char note[80];
  std::snprintf(note, sizeof(note), "products in TF32: the gradient differs by %.1e", error);
  measure_graph(
      shape, "tf32*", note, [&] { run.step(); }, device, settings);
}

void measure(const ScanShape& shape, const at::Device& device, const ScanBenchSettings& settings) {
  GpuRun run(shape.config, make_batch(shape), device);
  const std::string sizes = std::to_string(shape.samples()) + " series, " +
                            std::to_string(shape.longest_steps()) + " steps, " +
                            std::to_string(shape.config.heads) + " heads";
  device_use(device);
  const double step = timed(device, settings.repeat, [&] { run.step(); });
  print_line(line_of(shape.name, "step", step, megabytes(device_use(device).peak), sizes), settings);
  const double forward = timed(device, settings.repeat, [&] { run.forward(); });
  print_line(line_of(shape.name, "forward", forward, megabytes(device_use(device).peak), sizes), settings);
  const std::string graph = "as a CUDA graph, the same batch again";
  measure_graph(
      shape.name, "step*", graph, [&] { run.step(); }, device, settings);
  measure_graph(
      shape.name, "forward*", graph, [&] { run.forward(); }, device, settings);
  if (!settings.tiny) measure_tf32(shape.name, run, device, settings);
  print_line(line_of(shape.name, "prepare", run.prepare_ms(), megabytes(run.bytes()),
                     "once for a set: from the CPU's memory"),
             settings);
}

// E's model in other sizes
void sweep_point(ScanShape shape, const std::string& varied, const at::Device& device,
                 const ScanBenchSettings& settings) {
  GpuRun run(shape.config, make_batch(shape), device);
  device_use(device);
  const double step = timed(device, settings.repeat, [&] { run.step(); });
  print_line(line_of("sweep", "step", step, megabytes(device_use(device).peak),
                     varied + (run.plan().blocks > 1 ? ", in " + std::to_string(run.plan().blocks) + " blocks"
                                                     : "")),
             settings);
}

void sweep(const ScanShape& worms, const at::Device& device, const ScanBenchSettings& settings) {
  const auto points = [&](int64_t samples, int64_t steps) {
    ScanShape shape = worms;
    shape.points.assign(static_cast<size_t>(samples), steps * worms.points_per_step() + 1);
    return shape;
  };
  for (const int64_t batch : {1, 16, 256, 1024, 4096})
    sweep_point(points(batch, 500), "batch " + std::to_string(batch) + ", 500 steps", device, settings);
  for (const int64_t steps : {100, 1000, 10000, 100000, 1000000})
    sweep_point(points(1, steps), "length " + std::to_string(steps) + ", batch 1", device, settings);
  for (const int64_t width : {4, 8, 16, 32, 64}) {
    ScanShape shape = points(181, 500);
    shape.config.heads = shape.config.hidden_size / width;
    sweep_point(shape, "head width " + std::to_string(width) + ", batch 181, 500 steps", device, settings);
  }
}

// the recurrence alone: one long series, pieces of time side by side against one step after another
void time_parallel(const at::Device& device, const ScanBenchSettings& settings) {
  constexpr int64_t kSteps = 100000, kHeads = 16, kWidth = 8;
  const at::TensorOptions there = at::TensorOptions(at::kFloat).device(device);
  for (const Rule& rule : {hebb(), oja(), delta_pre()}) {
    ScanInput input;
    input.k = at::softmax(at::randn({kSteps, 1, kHeads, kWidth}, there), -1).set_requires_grad(true);
    input.v = at::tanh(at::randn({kSteps, 1, kHeads, kWidth}, there)).set_requires_grad(true);
    input.beta = at::sigmoid(at::randn({kSteps, 1, kHeads}, there)).set_requires_grad(true);
    input.dt = at::ones({kSteps}, there);
    input.w0 = at::zeros({1, kHeads, kWidth, kWidth}, there).set_requires_grad(true);
    input.offsets = at::tensor({int64_t{0}, kSteps}, at::kLong);
    double ms[2] = {};
    Tensor grads[2];
    for (const TimeParallel way : {TimeParallel::Never, TimeParallel::Auto}) {
      const auto pass = [&] {
        const at::AutoGradMode on(true);
        const Tensor w = scan(input, {.rule = rule, .time_parallel = way}).w;
        return vector_jacobian({w}, {input.k, input.v, input.beta, input.w0}, {at::ones_like(w)});
      };
      const int which = way == TimeParallel::Auto;
      grads[which] = pass()[0];
      ms[which] = timed(device, settings.repeat, pass);
    }
    const double error = ((grads[0] - grads[1]).abs().max() / grads[0].abs().max()).item<double>();
    char note[160];
    std::snprintf(note, sizeof(note),
                  "forward and backward, 1 series of 100,000 steps: %.1f times, gradients differ by %.1e",
                  ms[0] / ms[1], error);
    print_line(line_of(rule.name, "in order", ms[0], 0, "one step after another"), settings);
    print_line(line_of(rule.name, "parallel", ms[1], 0, note), settings);
  }
}

}  // namespace

int run_gpu_bench(const ScanBenchSettings& settings) {
  const at::Device device = find_device("cuda");
  const Environment found = environment();
  if (!settings.json)
    std::printf("fastweights %s, %s, float32\n\n", found.version.c_str(),
                found.backends.back().detail.c_str());
  int status = 0;
  for (ScanShape& shape : all_shapes()) {
    const auto& names = settings.shapes;
    const bool wanted =
        names.empty() ? shape.name != "M" : std::find(names.begin(), names.end(), shape.name) != names.end();
    if (!wanted && !settings.sweep) continue;
    if (settings.sweep && shape.name != "E") continue;
    shape.config.solver.memory_limit = settings.memory_limit;
    shape = with_method(shape, settings.method);
    if (settings.tiny) shape = tiny(shape);
    if (!device_gate(shape)) {
      status = 1;
    } else if (settings.sweep) {
      sweep(shape, device, settings);
      time_parallel(device, settings);
    } else {
      measure(shape, device, settings);
    }
  }
  return status;
}

}  // namespace fastweights::bench
