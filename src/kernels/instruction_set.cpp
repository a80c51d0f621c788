#include "kernels/instruction_set.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace fastweights::kernels {
namespace {

InstructionSet widest() noexcept {
#if defined(FASTWEIGHTS_X86)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return InstructionSet::Avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return InstructionSet::Avx2;
#endif
  return InstructionSet::Baseline;
}

// what FASTWEIGHTS_ISA asks for, read once
struct Request {
  InstructionSet set = widest();
  const char* unknown = nullptr;
};

Request requested() noexcept {
  const char* value = std::getenv("FASTWEIGHTS_ISA");
  if (value == nullptr) return {};
  for (const InstructionSet set : {InstructionSet::Baseline, InstructionSet::Avx2, InstructionSet::Avx512}) {
    if (std::strcmp(value, name(set)) == 0) return {std::min(set, widest()), nullptr};
  }
  return {widest(), value};
}

const Request& request() noexcept {
  static const Request kRequest = requested();
  return kRequest;
}

std::atomic<InstructionSet>& in_use() noexcept {
  static std::atomic<InstructionSet> set = request().set;
  return set;
}

}  // namespace

const char* unknown_instruction_set() noexcept { return request().unknown; }

InstructionSet instruction_set() noexcept { return in_use().load(std::memory_order_relaxed); }

bool use(InstructionSet set) noexcept {
  if (set > widest()) return false;
  in_use() = set;
  return true;
}

const char* name(InstructionSet set) noexcept {
  if (set == InstructionSet::Avx512) return "avx512";
  return set == InstructionSet::Avx2 ? "avx2" : "baseline";
}

}  // namespace fastweights::kernels
