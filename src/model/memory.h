#pragma once

#include "model/block.h"

/// What a run of the engine will hold, and blocks of time that keep it within a limit.

namespace fastweights {

enum class Recording { No, Yes };

/// Block lengths for solver.memory_limit of the task's model, or for a limit of our own where that is 0.
MemoryPlan plan_memory(const BlockTask& task, Recording recording);

/// The same for steps on a GPU; without a limit, most of the memory that was free when the first one was
/// made.
MemoryPlan plan_device_memory(const BlockTask& task, Recording recording);

}  // namespace fastweights
