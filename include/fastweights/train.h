#pragma once

/// Training: tasks and metrics, the trainer, runs in folders, cross-validation and comparison.
#include "fastweights/data.h"
#include "fastweights/experiment.h"
#include "fastweights/optimise.h"
#include "fastweights/run.h"
#include "fastweights/task.h"
#include "fastweights/trained_model.h"
#include "fastweights/trainer.h"
