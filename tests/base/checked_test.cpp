#include "base/checked.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace fastweights {
namespace {

TEST(Checked, AProductThatDoesNotFitIsNone) {
  EXPECT_EQ(checked_product({3, 5, 7}), 105u);
  EXPECT_EQ(checked_product(std::vector<int64_t>{}), 1u);
  EXPECT_EQ(checked_product({3, 0}), 0u);
  EXPECT_EQ(checked_product(std::vector<int64_t>{1, 63995, 864758687727616}), std::nullopt);
  EXPECT_EQ(checked_product({SIZE_MAX, 2, 0}), std::nullopt) << "a zero hides nothing";
  EXPECT_EQ(checked_product({SIZE_MAX, 1}), SIZE_MAX);
}

}  // namespace
}  // namespace fastweights
