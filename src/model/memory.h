#pragma once

#include "model/block.h"

/// What a run of the engine will hold, and blocks of time that keep it within a limit.

namespace fastweights {

enum class Recording { No, Yes };

/// Block lengths for solver.memory_limit of the task's model. Without one the limit is a constant on the CPU,
/// and on a GPU a share of the memory that was free when the model was moved there.
MemoryPlan plan_memory(const BlockTask& task, Recording recording);

}  // namespace fastweights
