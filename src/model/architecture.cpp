#include "fastweights/architecture.h"

#include "base/error.h"

namespace fastweights {

void Architecture::refuse(const Architecture& expected) const {
  FW_CHECK(false, "[model] expected architecture ", expected.name(), ", got ", name());
}

}  // namespace fastweights
