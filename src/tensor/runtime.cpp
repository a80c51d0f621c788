#include "tensor/runtime.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include "base/error.h"
#include "fastweights/device.h"
#include "kernels/instruction_set.h"
#include "tensor/device.h"
#include "tensor/tf32.h"

namespace fastweights {

int thread_count() { return at::get_num_threads(); }

void set_thread_count(int threads) { at::set_num_threads(threads); }

at::Device find_device(const std::string& name) {
  FW_CHECK(name == "cpu" || name == "cuda" || name == "auto", "[device] there is no device '", name,
           "'; there are cpu, cuda and auto");
  if (name == "cpu") return at::kCPU;
  const std::string refusal = device_refusal();
  if (refusal.empty()) return at::Device(at::kCUDA, 0);
  if (name == "auto") return at::kCPU;
  throw std::runtime_error("[device] cuda cannot be used: " + refusal);
}

void use_tf32(Tf32 use) {
  at::globalContext().setFloat32MatmulPrecision(use == Tf32::Yes ? "high" : "highest");
}

Tf32Guard::Tf32Guard(Tf32 use) : before_(at::globalContext().float32MatmulPrecision()) { use_tf32(use); }

Tf32Guard::~Tf32Guard() { at::globalContext().setFloat32MatmulPrecision(before_); }

void check_instruction_set() {
  const char* unknown = kernels::unknown_instruction_set();
  FW_CHECK(unknown == nullptr, "[environment] FASTWEIGHTS_ISA must be baseline, avx2 or avx512, got '",
           unknown, "'");
}

std::string libtorch_version() { return TORCH_VERSION; }

}  // namespace fastweights
