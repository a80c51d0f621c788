#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "kernels/instruction_set.h"
#include "ops/scan_cases.h"

/// The table of all rules, methods, widths, lengths, ragged and not, numbers of threads and instruction sets.
/// It takes minutes, so that only some lines of it are run unless FASTWEIGHTS_WHOLE_TABLE is set.

namespace fastweights::testing {
namespace {

// a sample of each length; around the longest distance of two kept matrices, and far beyond it
const std::vector<int64_t> kLengths = {65, 1, 64, 0, 2, 63, 1000};

const kernels::InstructionSet kSets[] = {kernels::InstructionSet::Baseline, kernels::InstructionSet::Avx2,
                                         kernels::InstructionSet::Avx512};

// the rows of one sample, as a batch of two that are alike
ScanInput twice(const ScanInput& input, int64_t sample) {
  const int64_t first = input.offsets[sample].item<int64_t>(),
                last = input.offsets[sample + 1].item<int64_t>();
  const auto rows = [&](const Tensor& x) {
    const Tensor here = x.slice(0, first, last);
    return at::cat({here, here}, 0);
  };
  ScanInput two;
  two.k = rows(input.k);
  two.v = rows(input.v);
  two.beta = rows(input.beta);
  two.dt = rows(input.dt);
  two.w0 = input.w0.slice(0, sample, sample + 1).repeat({2, 1, 1, 1});
  two.offsets = at::tensor({int64_t{0}, last - first, 2 * (last - first)}, at::kLong);
  two.output_steps = at::tensor({last - first, last - first}, at::kLong);
  two.output_offsets = at::tensor({0, 1, 2}, at::kLong);
  return two;
}

// what a ragged batch gave for one sample, as that batch of two
ScanResult twice(const ScanResult& ragged, const ScanInput& input, int64_t sample) {
  const int64_t first = input.offsets[sample].item<int64_t>(),
                last = input.offsets[sample + 1].item<int64_t>();
  ScanResult two = {{}, ragged.backend};
  for (const ScanResult::Entry& entry : ragged.entries) {
    const bool per_sample = entry.name == "w" || entry.name == "gradient of w0";
    const Tensor here =
        per_sample ? entry.tensor.slice(0, sample, sample + 1) : entry.tensor.slice(0, first, last);
    two.entries.push_back({entry.name, at::cat({here, here}, 0), entry.scale});
  }
  return two;
}

void expect_the_same_alone(const ScanCase& c, const ScanResult& ragged, at::ScalarType type) {
  const ScanInput input = given_input(c, type);
  const ScanOptions options = options_of(c, Backend::Cpu);
  const Tensor weights = random_weights(input, options, c.seed).w;
  for (int64_t sample = 0; sample < static_cast<int64_t>(c.steps.size()); ++sample) {
    SCOPED_TRACE(c.steps[static_cast<size_t>(sample)]);
    ScanOutput here;
    here.w = weights.slice(0, sample, sample + 1).repeat({2, 1, 1, 1});
    expect_same_bits(run(twice(input, sample), options, here), twice(ragged, input, sample));
  }
}

// the definition, by far the slowest part, is computed once
void expect_as_reference(const ScanCase& c) {
  SCOPED_TRACE(c.name());
  const ScanResult expected = definition(c);
  ASSERT_EQ(expected.backend, "reference");
  for (const kernels::InstructionSet set : kSets) {
    if (!kernels::use(set)) continue;
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(message(kernels::name(set), " in ", type));
      ScanResult first;
      for (const int count : {1, 2, 3}) {
        const Threads threads(count);
        const ScanResult got = run(c, type, Backend::Cpu);
        ASSERT_EQ(got.backend, std::string("cpu-") + kernels::name(set));
        if (count == 1) {
          expect_near(c, got, expected, type);
          first = got;
        }
        expect_same_bits(got, first);
        expect_the_same_alone(c, first, type);
      }
    }
  }
}

// every line of the table if all are requested, otherwise some of them, different ones for each rule
int64_t lines_between() { return std::getenv("FASTWEIGHTS_WHOLE_TABLE") ? 1 : 12; }

struct RuleAndMethod {
  Rule rule;
  Method method;

  std::string name() const {
    const Tableau* tableau = std::get_if<Tableau>(&method);
    return rule.name + "_with_" + (tableau ? tableau->name : "flow");
  }
};

std::vector<RuleAndMethod> rules_and_methods() {
  std::vector<RuleAndMethod> all;
  for (const Rule& rule : all_rules()) {
    for (const Method& method : fused_methods(rule)) all.push_back({rule, method});
  }
  return all;
}

class ScanTable : public ::testing::TestWithParam<size_t> {};

TEST_P(ScanTable, EveryWidthAndLengthIsItsDefinition) {
  const RuleAndMethod chosen = rules_and_methods()[GetParam()];
  const kernels::InstructionSet before = kernels::instruction_set();
  auto line = static_cast<int64_t>(GetParam() * kScanWidths.size());
  for (const int64_t width : kScanWidths) {
    if (++line % lines_between() != 0) continue;
    ScanCase c = {.rule = chosen.rule, .method = chosen.method, .width = width, .steps = kLengths};
    c.heads = width <= 5 ? 2 : 1;
    c.seed = static_cast<uint64_t>(line);
    if (std::holds_alternative<Tableau>(chosen.method) && line % 2) c.keys = c.values = Rows::PerStage;
    expect_as_reference(c);
  }
  ASSERT_TRUE(kernels::use(before));
}

INSTANTIATE_TEST_SUITE_P(Table, ScanTable, ::testing::Range(size_t{0}, rules_and_methods().size()),
                         [](const auto& info) { return rules_and_methods()[info.param].name(); });

}  // namespace
}  // namespace fastweights::testing
