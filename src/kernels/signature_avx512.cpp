#define FW_ISA avx512
#include "kernels/signature_impl.h"
