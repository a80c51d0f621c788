#include "fastweights/scan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/scan_cases.h"
#include "support/support.h"

/// The kernels against the definition in float64: outputs and all gradients.

namespace fastweights::testing {
namespace {

// around the longest distance of two kept matrices
const std::vector<int64_t> kRagged = {65, 1, 64, 0, 2, 63};

// the definition is the slow part: it is computed once for both types and all numbers of threads
void expect_equivalent(const ScanCase& c, const std::vector<int>& thread_counts = {}) {
  SCOPED_TRACE(c.name());
  const ScanResult expected = definition(c);
  ASSERT_EQ(expected.backend, "reference");
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    ScanResult one;
    {
      const Threads threads(1);
      one = run(c, type, Backend::Cpu);
    }
    ASSERT_EQ(one.backend.rfind("cpu-", 0), 0u) << one.backend;
    expect_near(c, one, expected, type);
    for (const int count : thread_counts) {
      const Threads threads(count);
      expect_same_bits(run(c, type, Backend::Cpu), one);
    }
  }
}

// choices that go along with others: each one meets every value of them sooner or later
ScanCase with_variety(ScanCase c, size_t n) {
  const auto rows = [](size_t bit) { return bit % 2 ? Rows::PerStage : Rows::Shared; };
  if (std::holds_alternative<Tableau>(c.method)) {
    c.keys = rows(n);
    c.values = rows(n / 2);
    c.rates = rows(n / 3);
  }
  c.outputs_at = n % 5 < 2 ? OutputsAt::Mixed : OutputsAt::Ends;
  c.queries = static_cast<int64_t>(n % 3);
  c.read = n % 7 < 4 ? Read::Plain : Read::Transposed;
  c.reads = in_turn(std::vector{ScanReads::Weights, ScanReads::Both, ScanReads::Slopes}, n / 2);
  c.seed = n + 1;
  return c;
}

// heads that the definition can afford at a width
int64_t heads_for(int64_t width, size_t n) {
  if (width <= 8) return in_turn(std::vector<int64_t>{1, 17, 4, 33, 3, 16}, n);
  return width <= 23 ? in_turn(std::vector<int64_t>{3, 1, 4}, n) : 1;
}

TEST(Scan, EveryRuleAtEveryWidthIsItsDefinition) {
  size_t n = 0;
  for (const Rule& rule : all_rules()) {
    for (const int64_t width : kScanWidths) {
      const ScanCase c = {.rule = rule,
                          .method = in_turn(fused_methods(rule), n * 3),
                          .width = width,
                          .heads = heads_for(width, n),
                          .steps = kRagged};
      expect_equivalent(with_variety(c, n), {static_cast<int>(n % 2) + 2});
      ++n;
    }
  }
}

TEST(Scan, EveryRuleWithEveryMethodAndAnyMixOfProgramsIsItsDefinition) {
  size_t n = 0;
  for (const Rule& rule : all_rules()) {
    for (const Method& method : fused_methods(rule)) {
      for (const size_t mix : {0, 1, 2, 3, 4, 5, 6, 7}) {
        ScanCase c = with_variety({.rule = rule, .method = method, .width = 3, .heads = 3}, n++);
        if (c.stages() == 1 && mix > 0) break;
        c.keys = mix & 1 ? Rows::PerStage : Rows::Shared;
        c.values = mix & 2 ? Rows::PerStage : Rows::Shared;
        c.rates = mix & 4 ? Rows::PerStage : Rows::Shared;
        expect_equivalent(c);
      }
    }
  }
}

TEST(Scan, EveryNumberOfHeadsIsItsDefinition) {
  size_t n = 0;
  for (const Rule& rule : all_rules()) {
    for (const int64_t heads : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33}) {
      const ScanCase c = {
          .rule = rule, .method = heun2(), .width = 4, .heads = heads, .steps = {7, 9, 0, 7, 1}};
      expect_equivalent(with_variety(c, n), {static_cast<int>(n % 2) + 2});
      ++n;
    }
  }
}

TEST(Scan, EveryReadOfEveryRuleIsItsDefinition) {
  uint64_t seed = 1;
  for (const Rule& rule : all_rules()) {
    for (const Tableau& method : {euler(), rk4_classic(), bosh3()}) {
      for (const Rows rows : {Rows::Shared, Rows::PerStage}) {
        for (const Read read : {Read::Plain, Read::Transposed}) {
          for (const ScanReads reads : {ScanReads::Weights, ScanReads::Slopes, ScanReads::Both}) {
            ScanCase c = {.rule = rule, .method = method, .width = 5, .read = read, .reads = reads};
            c.keys = c.values = rows;
            c.queries = static_cast<int64_t>(seed % 2 + 1);
            c.seed = seed++;
            expect_equivalent(c);
          }
        }
      }
    }
  }
}

TEST(Scan, OutputsThatNobodyUsesHaveNoSayInGradients) {
  for (const Rule& rule : all_rules()) {
    const ScanCase c = {.rule = rule, .queries = 2, .reads = ScanReads::Both, .outputs_at = OutputsAt::Mixed};
    const ScanInput input = given_input(c, at::kDouble);
    const ScanOutput all = random_weights(input, options_of(c, Backend::Auto));
    for (const size_t used : {1, 2, 3, 4, 5, 6}) {
      SCOPED_TRACE(message(c.name(), ", used ", used));
      ScanOutput weights;
      if (used & 1) weights.w = all.w;
      if (used & 2) weights.y = all.y;
      if (used & 4) weights.dy = all.dy;
      expect_near(c, run(input, options_of(c, Backend::Cpu), weights),
                  run(input, options_of(c, Backend::Reference), weights), at::kDouble);
    }
  }
}

TEST(Scan, LongSequencesAreTheirDefinition) {
  size_t n = 0;
  for (const Rule& rule : all_rules()) {
    for (const int64_t width : {in_turn(std::vector<int64_t>{4, 5, 7}, n), int64_t{16}}) {
      ScanCase c = {.rule = rule, .width = width, .heads = 1, .steps = {1000, 2}};
      c.method = in_turn(std::vector{heun2(), rk4(), euler()}, n);
      c.keys = n % 2 ? Rows::PerStage : Rows::Shared;
      c.outputs_at = n % 2 ? OutputsAt::Mixed : OutputsAt::Ends;
      c.seed = ++n;
      expect_equivalent(c);
    }
  }
}

// all eight combinations of forms, masks and numbers of features in turn
ScanCase made(ScanCase c, size_t n) {
  MadeOf of;
  of.forms = {.key = n & 1 ? KeyForm::Raw : KeyForm::Softmax,
              .value = n & 2 ? ValueForm::Raw : ValueForm::Tanh,
              .rate = n & 4 ? LearningRate::Raw : LearningRate::Sigmoid};
  of.mask = n % 3 ? Mask::Factors : Mask::None;
  // keys and values of the same features, of some of them, of different ones
  of.keys = in_turn(std::vector<int64_t>{3, 1, 4, 7}, n);
  of.values = in_turn(std::vector<int64_t>{3, 5, 1}, n);
  of.features =
      std::max(of.keys, of.values) + static_cast<int64_t>(n % 5 < 2 ? std::min(of.keys, of.values) : 0);
  c = with_variety(std::move(c), n);
  c.queries = 0;
  c.made = of;
  return c;
}

TEST(ScanFeatures, TheReferenceIsTheDefinition) {
  for (size_t n = 0; n < 24; ++n) {
    const ScanCase c = made({.rule = in_turn(all_rules(), n), .method = in_turn(fused_methods(), n)}, n);
    SCOPED_TRACE(c.name());
    const ScanResult got = run(c, at::kDouble, Backend::Reference);
    EXPECT_EQ(got.backend, "reference");
    expect_near(c, got, definition(c), at::kDouble);
  }
}

TEST(ScanFeatures, EveryRuleAtEveryWidthIsItsDefinition) {
  size_t n = 0;
  for (const Rule& rule : all_rules()) {
    for (const int64_t width : kScanWidths) {
      const ScanCase c = {.rule = rule,
                          .method = in_turn(fused_methods(rule), n * 3 + 1),
                          .width = width,
                          .heads = heads_for(width, n + 1),
                          .steps = kRagged};
      expect_equivalent(made(c, n), {static_cast<int>(n % 2) + 2});
      ++n;
    }
  }
}

TEST(ScanFeatures, EveryRuleWithEveryMethodAndAnyMixOfProgramsIsItsDefinition) {
  size_t n = 0;
  for (const Rule& rule : all_rules()) {
    for (const Method& method : fused_methods(rule)) {
      for (const size_t mix : {0, 1, 2, 3}) {
        ScanCase c = made({.rule = rule, .method = method, .width = 3, .heads = 3}, n++);
        if (c.stages() == 1 && mix > 0) break;
        c.keys = mix & 1 ? Rows::PerStage : Rows::Shared;
        c.values = mix & 2 ? Rows::PerStage : Rows::Shared;
        if (c.stages() > 1 && mix == 0) c.made->rows = n % 2 ? Rows::PerStage : Rows::Shared;
        expect_equivalent(c);
      }
    }
  }
}

TEST(ScanFeatures, EveryFormOfEveryRuleIsItsDefinition) {
  for (const Rule& rule : all_rules()) {
    for (size_t n = 0; n < 24; ++n) {
      ScanCase c = made({.rule = rule, .method = midpoint(), .width = 5, .heads = 17}, n);
      expect_equivalent(c);
    }
  }
}

// products of features are worked on in tiles, and some steps at a time
TEST(ScanFeatures, AnyNumberOfFeaturesAndStepsIsItsDefinition) {
  size_t n = 0;
  for (const int64_t features : {1, 2, 3, 4, 5, 8, 17, 70}) {
    for (const int64_t steps : {1, 7, 8, 9, 31, 32, 33, 70}) {
      ScanCase c = made({.rule = in_turn(all_rules(), n), .width = 5, .heads = 3, .steps = {steps, 4}}, n);
      c.made->keys = c.made->values = c.made->features = features;
      ++n;
      expect_equivalent(c);
    }
  }
}

// more groups of lanes than are summed up alone, of few and of many heads
TEST(ScanFeatures, BatchesOfManySamplesAreTheirDefinition) {
  for (const int64_t heads : {3, 17}) {
    ScanCase c = {.rule = oja(),
                  .method = heun2(),
                  .heads = heads,
                  .steps = std::vector<int64_t>(heads == 3 ? 400 : 70)};
    for (size_t b = 0; b < c.steps.size(); ++b) c.steps[b] = static_cast<int64_t>(b * 5 % 4);
    expect_equivalent(c, {2, 3});
    c.made = MadeOf{.mask = Mask::Factors};
    expect_equivalent(c, {2, 3});
  }
}

TEST(ScanFeatures, LongSequencesAreTheirDefinition) {
  size_t n = 0;
  for (const Rule& rule : all_rules()) {
    ScanCase c = made({.rule = rule, .method = midpoint(), .width = 5, .heads = 1, .steps = {1000, 2}}, n++);
    c.made->forms.rate = LearningRate::Sigmoid;
    expect_equivalent(c);
  }
}

}  // namespace
}  // namespace fastweights::testing
