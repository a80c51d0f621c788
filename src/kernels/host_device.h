#pragma once

/// Marks functions that the CPU's loops and a GPU's threads share.
#if defined(__CUDACC__)
#define FW_HOST_DEVICE __host__ __device__
#else
#define FW_HOST_DEVICE
#endif
