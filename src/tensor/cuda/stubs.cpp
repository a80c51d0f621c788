#include "base/error.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

[[noreturn]] void refuse() { throw std::runtime_error("[device] this build has no CUDA"); }

}  // namespace

std::string device_refusal() {
  return "this build has no CUDA; configure with the preset 'cuda' where nvcc and LibTorch for CUDA are "
         "installed";
}

void* cuda_stream(const Tensor&) { refuse(); }
DeviceMemory device_memory(const at::Device&) { refuse(); }
bool is_out_of_memory(const std::exception&) { return false; }
void release_device_memory() {}
DeviceUse device_use(const at::Device&) { refuse(); }
DeviceTimer::DeviceTimer(const at::Device&) { refuse(); }
DeviceTimer::~DeviceTimer() = default;
double DeviceTimer::milliseconds() { refuse(); }
struct DeviceGraph::Parts {};
DeviceGraph::DeviceGraph(const at::Device&) { refuse(); }
DeviceGraph::~DeviceGraph() = default;
void DeviceGraph::record(const std::function<void()>&, const std::function<void()>&) { refuse(); }
void DeviceGraph::replay() { refuse(); }
void synchronise(const at::Device&) { refuse(); }

Tensor on_device(const Tensor& tensor, const at::Device& device) {
  if (device.is_cuda()) refuse();
  return tensor.defined() ? tensor.to(device) : tensor;
}
void copy_to_device(const Tensor&, const Tensor&) { refuse(); }

}  // namespace fastweights
