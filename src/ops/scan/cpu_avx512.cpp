#define FW_ISA avx512
#include "ops/scan/normalise_impl.h"
#include "ops/scan/scan_impl.h"
