#define FW_ISA avx2
#include "ops/scan/scan_impl.h"
