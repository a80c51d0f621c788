#define FW_ISA avx2
#include "ops/scan/cpu/normalise_impl.h"
#include "ops/scan/cpu/scan_impl.h"
