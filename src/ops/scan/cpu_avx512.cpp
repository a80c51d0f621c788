#define FW_ISA avx512
#include "ops/scan/scan_impl.h"
