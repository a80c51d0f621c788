#include "environment/cuda_device.h"

namespace fastweights {

BackendInfo cuda_backend() {
  return {"cuda", false,
          "this build has no CUDA; configure with the preset 'cuda' where nvcc and LibTorch for CUDA are "
          "installed"};
}

}  // namespace fastweights
