#include <cmath>

#include "base/error.h"
#include "ops/scan_cases.h"
#include "support/support.h"
#include "tensor/autograd.h"

/// What must not depend on anything else, to the last bit.

namespace fastweights::testing {
namespace {

const at::ScalarType kTypes[] = {at::kFloat, at::kDouble};

// more steps than lie between two kept matrices, samples of one length, short ones and one without a step
const std::vector<int64_t> kSteps = {9, 70, 0, 3, 70, 1, 9};

// every rule; few and many heads for any number of lanes; given programs and made ones
std::vector<ScanCase> property_cases() {
  std::vector<ScanCase> cases;
  for (const Rule& rule : all_rules()) {
    for (const int64_t heads : {1, 3, 17}) {
      const size_t n = cases.size();
      ScanCase c = {.rule = rule, .width = n % 2 ? 4 : 3, .heads = heads, .steps = kSteps};
      c.method = in_turn(fused_methods(rule), 3 * n + 2);
      if (c.stages() > 1) c.keys = c.rates = n % 3 ? Rows::PerStage : Rows::Shared;
      c.outputs_at = n % 2 ? OutputsAt::Mixed : OutputsAt::Ends;
      c.queries = static_cast<int64_t>(n % 3);
      c.reads = ScanReads::Both;
      c.seed = n + 1;
      cases.push_back(c);
      c.queries = 0;
      c.made = MadeOf{.keys = 3, .values = 4, .features = 5, .mask = n % 2 ? Mask::Factors : Mask::None};
      cases.push_back(c);
    }
  }
  return cases;
}

// either kind of input with the weights of its outputs
struct ScanProblem {
  ScanCase c;
  ScanInput given = {};
  ScanFeatures features = {};
  ScanOutput weights = {};

  ScanResult run() const {
    const ScanOptions options = options_of(c, Backend::Cpu);
    return c.made ? testing::run(features, c.made->forms, options, weights)
                  : testing::run(given, options, weights);
  }
  const Tensor& offsets() const { return c.made ? features.offsets : given.offsets; }
  const Tensor& output_offsets() const { return c.made ? features.output_offsets : given.output_offsets; }
};

ScanProblem problem_of(const ScanCase& c, at::ScalarType type) {
  ScanProblem p = {c};
  if (c.made) {
    p.features = features_input(c, type);
    p.weights = random_weights(p.features);
  } else {
    p.given = given_input(c, type);
    p.weights = random_weights(p.given, options_of(c, Backend::Cpu));
  }
  return p;
}

// numbers offsets[b] .. offsets[b + 1] of these samples, one sample after another
Tensor ranges(const Tensor& offsets, const std::vector<int64_t>& samples) {
  std::vector<Tensor> parts = {at::empty({0}, at::kLong)};
  for (const int64_t b : samples)
    parts.push_back(at::arange(offsets[b].item<int64_t>(), offsets[b + 1].item<int64_t>(), at::kLong));
  return at::cat(parts);
}

Tensor offsets_of(const Tensor& offsets, const std::vector<int64_t>& samples) {
  std::vector<int64_t> result = {0};
  for (const int64_t b : samples)
    result.push_back(result.back() + (offsets[b + 1] - offsets[b]).item<int64_t>());
  return at::tensor(result, at::kLong);
}

void select(Tensor& x, const Tensor& index) {
  if (x.defined()) x = x.index_select(0, index);
}

// some samples of a batch, in this order
ScanProblem picked(const ScanProblem& from, const std::vector<int64_t>& samples) {
  ScanProblem p = from;
  const Tensor rows = ranges(from.offsets(), samples), outputs = ranges(from.output_offsets(), samples);
  const Tensor which = at::tensor(samples, at::kLong);
  for (Tensor* x : {&p.given.k, &p.given.v, &p.given.beta, &p.given.dt, &p.given.q, &p.features.z,
                    &p.features.dt, &p.weights.y, &p.weights.dy})
    select(*x, rows);
  for (Tensor* x : {&p.given.w0, &p.features.w0, &p.features.v_mask}) select(*x, which);
  for (Tensor* x : {&p.given.output_steps, &p.features.output_steps, &p.weights.w}) select(*x, outputs);
  (p.c.made ? p.features.offsets : p.given.offsets) = offsets_of(from.offsets(), samples);
  (p.c.made ? p.features.output_offsets : p.given.output_offsets) =
      offsets_of(from.output_offsets(), samples);
  return p;
}

// gradients of what all samples share
bool is_shared(const std::string& name) { return name.find("weight") != std::string::npos; }

// the part of a result that belongs to some samples
Tensor part_of(const ScanResult::Entry& entry, const ScanProblem& p, const std::vector<int64_t>& samples) {
  const bool per_output = entry.name == "w", per_sample = entry.name == "gradient of w0";
  const Tensor index = per_sample ? at::tensor(samples, at::kLong)
                                  : ranges(per_output ? p.output_offsets() : p.offsets(), samples);
  return entry.tensor.index_select(0, index);
}

void expect_picked_bits(const ScanProblem& whole, const ScanResult& all,
                        const std::vector<int64_t>& samples) {
  const ScanResult got = picked(whole, samples).run();
  for (size_t i = 0; i < all.entries.size(); ++i) {
    if (is_shared(all.entries[i].name)) continue;
    EXPECT_TRUE(at::equal(got.entries[i].tensor, part_of(all.entries[i], whole, samples)))
        << all.entries[i].name << " of samples " << at::IntArrayRef(samples);
  }
}

TEST(ScanProperties, ASampleDoesNotSeeItsBatch) {
  for (const ScanCase& c : property_cases()) {
    for (const at::ScalarType type : kTypes) {
      SCOPED_TRACE(message(c.name(), " in ", type));
      const ScanProblem whole = problem_of(c, type);
      const ScanResult all = whole.run();
      for (int64_t b = 0; b < static_cast<int64_t>(kSteps.size()); ++b) expect_picked_bits(whole, all, {b});
      expect_picked_bits(whole, all, {6, 2, 0, 5, 1, 4, 3});
      expect_picked_bits(whole, all, {4, 0});
      // neighbours may come twice
      expect_picked_bits(whole, all, {3, 1, 3, 3, 1});
    }
  }
}

TEST(ScanProperties, ThreadsDoNotChangeABit) {
  for (const bool made : {false, true}) {
    for (const at::ScalarType type : kTypes) {
      // more groups of lanes than bundles, so that bundles hold several
      ScanCase c = {.rule = oja_softmax(), .width = 3, .heads = 17, .steps = std::vector<int64_t>(90, 3)};
      for (size_t b = 0; b < c.steps.size(); ++b) c.steps[b] = static_cast<int64_t>(b % 7);
      if (made) c.made = MadeOf();
      const ScanProblem p = problem_of(c, type);
      ScanResult one;
      {
        const Threads threads(1);
        one = p.run();
      }
      for (const int count : {2, 3}) {
        const Threads threads(count);
        expect_same_bits(p.run(), one);
      }
    }
  }
}

// everything that has heads, at the dimension where it has them
ScanProblem with_heads(const ScanProblem& from, const std::vector<int64_t>& heads) {
  ScanProblem p = from;
  const Tensor index = at::tensor(heads, at::kLong);
  for (const auto& [x, dim] : {std::pair(&p.given.k, 2),
                               {&p.given.v, 2},
                               {&p.given.beta, 2},
                               {&p.given.w0, 1},
                               {&p.given.q, 3},
                               {&p.weights.w, 1},
                               {&p.weights.y, 3},
                               {&p.weights.dy, 3},
                               {&p.features.k_weight, 0},
                               {&p.features.v_weight, 0},
                               {&p.features.beta_weight, 0},
                               {&p.features.v_mask, 1},
                               {&p.features.w0, 1}}) {
    if (x->defined()) *x = x->index_select(dim, index);
  }
  return p;
}

// dt and features are shared by the heads, which are summed up in their order; and weights' gradients are
// sums over groups of samples that other numbers of heads divide otherwise
TEST(ScanProperties, HeadsDoNotSeeEachOther) {
  for (const ScanCase& c : property_cases()) {
    if (c.heads == 1) continue;
    for (const at::ScalarType type : kTypes) {
      SCOPED_TRACE(message(c.name(), " in ", type));
      const ScanProblem whole = problem_of(c, type);
      const ScanResult all = whole.run();
      for (const std::vector<int64_t>& heads : {std::vector<int64_t>{2, 0, 1}, {1}, {2, 2, 0, 1, 2}}) {
        const ScanResult got = with_heads(whole, heads).run();
        for (const auto& [name, dim] : {std::pair("w", 1),
                                        {"y", 3},
                                        {"dy", 3},
                                        {"gradient of k", 2},
                                        {"gradient of v", 2},
                                        {"gradient of beta", 2},
                                        {"gradient of w0", 1},
                                        {"gradient of q", 3}}) {
          for (size_t i = 0; i < all.entries.size(); ++i) {
            if (all.entries[i].name != name) continue;
            const Tensor expected = all.entries[i].tensor.index_select(dim, at::tensor(heads, at::kLong));
            EXPECT_TRUE(at::equal(got.entries[i].tensor, expected))
                << name << " of heads " << at::IntArrayRef(heads);
          }
        }
      }
    }
  }
}

// rows of the first or second part of every sample, which changes over after half of its steps
Tensor half_of(const Tensor& offsets, int64_t half, std::vector<int64_t>& counts) {
  std::vector<Tensor> parts;
  for (int64_t b = 0; b + 1 < offsets.size(0); ++b) {
    const int64_t first = offsets[b].item<int64_t>(), last = offsets[b + 1].item<int64_t>(),
                  middle = (first + last) / 2;
    parts.push_back(half == 0 ? at::arange(first, middle, at::kLong) : at::arange(middle, last, at::kLong));
    counts.push_back(counts.back() + parts.back().size(0));
  }
  return at::cat(parts);
}

TEST(ScanProperties, SplittingTheSequenceChangesNothing) {
  for (ScanCase c : property_cases()) {
    if (c.made) continue;
    c.outputs_at = OutputsAt::Ends;
    c.queries = 0;
    for (const at::ScalarType type : kTypes) {
      SCOPED_TRACE(message(c.name(), " in ", type));
      const ScanProblem whole = problem_of(c, type);
      const ScanResult all = whole.run();
      ScanInput leaves = whole.given;
      std::vector<Tensor> inputs;
      for (Tensor* x : {&leaves.k, &leaves.v, &leaves.beta, &leaves.dt, &leaves.w0}) {
        *x = x->clone().set_requires_grad(true);
        inputs.push_back(*x);
      }
      Tensor w = leaves.w0;
      for (const int64_t half : {0, 1}) {
        std::vector<int64_t> counts = {0};
        const Tensor rows = half_of(whole.given.offsets, half, counts);
        ScanInput part = leaves;
        for (Tensor* x : {&part.k, &part.v, &part.beta, &part.dt}) *x = x->index_select(0, rows);
        part.w0 = w;
        part.offsets = at::tensor(counts, at::kLong);
        part.output_steps = part.output_offsets = Tensor();
        w = scan(part, options_of(c, Backend::Cpu)).w;
      }
      EXPECT_TRUE(at::equal(w, all.at("w")));
      const std::vector<Tensor> gradients = vector_jacobian({w}, inputs, {whole.weights.w});
      for (size_t i = 0; i < inputs.size(); ++i)
        EXPECT_TRUE(at::equal(gradients[i], all.entries[i + 1].tensor)) << all.entries[i + 1].name;
    }
  }
}

// sample 4, of 70 steps, has a bad number in the middle of whatever a sample has
TEST(ScanProperties, BadNumbersStayInTheirSample) {
  const int64_t bad = 4;
  std::vector<int64_t> others = {0, 1, 2, 3, 5, 6};
  for (const ScanCase& c : property_cases()) {
    for (const at::ScalarType type : kTypes) {
      for (const double number : {double{NAN}, double{INFINITY}}) {
        const ScanProblem clean = problem_of(c, type);
        ScanProblem p = clean;
        const int64_t row = clean.offsets()[bad].item<int64_t>() + 33;
        const std::vector<Tensor*> tensors =
            c.made ? std::vector{&p.features.z, &p.features.dt}
                   : std::vector{&p.given.k, &p.given.v, &p.given.beta, &p.given.dt};
        Tensor& x = *in_turn(tensors, c.seed);
        x = x.clone();
        x[row].fill_(number);
        SCOPED_TRACE(message(c.name(), " in ", type, " with ", number));
        const ScanResult got = p.run(), expected = clean.run();
        for (size_t i = 0; i < got.entries.size(); ++i) {
          if (is_shared(got.entries[i].name)) continue;
          EXPECT_TRUE(
              at::equal(part_of(got.entries[i], p, others), part_of(expected.entries[i], clean, others)))
              << got.entries[i].name;
        }
        // and there they are seen
        if (!std::isnan(number)) continue;
        EXPECT_TRUE(at::isnan(part_of(got.entries[0], p, {bad})).any().item<bool>() ||
                    at::isnan(part_of(got.entries.back(), p, {bad})).any().item<bool>());
      }
    }
  }
}

// without gradients nothing is kept for them
TEST(ScanProperties, ResultsDoNotDependOnWhoWantsGradients) {
  for (const ScanCase& c : property_cases()) {
    if (c.made) continue;
    for (const at::ScalarType type : kTypes) {
      SCOPED_TRACE(message(c.name(), " in ", type));
      const ScanProblem p = problem_of(c, type);
      const ScanResult all = p.run();
      EXPECT_TRUE(at::equal(scan(p.given, options_of(c, Backend::Cpu)).w, all.at("w")));
      for (const auto& [name, member] : {std::pair("k", &ScanInput::k),
                                         {"v", &ScanInput::v},
                                         {"beta", &ScanInput::beta},
                                         {"dt", &ScanInput::dt},
                                         {"w0", &ScanInput::w0}}) {
        ScanInput input = p.given;
        input.*member = (input.*member).clone().set_requires_grad(true);
        const ScanOutput out = scan(input, options_of(c, Backend::Cpu));
        std::vector<Tensor> outputs = {out.w}, weights = {p.weights.w};
        if (out.y.defined()) outputs.insert(outputs.end(), {out.y, out.dy});
        if (out.y.defined()) weights.insert(weights.end(), {p.weights.y, p.weights.dy});
        const Tensor got = vector_jacobian(outputs, {input.*member}, weights)[0];
        EXPECT_TRUE(at::equal(got, all.at(std::string("gradient of ") + name))) << name;
      }
    }
  }
}

}  // namespace
}  // namespace fastweights::testing
