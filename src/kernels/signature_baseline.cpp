#define FW_ISA baseline
#include "kernels/signature_impl.h"
