#include "tensor/runtime.h"

#include "support/support.h"

namespace fastweights::testing {
namespace {

TEST(Tf32, AScopeRestoresWhatItFound) {
  ASSERT_FALSE(uses_tf32());
  {
    const Tf32Scope on(Tf32::Yes);
    EXPECT_TRUE(uses_tf32());
    {
      const Tf32Scope off(Tf32::No);
      EXPECT_FALSE(uses_tf32());
    }
    EXPECT_TRUE(uses_tf32());
  }
  EXPECT_FALSE(uses_tf32());
}

}  // namespace
}  // namespace fastweights::testing
