#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "tensor/device.h"

namespace fastweights {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr size_t kAll = 0;  // of the allocator's statistics: small and large pieces together

c10::DeviceIndex index_of(const at::Device& device) {
  return device.has_index() ? device.index() : c10::cuda::current_device();
}

}  // namespace

std::string device_refusal() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) return std::string("the driver says: ") + cudaGetErrorString(status);
  if (count == 0) return "no CUDA device was found";
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
  if (major >= 8) return "";
  return "the device has compute capability " + std::to_string(major) + "." + std::to_string(minor) +
         ", and 8.0 or later is needed";
}

void* cuda_stream(const Tensor& tensor) {
  return c10::cuda::getCurrentCUDAStream(index_of(tensor.device())).stream();
}

DeviceMemory device_memory(const at::Device& device) {
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return {0, 0};
  const auto stats = allocator::getDeviceStats(index_of(device));
  const int64_t unused = stats.reserved_bytes[kAll].current - stats.allocated_bytes[kAll].current;
  return {static_cast<int64_t>(total), static_cast<int64_t>(free) + unused};
}

bool is_out_of_memory(const std::exception& error) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr;
}

void release_device_memory() {
  // the runtime keeps the error of a failed allocation until it is read, and the next check would find it
  (void)cudaGetLastError();
  allocator::emptyCache();
}

DeviceUse device_use(const at::Device& device) {
  const auto stats = allocator::getDeviceStats(index_of(device));
  allocator::resetPeakStats(index_of(device));
  return {stats.allocated_bytes[kAll].peak, stats.allocated_bytes[kAll].current};
}

DeviceTimer::DeviceTimer(const at::Device& device) {
  cudaEvent_t start = nullptr, stop = nullptr;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  start_ = start;
  stop_ = stop;
  cudaEventRecord(start, c10::cuda::getCurrentCUDAStream(index_of(device)).stream());
}

DeviceTimer::~DeviceTimer() {
  cudaEventDestroy(static_cast<cudaEvent_t>(start_));
  cudaEventDestroy(static_cast<cudaEvent_t>(stop_));
}

double DeviceTimer::milliseconds() {
  const auto start = static_cast<cudaEvent_t>(start_), stop = static_cast<cudaEvent_t>(stop_);
  cudaEventRecord(stop, c10::cuda::getCurrentCUDAStream().stream());
  cudaEventSynchronize(stop);
  float ms = 0;
  cudaEventElapsedTime(&ms, start, stop);
  return ms;
}

struct DeviceGraph::Parts {
  at::cuda::CUDAGraph graph;
  c10::cuda::CUDAStream stream;
};

DeviceGraph::DeviceGraph(const at::Device& device) {
  // the first stream of the pool needs memory that LibTorch's cache may hold
  allocator::emptyCache();
  parts_.reset(new Parts{{}, c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index_of(device))});
}

DeviceGraph::~DeviceGraph() = default;

void DeviceGraph::record(const std::function<void()>& warm, const std::function<void()>& work) {
  c10::cuda::getCurrentCUDAStream().synchronize();
  const c10::cuda::CUDAStreamGuard guard(parts_->stream);
  // once on this stream, so that nothing is set up while it is recorded
  warm();
  parts_->stream.synchronize();
  // what is recorded has memory of its own and cannot take what others keep unused
  allocator::emptyCache();
  parts_->graph.capture_begin();
  try {
    work();
  } catch (const std::exception&) {
    // the stream must not go on recording
    try {
      parts_->graph.capture_end();
    } catch (const std::exception&) {
    }
    throw;
  }
  parts_->graph.capture_end();
}

void DeviceGraph::replay() { parts_->graph.replay(); }

void synchronise(const at::Device& device) {
  c10::cuda::getCurrentCUDAStream(index_of(device)).synchronize();
}

Tensor on_device(const Tensor& tensor, const at::Device& device) {
  if (!tensor.defined() || tensor.device() == device || device.is_cpu()) return tensor;
  const bool follow = tensor.requires_grad();
  if (follow || tensor.numel() == 0) return tensor.to(device);
  return tensor.contiguous().pin_memory().to(device, /*non_blocking=*/true);
}

void copy_to_device(const Tensor& from, const Tensor& to) {
  to.copy_(from.is_cpu() ? from.contiguous().pin_memory() : from, /*non_blocking=*/true);
}

}  // namespace fastweights
