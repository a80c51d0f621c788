#define FW_ISA avx2
#include "kernels/signature_impl.h"
