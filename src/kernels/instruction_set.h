#pragma once

namespace fastweights::kernels {

enum class InstructionSet { Baseline, Avx2, Avx512 };

/// The widest one that the processor has. FASTWEIGHTS_ISA=baseline|avx2|avx512 takes a narrower one; a wider
/// one than the processor has is not taken.
InstructionSet instruction_set() noexcept;

/// The value of FASTWEIGHTS_ISA if it names no instruction set, else null. check_instruction_set() in
/// tensor/runtime.h refuses it.
const char* unknown_instruction_set() noexcept;

/// Takes another one from now on, if the processor has it, and says whether it does. For tests, while no
/// kernel runs.
[[nodiscard]] bool use(InstructionSet set) noexcept;

const char* name(InstructionSet set) noexcept;

}  // namespace fastweights::kernels
