#include "../../cli/seed_list.h"

#include "support/support.h"

namespace fastweights::cli {
namespace {

using Seeds = std::vector<int64_t>;

TEST(SeedList, RangesAndListsMayBeMixed) {
  EXPECT_EQ(seed_list("1..5"), (Seeds{1, 2, 3, 4, 5}));
  EXPECT_EQ(seed_list("1,2,7"), (Seeds{1, 2, 7}));
  EXPECT_EQ(seed_list("7,0..2,5..5"), (Seeds{7, 0, 1, 2, 5}));
  EXPECT_EQ(seed_list("9223372036854775806..9223372036854775807").size(), 2u);
}

TEST(SeedList, AnythingElseIsRefused) {
  for (const char* text : {"",      "3",      "4..4", "1,",   ",1",
                           "1,,2",  "5..1",   "1..",  "..3",  "1...3",
                           "-1..3", "1,-2",   "a,b",  "1 ,2", "1.5,2",
                           "1,2,1", "1..3,2", "1-5",  "1;2",  "99999999999999999999,1"}) {
    EXPECT_EQ(
        testing::error_message([&] { seed_list(text); }),
        std::string("expected two or more different numbers, such as 1..5 or 1,2,7, got '") + text + "'");
  }
  for (const char* text : {"1..1001", "0..9223372036854775807", "1..1000,2000"})
    EXPECT_NE(testing::error_message([&] { seed_list(text); }).find("expected at most 1000 seeds"),
              std::string::npos)
        << text;
}

}  // namespace
}  // namespace fastweights::cli
