#include "train/clock.h"

#include <ctime>

namespace fastweights {

std::string utc_now(const char* form) {
  const std::time_t time = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&time, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, form, &parts)};
}

}  // namespace fastweights
