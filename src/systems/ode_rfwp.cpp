#include "fastweights/error.h"
#include "systems/system.h"

namespace fastweights {

std::shared_ptr<const ComparedSystem> make_ode_rfwp(const ModelConfig&, const ModelOptions&) {
  FW_CHECK(false, "[model] not there yet");
}

}  // namespace fastweights
