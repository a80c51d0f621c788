#include "tensor/runtime.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include "base/error.h"
#include "fastweights/tensor.h"
#include "kernels/instruction_set.h"
#include "tensor/device.h"

namespace fastweights {

int thread_count() { return at::get_num_threads(); }

void set_thread_count(int threads) { at::set_num_threads(threads); }

at::Device find_device(const std::string& name) {
  FW_CHECK(name == "cpu" || name == "cuda" || name == "auto", "[device] unknown device '", name,
           "'; expected cpu, cuda or auto");
  if (name == "cpu") return at::kCPU;
  const std::string refusal = device_refusal();
  if (refusal.empty()) return at::Device(at::kCUDA, 0);
  if (name == "auto") return at::kCPU;
  throw std::runtime_error("[device] cuda cannot be used: " + refusal);
}

namespace {

std::string precision_name() {
  switch (at::globalContext().float32MatmulPrecision()) {
    case at::Float32MatmulPrecision::HIGHEST:
      return "highest";
    case at::Float32MatmulPrecision::HIGH:
      return "high";
    default:
      return "medium";
  }
}

}  // namespace

Tf32Scope::Tf32Scope(Tf32 use) : before_(precision_name()) {
  at::globalContext().setFloat32MatmulPrecision(use == Tf32::Yes ? "high" : "highest");
}

void check_instruction_set() {
  const char* unknown = kernels::unknown_instruction_set();
  FW_CHECK(unknown == nullptr, "[environment] FASTWEIGHTS_ISA must be baseline, avx2 or avx512, got '",
           unknown, "'");
}

Tf32Scope::~Tf32Scope() { at::globalContext().setFloat32MatmulPrecision(before_); }

bool uses_tf32() { return precision_name() != "highest"; }

std::string libtorch_version() { return TORCH_VERSION; }

}  // namespace fastweights
