#define FW_ISA baseline
#include "ops/scan/scan_impl.h"
