#include "ops/scan/time_parallel.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "ops/scan/cuda/combine.h"
#include "ops/scan/plan.h"
#include "tensor/autograd.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

// recurrences that keep a large GPU busy
constexpr int64_t kBusy = 16384;
// fewer steps are not worth a second look
constexpr int64_t kLongEnough = 1024;
constexpr int64_t kShortestPiece = 64;

// samples cut into pieces, which are samples to the kernels
struct Pieces {
  ScanIndex index;    // outputs: those of the whole, and the end of each piece behind them
  Tensor of_samples;  // [B + 1]: pieces of each sample
  Tensor first;       // [B]: the first piece of each
  Tensor outputs;     // [M]: rows of the index's outputs that are those of the whole ...
  Tensor ends;        // [P]: ... and that are ends
  int64_t count = 0, samples = 0;
};

Pieces cut(const ScanInput& input, int64_t steps) {
  const Tensor all_offsets = input.offsets.contiguous(), all_places = input.output_steps.contiguous(),
               all_outputs = input.output_offsets.contiguous();
  const int64_t *o = all_offsets.data_ptr<int64_t>(), *places = all_places.data_ptr<int64_t>(),
                *outputs = all_outputs.data_ptr<int64_t>();
  Pieces pieces;
  pieces.samples = all_offsets.size(0) - 1;
  std::vector<int64_t> offsets = {0}, own_places, own_outputs = {0}, of_samples = {0}, first, wanted, ends;
  for (int64_t b = 0; b < pieces.samples; ++b) {
    first.push_back(pieces.count);
    int64_t next = outputs[b];
    const int64_t length = o[b + 1] - o[b], count = std::max<int64_t>(1, (length + steps - 1) / steps);
    for (int64_t piece = 0; piece < count; ++piece) {
      const int64_t begin = piece * steps, end = std::min(length, begin + steps);
      for (; next < outputs[b + 1] && (places[next] <= end); ++next) {
        wanted.push_back(static_cast<int64_t>(own_places.size()));
        own_places.push_back(places[next] - begin);
      }
      ends.push_back(static_cast<int64_t>(own_places.size()));
      own_places.push_back(end - begin);
      own_outputs.push_back(static_cast<int64_t>(own_places.size()));
      offsets.push_back(o[b] + end);
    }
    pieces.count += count;
    of_samples.push_back(pieces.count);
  }
  const at::Device device = input.w0.device();
  const auto there = [&](const std::vector<int64_t>& list) {
    return on_device(at::tensor(list, at::kLong), device);
  };
  pieces.index = {there(offsets), there(own_places), there(own_outputs)};
  pieces.of_samples = there(of_samples);
  pieces.first = there(first);
  pieces.outputs = there(wanted);
  pieces.ends = there(ends);
  return pieces;
}

// what a call keeps until its backward pass
struct Cut {
  DeviceCall call;  // of the pieces
  Pieces pieces;
  Tensor starts;      // [P, H, D, D]: W at the beginning of each piece
  Tensor transition;  // [P, H, D, D]: W at its end is W times this, plus something
};

enum class Direction { Forwards, Backwards };

Tensor combined(const Cut& cut, Direction direction, const Tensor& plus, const Tensor& start) {
  Tensor result = at::empty_like(cut.transition);
  const kernels::ScanPlan& plan = cut.call.plan;
  const kernels::CudaChunks chunks = {cut.pieces.of_samples.data_ptr<int64_t>(),
                                      cut.pieces.samples,
                                      plan.heads,
                                      plan.width,
                                      plan.matrix == kernels::ScanMatrix::Transposed,
                                      direction == Direction::Backwards};
  kernels::cuda_combine(chunks, cut.transition.data_ptr<float>(), plus.data_ptr<float>(),
                        start.data_ptr<float>(), result.data_ptr<float>(), cuda_stream(result));
  return result;
}

// W at the ends of pieces that begin with `start`
Tensor piece_ends(const Cut& cut, DeviceArrays arrays, const Tensor& start) {
  arrays.start = start;
  cut.call.forward(arrays, StageSlopes::No);
  return arrays.out.index_select(0, cut.pieces.ends);
}

void find_starts(Cut& cut, const DeviceArrays& arrays) {
  const kernels::ScanPlan& plan = cut.call.plan;
  const Tensor nothing = at::zeros({cut.pieces.count, plan.heads, plan.width, plan.width},
                                   arrays.start.options().requires_grad(false));
  const Tensor one = at::eye(plan.width, nothing.options()).expand_as(nothing).contiguous();
  const Tensor made = piece_ends(cut, arrays, nothing);
  if (plan.phi == kernels::ScanPhi::Value) {
    cut.transition = one;
  } else {
    DeviceArrays unwritten = arrays;
    unwritten.s = at::zeros_like(arrays.s);
    cut.transition = piece_ends(cut, unwritten, one);
  }
  cut.starts = combined(cut, Direction::Forwards, made, arrays.start);
}

std::vector<Tensor> backward(const Cut& cut, const std::vector<Tensor>& saved, const Tensor& grad) {
  DeviceArrays arrays;
  arrays.p = saved[0];
  arrays.s = saved[1];
  arrays.beta = saved[2];
  arrays.dt = saved[3];
  arrays.start = cut.starts;
  const kernels::ScanPlan& plan = cut.call.plan;
  DeviceArrays incoming;
  incoming.out =
      at::zeros({cut.pieces.index.output_steps.size(0), plan.heads, plan.width, plan.width}, grad.options())
          .index_copy_(0, cut.pieces.outputs, grad);
  // what outputs inside of pieces leave for their beginnings, then what all later ones leave for the ends
  const Tensor inside = cut.call.backward(arrays, incoming).start;
  const Tensor nothing = at::zeros_like(saved[4]);
  const Tensor ends = combined(cut, Direction::Backwards, inside, nothing);
  incoming.out.index_copy_(0, cut.pieces.ends, ends);
  const DeviceArrays grads = cut.call.backward(arrays, incoming);
  return {grads.p, grads.s, grads.beta, grads.dt, grads.start.index_select(0, cut.pieces.first)};
}

}  // namespace

bool splits_time(const kernels::ScanPlan& plan, int64_t samples, int64_t longest) {
  const bool linear = plan.phi == kernels::ScanPhi::Value || plan.phi == kernels::ScanPhi::Difference;
  return linear && plan.queries == 0 && longest >= kLongEnough && kBusy / (samples * plan.heads) >= 4;
}

int64_t parallel_steps(const kernels::ScanPlan& plan, const ScanInput& input) {
  const Tensor offsets = input.offsets.contiguous();
  const int64_t* o = offsets.data_ptr<int64_t>();
  int64_t longest = 0;
  for (int64_t b = 0; b + 1 < offsets.size(0); ++b) longest = std::max(longest, o[b + 1] - o[b]);
  if (!splits_time(plan, input.w0.size(0), longest)) return 0;
  const int64_t room = kBusy / (input.w0.size(0) * plan.heads);
  // a piece is walked three times, and joining two of them takes about as long as two steps
  const auto best = static_cast<int64_t>(std::sqrt(1.5 * static_cast<double>(longest)));
  const int64_t count = std::min(room, best);
  return std::max(kShortestPiece, (longest + count - 1) / count);
}

Tensor time_parallel_scan(const DeviceCall& call, const DeviceArrays& arrays, const ScanInput& input,
                          int64_t steps) {
  const std::vector<Tensor> inputs = {arrays.p, arrays.s, arrays.beta, arrays.dt, arrays.start};
  const bool record = needs_gradient(inputs);
  Cut all = {call, cut(input, steps), {}, {}};
  all.call.index = all.pieces.index;
  DeviceArrays run = arrays;
  {
    const at::NoGradGuard no_grad;
    find_starts(all, arrays);
    run.start = all.starts;
    if (record) all.call.keep(run);
    all.call.forward(run, StageSlopes::No);
    run.out = run.out.index_select(0, all.pieces.outputs);
  }
  if (!record) return run.out;
  const auto shared = std::make_shared<const Cut>(std::move(all));
  return differentiable("scan", {run.out}, inputs, inputs,
                        [shared](const std::vector<Tensor>& grads, const std::vector<Tensor>& saved) {
                          return backward(*shared, saved, grads[0].contiguous());
                        })[0];
}

}  // namespace fastweights
