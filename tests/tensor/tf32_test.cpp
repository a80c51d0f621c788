#include "tensor/tf32.h"

#include "support/support.h"

namespace fastweights::testing {
namespace {

bool uses_tf32() {
  return at::globalContext().float32MatmulPrecision() != at::Float32MatmulPrecision::HIGHEST;
}

TEST(Tf32, AGuardRestoresWhatItFound) {
  ASSERT_FALSE(uses_tf32());
  {
    const Tf32Guard on(Tf32::Yes);
    EXPECT_TRUE(uses_tf32());
    {
      const Tf32Guard off(Tf32::No);
      EXPECT_FALSE(uses_tf32());
    }
    EXPECT_TRUE(uses_tf32());
  }
  EXPECT_FALSE(uses_tf32());
}

}  // namespace
}  // namespace fastweights::testing
