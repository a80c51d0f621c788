#pragma once

/// Everything: continuous-time fast weight programmers and the numerics under them.
#include "fastweights/control.h"
#include "fastweights/environment.h"
#include "fastweights/error.h"
#include "fastweights/logsignature.h"
#include "fastweights/optimise.h"
#include "fastweights/ragged.h"
#include "fastweights/safetensors.h"
#include "fastweights/selftest.h"
#include "fastweights/solve.h"
#include "fastweights/tableau.h"
#include "fastweights/tensor.h"
#include "fastweights/time.h"
