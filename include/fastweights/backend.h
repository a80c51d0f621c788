#pragma once

namespace fastweights {

/// Who computes. Reference: compositions of LibTorch operations, which are the definition. Cpu, Cuda: fused
/// kernels. Auto takes the fastest one that can; to ask for one that cannot is an error that says why.
enum class Backend { Auto, Reference, Cpu, Cuda };

}  // namespace fastweights
