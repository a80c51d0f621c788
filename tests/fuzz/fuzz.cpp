#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "formats.h"

/// libFuzzer on one format, which the environment names: FASTWEIGHTS_FORMAT=csv fuzz_data FILE. Without a
/// name it lists the formats.

namespace {

const fuzz::Format& chosen() {
  static const fuzz::Format kFormat = [] {
    const char* name = std::getenv("FASTWEIGHTS_FORMAT");
    for (const fuzz::Format& format : fuzz::formats()) {
      if (!name) std::puts(format.name.c_str());
      if (name && format.name == name) return format;
    }
    std::exit(name ? 2 : 0);
  }();
  return kFormat;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  chosen();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  // an input that is rejected is worth keeping, too: the way to the error counts
  fuzz::accepts(chosen(), {reinterpret_cast<const char*>(bytes), size});
  return 0;
}
