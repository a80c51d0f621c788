#pragma once

namespace fastweights {

/// Reference: compositions of LibTorch operations, the definition. Cpu, Cuda: fused kernels. Auto takes the
/// fastest one that supports the input; requesting one that does not is an error with the reason.
enum class Backend { Auto, Reference, Cpu, Cuda };

}  // namespace fastweights
