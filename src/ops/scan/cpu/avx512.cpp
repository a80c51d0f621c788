#define FW_ISA avx512
#include "ops/scan/cpu/normalise_impl.h"
#include "ops/scan/cpu/scan_impl.h"
