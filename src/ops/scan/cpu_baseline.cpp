#define FW_ISA baseline
#include "ops/scan/normalise_impl.h"
#include "ops/scan/scan_impl.h"
