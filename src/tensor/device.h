#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "fastweights/tensor.h"

/// What the library needs to know of GPUs beyond tensors. Without CUDA there are none.

namespace fastweights {

/// Why no CUDA device can be used, or an empty text.
std::string device_refusal();

/// The stream (a cudaStream_t) that LibTorch works on now, on the device of this tensor.
void* cuda_stream(const Tensor& tensor);

/// Bytes on a device: of all, and those that could still be had, counting what LibTorch keeps unused.
struct DeviceMemory {
  int64_t total, free;
};
DeviceMemory device_memory(const at::Device& device);

/// Whether this says that a device has no memory left.
bool is_out_of_memory(const std::exception& error);
/// What LibTorch keeps unused goes back to the device.
void release_device_memory();

/// Most bytes in use on the device since the last call, and now.
struct DeviceUse {
  int64_t peak, now;
};
DeviceUse device_use(const at::Device& device);

/// Measures work of a device by its own clock.
class DeviceTimer {
 public:
  /// Begins where the device's work is now.
  explicit DeviceTimer(const at::Device& device);
  ~DeviceTimer();
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;
  /// Waits for the work so far.
  double milliseconds();

 private:
  void *start_ = nullptr, *stop_ = nullptr;
};

/// Work of a device that was recorded once and is done again as a whole, without the CPU's part in it. What
/// it reads and writes stays where it was.
class DeviceGraph {
 public:
  explicit DeviceGraph(const at::Device& device);
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;
  /// Neither may wait for the device or copy from the CPU. `warm` is done once and sets up what the work
  /// needs; the work itself is only recorded.
  void record(const std::function<void()>& warm, const std::function<void()>& work);
  void replay();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Waits until a device has done all it was told.
void synchronise(const at::Device& device);

/// A copy on the device, on its way when this returns: the numbers go through memory that the device can read
/// by itself.
Tensor on_device(const Tensor& tensor, const at::Device& device);
/// The same into a tensor that is there.
void copy_to_device(const Tensor& from, const Tensor& to);

}  // namespace fastweights
