#pragma once

#include <string>

namespace fastweights {

/// The time of day in this form of strftime.
std::string utc_now(const char* form);

}  // namespace fastweights
