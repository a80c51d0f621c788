#define FW_ISA baseline
#include "ops/scan/cpu/normalise_impl.h"
#include "ops/scan/cpu/scan_impl.h"
