#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fastweights/tensor.h"

/// What the library needs of GPUs besides tensors. tensor/cuda/stubs.cpp stands in where CUDA is absent.

namespace fastweights {

/// Why no CUDA device can be used, or an empty text.
std::string device_refusal();

/// The stream (a cudaStream_t) that LibTorch works on now, on the device of this tensor.
void* cuda_stream(const Tensor& tensor);

/// Bytes of a device: in total, and available, including what LibTorch's allocator caches.
struct DeviceMemory {
  int64_t total, free;
};
DeviceMemory device_memory(const at::Device& device);

/// Whether the error is a device out of memory.
bool is_out_of_memory(const std::exception& error);
/// Empties the cache of LibTorch's allocator.
void release_device_memory();

/// Most bytes in use on the device since the last call, and now.
struct DeviceUse {
  int64_t peak, now;
};
DeviceUse device_use(const at::Device& device);

/// Measures device time.
class DeviceTimer {
 public:
  /// Starts after the work queued so far.
  explicit DeviceTimer(const at::Device& device);
  ~DeviceTimer();
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;
  /// Waits for the work so far.
  double milliseconds();

 private:
  // without CUDA there is nothing to time
  [[maybe_unused]] void *start_ = nullptr, *stop_ = nullptr;
};

/// A CUDA graph: device work that is captured once and replayed as a whole, without the work of the CPU. It
/// reads and writes the same memory every time.
class DeviceGraph {
 public:
  explicit DeviceGraph(const at::Device& device);
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;
  /// Neither function may synchronise or copy from the CPU. `warm` runs once and sets up what the work needs;
  /// the work itself is only captured.
  void record(const std::function<void()>& warm, const std::function<void()>& work);
  void replay();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Waits until a device has finished all queued work.
void synchronise(const at::Device& device);

/// An asynchronous copy on the device, through pinned memory.
Tensor on_device(const Tensor& tensor, const at::Device& device);
/// A list of positions as an int64 tensor on the device.
inline Tensor index_on_device(const std::vector<int64_t>& index, const at::Device& device) {
  return on_device(at::tensor(index, at::kLong), device);
}
/// A copy into an existing tensor.
void copy_to_device(const Tensor& from, const Tensor& to);

}  // namespace fastweights
