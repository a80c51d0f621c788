#include "fastweights/scan.h"
#include "ops/scan_cases.h"
#include "support/support.h"

/// Cases in which scan falls back to the reference path, and why.

namespace fastweights::testing {
namespace {

struct Fallback {
  ScanInput input;
  ScanOptions options;
};

// the kernels say why they refuse, an explicit request is an error, and Auto falls back to the reference path
void expect_fallback(const Fallback& f, const std::string& why) {
  ScanOptions options = f.options;
  EXPECT_EQ(scan_refusal(f.input, options), why);
  options.backend = Backend::Cpu;
  EXPECT_EQ(error_message([&] { scan(f.input, options); }), "[scan] backend cpu cannot be used: " + why);
  const ScanOutput automatic = scan(f.input, f.options);
  EXPECT_EQ(automatic.backend, "reference");
  options.backend = Backend::Reference;
  EXPECT_TRUE(at::equal(automatic.w, scan(f.input, options).w));
}

Fallback fallback(const ScanCase& c) { return {given_input(c, at::kDouble), options_of(c, Backend::Auto)}; }

TEST(ScanFallback, WhatTheKernelsCanIsNotRefused) {
  for (const Rule& rule : all_rules()) {
    for (const Method& method : fused_methods(rule)) {
      const Fallback f = fallback({.rule = rule, .method = method, .width = 64, .heads = 1, .steps = {1}});
      EXPECT_EQ(scan_refusal(f.input, f.options), "");
    }
  }
}

// twice the step of a method is not its step, but a good method of many stages comes near one of few: the
// result is compared with small steps of rk4 by the kernels
TEST(ScanFallback, MethodsOfManyStages) {
  for (const Rule& rule : all_rules()) {
    Fallback f = fallback({.rule = rule, .method = dopri5()});
    expect_fallback(f, "method dopri5 has 7 stages, more than 4");
    const Tensor w = scan(f.input, f.options).w;
    ScanInput fine = f.input;
    for (Tensor* rows : {&fine.k, &fine.v, &fine.beta, &fine.dt}) *rows = rows->repeat_interleave(16, 0);
    fine.dt = fine.dt / 16;
    fine.offsets = fine.offsets * 16;
    fine.output_steps = fine.output_steps * 16;
    const ScanOutput small = scan(fine, {.rule = rule, .method = rk4(), .backend = Backend::Cpu});
    // an error of dopri5: steps of 1 or less in rates below 1
    EXPECT_LT(relative_error(w, small.w), 1e-4) << rule.name;
  }
}

TEST(ScanFallback, WideHeads) {
  expect_fallback(fallback({.width = 65, .heads = 1, .steps = {2}}), "heads are 65 wide, more than 64");
}

// half of a matrix of zeros: what its rows and columns do not reach stays zero
TEST(ScanFallback, KeysAndValuesOfDifferentWidths) {
  for (const Rule& rule : {hebb(), delta_pre(), delta_post()}) {
    const ScanCase c = {.rule = rule, .width = 4};
    ScanInput square = given_input(c, at::kDouble);
    square.w0.slice(2, 2).zero_();
    square.v.slice(3, 2).zero_();
    ScanInput input = square;
    input.v = square.v.slice(3, 0, 2);
    input.w0 = square.w0.slice(2, 0, 2);
    expect_fallback({input, options_of(c, Backend::Auto)}, "values are 2 wide and keys 4");
    const Tensor expected = scan(square, options_of(c, Backend::Cpu)).w.slice(2, 0, 2);
    EXPECT_LT(relative_error(scan(input, options_of(c, Backend::Auto)).w, expected), 1e-14) << rule.name;
  }
}

// a slope of another form than the built-in ones
RuleSlope forgetting_slope() {
  return [](const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& w) {
    return outer_product(beta * v, k) - 0.1 * w;
  };
}

TEST(ScanFallback, RulesWithTheirOwnSlope) {
  const Fallback f = fallback({.rule = {.name = "mine", .slope = forgetting_slope()}});
  expect_fallback(f, "rule mine has no kernel");
}

TEST(ScanFallback, TheNameOfARuleDoesNotChooseItsKernel) {
  // a slope of one's own under a built-in name runs as written
  const Fallback mine = fallback({.rule = {.name = "mine", .slope = forgetting_slope()}});
  Fallback disguised = mine;
  disguised.options.rule.name = "delta_pre";
  expect_fallback(disguised, "rule delta_pre has no kernel");
  EXPECT_TRUE(at::equal(scan(disguised.input, disguised.options).w, scan(mine.input, mine.options).w));
  // also where it replaces that of a copy
  Fallback replaced = mine;
  replaced.options.rule = delta_pre();
  replaced.options.rule.slope = forgetting_slope();
  expect_fallback(replaced, "rule delta_pre has no kernel");
  EXPECT_TRUE(at::equal(scan(replaced.input, replaced.options).w, scan(mine.input, mine.options).w));
  // and a renamed copy keeps its kernel
  for (const Rule& rule : all_rules()) {
    const Fallback known = fallback({.rule = rule});
    Fallback renamed = known;
    renamed.options.rule.name = "mine";
    renamed.options.backend = Backend::Cpu;
    EXPECT_TRUE(at::equal(scan(renamed.input, renamed.options).w, scan(known.input, known.options).w))
        << rule.name;
  }
}

TEST(ScanFallback, TheFlowAsksTheKernelAndNotTheName) {
  Fallback f = fallback({.rule = delta_pre(), .method = Flow{}});
  f.options.rule.name = "mine";
  EXPECT_NE(scan(f.input, f.options).backend, "reference");
  f.options.rule = {.name = "delta_pre", .slope = forgetting_slope()};
  EXPECT_EQ(error_message([&] { scan(f.input, f.options); }),
            "[scan] rule delta_pre has no flow; take a Runge-Kutta method");
}

TEST(ScanFallback, OtherElementTypes) {
  ScanCase c = {.rule = hebb()};
  ScanInput input = given_input(c, at::kDouble);
  for (Tensor* x : {&input.k, &input.v, &input.beta, &input.dt, &input.w0}) *x = x->to(at::kBFloat16);
  expect_fallback({input, options_of(c, Backend::Auto)}, "tensors are BFloat16, not float32 or float64");
  const Tensor expected = run(c, at::kDouble, Backend::Cpu).at("w");
  // 8 bits in five steps
  EXPECT_LT(relative_error(scan(input, options_of(c, Backend::Auto)).w, expected), 5 * 0x1p-8);
}

// the kernels of features take the same cases, and the definition does the others
TEST(ScanFallback, FeaturesFallBackLikewise) {
  const ScanCase c = {.method = dopri5(), .made = MadeOf()};
  const ScanFeatures input = features_input(c, at::kDouble);
  const auto with = [&](Backend backend) {
    return scan_features(input, c.made->forms, options_of(c, backend));
  };
  EXPECT_EQ(error_message([&] { with(Backend::Cpu); }),
            "[scan] backend cpu cannot be used: method dopri5 has 7 stages, more than 4");
  EXPECT_EQ(with(Backend::Auto).backend, "reference");
  EXPECT_LT(relative_error(with(Backend::Auto).w, definition(c).at("w")), 1e-14);
}

// no step at all: W is where it was, and reads are there without a row
TEST(ScanFallback, BatchesWithoutAStepHaveTheSameShapesEverywhere) {
  ScanCase c = {.steps = {0, 0}, .queries = 1, .reads = ScanReads::Both};
  const ScanResult kernels = run(c, at::kDouble, Backend::Cpu),
                   reference = run(c, at::kDouble, Backend::Reference);
  ASSERT_EQ(kernels.entries.size(), reference.entries.size());
  for (size_t i = 0; i < kernels.entries.size(); ++i) {
    EXPECT_EQ(kernels.entries[i].name, reference.entries[i].name);
    EXPECT_TRUE(at::equal(kernels.entries[i].tensor, reference.entries[i].tensor)) << kernels.entries[i].name;
  }
  EXPECT_TRUE(at::equal(kernels.at("w"), given_input(c, at::kDouble).w0));
}

}  // namespace
}  // namespace fastweights::testing
