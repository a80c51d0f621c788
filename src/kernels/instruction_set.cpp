#include "kernels/instruction_set.h"

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

InstructionSet chosen() noexcept {
  const char* wanted = std::getenv("FASTWEIGHTS_ISA");
  if (wanted) {
    for (const InstructionSet set :
         {InstructionSet::Baseline, InstructionSet::Avx2, InstructionSet::Avx512}) {
      if (std::strcmp(wanted, name(set)) == 0 && set <= widest()) return set;
    }
  }
  return widest();
}

std::atomic<InstructionSet>& in_use() noexcept {
  static std::atomic<InstructionSet> set = chosen();
  return set;
}

}  // namespace

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
