#pragma once

/// Tools: gradient checks, self-test, published models, tensors in files, properties of this machine.
#include "fastweights/environment.h"
#include "fastweights/gradcheck.h"
#include "fastweights/published.h"
#include "fastweights/safetensors.h"
#include "fastweights/selftest.h"
