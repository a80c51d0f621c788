#include <regex>

#include "base/error.h"
#include "ops/scan_cases.h"
#include "support/support.h"

/// Every message of scan, and cases that its kernels leave to the definition.

namespace fastweights::testing {
namespace {

// samples of 5, 3, 0 and 1 steps with 2 heads of width 3
ScanInput good() { return given_input({.queries = 1}, at::kDouble); }

ScanOptions with_queries() { return {.rule = delta_pre(), .method = rk4()}; }

using InputChange = std::function<void(ScanInput&, ScanOptions&)>;

// the message after one thing was changed
std::string refused(const InputChange& change) {
  ScanInput input = good();
  ScanOptions options = with_queries();
  EXPECT_EQ(error_message([&] { scan(input, options); }), "");
  change(input, options);
  return error_message([&] { scan(input, options); });
}

TEST(ScanBadInput, GoodInputIsTaken) {
  EXPECT_EQ(refused([](ScanInput&, ScanOptions&) {}), "");
}

TEST(ScanBadInput, StartMustBeMatrices) {
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.w0 = i.w0[0]; }),
            "[scan] w0 must be floating-point [B, H, V, K], got [2, 3, 3]");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.w0 = Tensor(); }),
            "[scan] w0 must be floating-point [B, H, V, K], got nothing");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.w0 = i.w0.to(at::kLong); }),
            "[scan] w0 must be floating-point [B, H, V, K], got [4, 2, 3, 3]");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.w0 = i.w0.slice(1, 0, 0); }),
            "[scan] w0 has no elements: [4, 0, 3, 3]");
}

TEST(ScanBadInput, StepsMustBeAListOfTheSameType) {
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.dt = Tensor(); }),
            "[scan] dt must be [R], got nothing");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.dt = i.dt.unsqueeze(1); }),
            "[scan] dt must be [R], got [9, 1]");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.dt = i.dt.to(at::kFloat); }),
            "[scan] dt must be Double like w0, got Float");
}

TEST(ScanBadInput, OffsetsMustRiseFromNothingToAllRows) {
  const std::string shape = "[scan] offsets must be int64 [5]";
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.offsets = Tensor(); }), shape);
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.offsets = i.offsets.to(at::kInt); }), shape);
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.offsets = i.offsets.slice(0, 1); }), shape);
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.offsets = i.offsets.unsqueeze(0); }), shape);
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.offsets = i.offsets + 1; }),
            "[scan] offsets must run from 0 to 9, got 1 to 10");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) {
              i.offsets = at::tensor({0, 5, 8, 8, 7}, at::kLong);
            }),
            "[scan] offsets must run from 0 to 9, got 0 to 7");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) {
              i.offsets = at::tensor({0, 8, 5, 8, 9}, at::kLong);
            }),
            "[scan] offsets fall at sample 1");
}

// the default of the outputs is made from them
TEST(ScanBadInput, OffsetsAreCheckedBeforeTheyAreUsed) {
  const auto without_outputs = [](const Tensor& offsets) {
    return refused([&](ScanInput& i, ScanOptions&) {
      i.offsets = offsets;
      i.output_steps = i.output_offsets = Tensor();
    });
  };
  const std::string shape = "[scan] offsets must be int64 [5]";
  EXPECT_EQ(without_outputs(Tensor()), shape);
  EXPECT_EQ(without_outputs(at::tensor(3, at::kLong).squeeze()), shape);
  EXPECT_EQ(without_outputs(at::empty({0}, at::kLong)), shape);
  EXPECT_EQ(without_outputs(at::empty({2, 2}, at::kDouble)), shape);
}

TEST(ScanBadInput, ProgramsMustFitTheMatrices) {
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.k = Tensor(); }),
            "[scan] k must be [9, P, [2, 3]], got nothing");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.k = i.k.slice(0, 1); }),
            "[scan] k must be [9, P, [2, 3]], got [8, 1, 2, 3]");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.k = i.k.slice(3, 1); }),
            "[scan] k must be [9, P, [2, 3]], got [9, 1, 2, 2]");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.v = i.v.slice(2, 1); }),
            "[scan] v must be [9, P, [2, 3]], got [9, 1, 1, 3]");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.beta = i.beta.unsqueeze(3); }),
            "[scan] beta must be [9, P, [2]], got [9, 1, 2, 1]");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) {
              i.v = i.v.repeat({1, 3, 1, 1});
            }),
            "[scan] v must have 1 or 4 programs per step, got 3");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.beta = i.beta.slice(1, 1); }),
            "[scan] beta must have 1 or 4 programs per step, got 0");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.v = i.v.to(at::kFloat); }),
            "[scan] v must be Double like w0, got Float");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions& o) {
              o.method = Flow{};
              i.k = i.k.repeat({1, 4, 1, 1});
            }),
            "[scan] k must have 1 or 1 programs per step, got 4");
}

TEST(ScanBadInput, OutputsMustLieInTheirSamples) {
  const auto outputs = [](std::vector<int64_t> steps, std::vector<int64_t> offsets) {
    return refused([&](ScanInput& i, ScanOptions&) {
      i.output_steps = at::tensor(steps, at::kLong);
      i.output_offsets = at::tensor(offsets, at::kLong);
    });
  };
  EXPECT_EQ(outputs({5, 5, 0}, {0, 2, 2, 3, 3}), "");
  EXPECT_EQ(outputs({6}, {0, 1, 1, 1, 1}), "[scan] sample 0 has 5 steps, but W is requested after 6");
  EXPECT_EQ(outputs({2, -1}, {0, 1, 2, 2, 2}), "[scan] sample 1 has 3 steps, but W is requested after -1");
  EXPECT_EQ(outputs({4, 3}, {0, 2, 2, 2, 2}),
            "[scan] sample 0: output_steps must not fall, but 3 comes after 4");
  EXPECT_EQ(outputs({4, 3}, {0, 2, 2, 2}), "[scan] output_offsets must be int64 [5]");
  EXPECT_EQ(outputs({4, 3}, {0, 1, 1, 1, 1}), "[scan] output_offsets must run from 0 to 2, got 0 to 1");
  EXPECT_EQ(outputs({4, 3}, {0, 2, 1, 2, 2}), "[scan] output_offsets fall at sample 1");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.output_steps = i.output_steps.to(at::kInt); }),
            "[scan] output_steps must be int64 [M], got [4]");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.output_steps = i.output_steps.unsqueeze(1); }),
            "[scan] output_steps must be int64 [M], got [4, 1]");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.output_offsets = Tensor(); }),
            "[scan] output_offsets must be int64 [5]");
}

TEST(ScanBadInput, QueriesMustFitStagesAndSides) {
  const std::string shape = "[scan] q must be [9, 4, 1 or 2, 2, 3], got ";
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.q = i.q[0]; }), shape + "[4, 1, 2, 3]");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) {
              i.q = i.q.repeat({1, 1, 3, 1, 1});
            }),
            shape + "[9, 4, 3, 2, 3]");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.q = i.q.slice(1, 1); }), shape + "[9, 3, 1, 2, 3]");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.q = i.q.slice(4, 1); }), shape + "[9, 4, 1, 2, 2]");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.q = i.q.slice(2, 1); }), shape + "[9, 4, 0, 2, 3]");
  EXPECT_EQ(refused([](ScanInput& i, ScanOptions&) { i.q = i.q.to(at::kFloat); }),
            "[scan] q must be Double like w0, got Float");
}

TEST(ScanBadInput, RulesMustHaveASlopeAndForAFlowItsSolution) {
  EXPECT_EQ(refused([](ScanInput&, ScanOptions& o) { o.rule.slope = {}; }), "[scan] the rule has no slope");
  EXPECT_EQ(refused([&](ScanInput& i, ScanOptions& o) {
              o = {.rule = oja_softmax(), .method = Flow{}};
              i.q = Tensor();
            }),
            "[scan] rule oja_softmax has no flow; take a Runge-Kutta method");
}

TEST(ScanBadInput, GradientsOfGradientsAreRefused) {
  ScanInput input = good();
  input.v.set_requires_grad(true);
  const Tensor w = scan(input, with_queries()).w;
  EXPECT_EQ(error_message([&] { w.sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true); }),
            "[scan] gradients of gradients are not available; compute the gradient without create_graph");
}

TEST(ScanBadInput, TensorsAreOnOneDevice) {
  const auto away = [](Tensor& x) { x = at::empty(x.sizes(), x.options().device(at::kMeta)); };
  EXPECT_EQ(refused([&](ScanInput& i, ScanOptions&) { away(i.dt); }),
            "[scan] dt must be on cpu like w0, got meta");
  EXPECT_EQ(refused([&](ScanInput& i, ScanOptions&) { away(i.k); }),
            "[scan] k must be on cpu like w0, got meta");
}

TEST(ScanBadInput, CudaIsRefused) {
  EXPECT_EQ(refused([](ScanInput&, ScanOptions& o) { o.backend = Backend::Cuda; }),
            "[scan] backend cuda cannot be used: tensors are on cpu");
}

}  // namespace
}  // namespace fastweights::testing
