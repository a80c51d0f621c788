#include "fastweights/task.h"
#include "support/support.h"
#include "train/train_cases.h"

namespace fastweights {
namespace {

using testing::error_message;

TEST(PreparedData, SomeSeriesAreScaledAsASetOfTheirOwn) {
  const DataSet data = two_classes(8);
  const Preparation p = fit_preparation(data);
  const PreparedData got = prepare(data, {5, 2}, p), expected = prepare(select_series(data, {5, 2}), p);
  EXPECT_EQ(got.ids, expected.ids);
  for (const auto field :
       {&PreparedData::times, &PreparedData::offsets, &PreparedData::labels, &PreparedData::targets})
    EXPECT_TRUE(at::equal(got.*field, expected.*field));
  EXPECT_TRUE(at::allclose(got.values, expected.values, 0, 0, /*equal_nan=*/true));
}

TEST(PreparedData, EveryValueIsScaledAndClippedByItself) {
  const DataSet data = two_classes(2000);
  const Preparation p = fit_preparation(data);
  const Tensor values = prepare(data, p).values;
  ASSERT_GT(values.size(0), 2 * 1024);
  for (int64_t i = 0; i < values.size(0); ++i) {
    for (int64_t c = 0; c < 2; ++c) {
      const auto at = static_cast<size_t>(2 * i + c);
      const double x = p.channel_scales[static_cast<size_t>(c)](data.values[at]);
      const float expected = static_cast<float>(std::abs(x) > 10 ? std::copysign(10, x) : x);
      const float got = values.data_ptr<float>()[at];
      ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << i << ", " << c;
    }
  }
}

TEST(PreparedData, OtherNamesAndSamplesAreRefused) {
  const DataSet data = two_classes(4);
  const Preparation p = fit_preparation(data);
  EXPECT_EQ(error_message([&] { prepare(data, {4}, p); }), "[batch] sample 4 is out of range for 4 samples");
  DataSet other = data;
  other.head.targets = {};
  EXPECT_EQ(error_message([&] { prepare(other, p); }),
            "[prepare] the data have other static features or targets than the preparation");
  other.head.channels[0] = "z";
  EXPECT_EQ(error_message([&] { prepare(other, p); }),
            "[prepare] the data have other channels than the preparation");
}

}  // namespace
}  // namespace fastweights
