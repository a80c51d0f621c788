#pragma once

/// The core: tensors, ragged series, rules, control paths, log-signatures, solvers, scan, models. Separate
/// headers: data.h (data sets), train.h (training), tools.h (checks and files), module.h (models as
/// torch::nn::Module), and network.h (custom architectures).
#include "fastweights/architecture.h"
#include "fastweights/baselines.h"
#include "fastweights/control.h"
#include "fastweights/fields.h"
#include "fastweights/fitted.h"
#include "fastweights/model.h"
#include "fastweights/model_config.h"
#include "fastweights/rule.h"
#include "fastweights/scan.h"
#include "fastweights/solve.h"
#include "fastweights/tableau.h"
#include "fastweights/tensor.h"
