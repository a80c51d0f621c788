#define FW_ISA avx2
#include "ops/scan/normalise_impl.h"
#include "ops/scan/scan_impl.h"
