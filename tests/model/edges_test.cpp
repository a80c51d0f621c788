#include <cmath>
#include <memory>

#include "model/cases.h"
#include "model/programmer_config.h"
#include "support/support.h"
#include "tensor/autograd.h"

/// What a model may look at, what dropout does, who outlives whom, and times at the edge of what is possible.

namespace fastweights {
namespace {

using testing::error_message;
using testing::input_of;
using testing::random;
using testing::relative_error;
using testing::same_bits;
using testing::Sample;

ProgrammerConfig small_config(const ControlPath& kind, Drive drive) {
  ProgrammerConfig c;
  c.channels = 2;
  c.outputs = 3;
  c.drive = drive;
  c.control.path = kind;
  c.hidden_size = 6;
  c.heads = 2;
  c.value_width = 5;
  c.feed_forward_size = 7;
  return c;
}

Model model_of(const ProgrammerConfig& config) { return Model(config, {.type = at::kDouble}); }

Sample one_series(int64_t length) { return {testing::irregular_times(length, 5), random({length, 2}, 7)}; }

double time_at(const Sample& s, int64_t row) { return s.times[row].item<double>(); }

// the rows on which the first output depends through channel 1, by its gradient: [L] bool. A rectilinear path
// holds time in channel 0, which moves on towards the next observation
Tensor rows_read(const Model& model, const Sample& sample) {
  ModelInput input = input_of({sample});
  input.series.values.set_requires_grad(true);
  const Tensor out = model.forward(input).outputs[0].sum();
  return (vector_jacobian({out}, {input.series.values}, {at::ones_like(out)})[0] != 0).select(1, 1);
}

enum class Change { Nothing, Something };

// whether another value in `row` changes the first of two outputs, as seen by its bits
Change change_from(const Model& model, const Sample& sample, int64_t row) {
  Sample other = sample;
  other.values = sample.values.clone();
  other.values[row][1] += 0.5;
  const ModelOutput before = model.forward(input_of({sample})), after = model.forward(input_of({other}));
  const bool same =
      same_bits(before.outputs[0], after.outputs[0]) && same_bits(before.w[0][0], after.w[0][0]);
  return same ? Change::Nothing : Change::Something;
}

// output at `time` must depend on rows up to `last` and on no later one
void expect_reads_up_to(const ProgrammerConfig& config, Sample sample, double time, int64_t last) {
  const Model model = model_of(config);
  sample.outputs = {time, sample.times[-1].item<double>()};
  const Tensor read = rows_read(model, sample);
  for (int64_t row = 0; row < sample.times.size(0); ++row) {
    const Change wanted = row == last ? Change::Something : Change::Nothing;
    const std::string where = to_json(config) + " row " + std::to_string(row);
    if (row < last) continue;
    EXPECT_TRUE(change_from(model, sample, row) == wanted) << where;
    EXPECT_EQ(read[row].item<bool>(), row == last) << where;
  }
}

TEST(ModelEdges, CausalControlsReadNothingBehindTheirDelay) {
  const Sample sample = one_series(7);
  const double at_row = time_at(sample, 3), between = 0.5 * (time_at(sample, 3) + time_at(sample, 4));
  for (int64_t layers : {1, 2}) {
    for (const ControlPath& kind : std::vector<ControlPath>{HermiteCubic{}, Linear{}}) {
      ProgrammerConfig c = small_config(kind, Drive::DerivativeKeys);
      c.layers = layers;
      c.deterministic = true;
      // at an observation, that one is the last; between two, the delay is one gap
      expect_reads_up_to(c, sample, at_row, 3);
      expect_reads_up_to(c, sample, between, 4);
    }
    for (const ControlPath& kind : std::vector<ControlPath>{Rectilinear{}, Hold{}}) {
      ProgrammerConfig c =
          small_config(kind, std::holds_alternative<Hold>(kind) ? Drive::X : Drive::DerivativeKeys);
      c.layers = layers;
      c.deterministic = true;
      // no delay
      expect_reads_up_to(c, sample, at_row, 3);
      expect_reads_up_to(c, sample, between, 3);
    }
  }
}

TEST(ModelEdges, AMissingValueWidensTheDelay) {
  Sample sample = one_series(7);
  sample.values[4][1] = NAN;
  ProgrammerConfig c = small_config(HermiteCubic{}, Drive::DerivativeKeys);
  c.deterministic = true;
  expect_reads_up_to(c, sample, 0.5 * (time_at(sample, 3) + time_at(sample, 4)), 5);
}

TEST(ModelEdges, NaturalCubicSplinesReadTheFuture) {
  const Sample sample = one_series(7);
  expect_reads_up_to(small_config(NaturalCubic{}, Drive::DerivativeKeys), sample, time_at(sample, 3), 6);
}

TEST(ModelEdges, LogSignaturesReadTheirWindowAndNothingBehindIt) {
  const Sample sample = one_series(7);
  for (WindowClock clock : {WindowClock::Windows, WindowClock::Time}) {
    const PointWindows points = {.increments = 2, .tail = WindowTail::Keep};
    ProgrammerConfig c = small_config(LogSignatures{.windows = points, .clock = clock}, Drive::X);
    c.deterministic = true;
    expect_reads_up_to(c, sample, time_at(sample, 2), 2);
    expect_reads_up_to(c, sample, time_at(sample, 3), 4);
  }
}

TEST(ModelEdges, DropoutIsForTrainingAndComesFromItsSeed) {
  ProgrammerConfig c = small_config(HermiteCubic{}, Drive::DerivativeKeys), none = c;
  c.dropout = 0.4;
  c.value_dropout = 0.3;
  const Model model = model_of(c);
  const ModelInput input = input_of({one_series(5), one_series(3)}), all = [&] {
    ModelInput copy = input;
    copy.output_times = {};
    return copy;
  }();
  const Tensor plain = model.forward(all).outputs;
  EXPECT_TRUE(at::equal(model.forward(all, {.seed = 5}).outputs, plain));
  EXPECT_TRUE(at::equal(model_of(none).forward(all, {.mode = Mode::Train}).outputs, plain));
  EXPECT_TRUE(at::equal(model_of(none).forward(all).outputs, plain));
  const auto train = [&](uint64_t seed) {
    return model.forward(all, {.mode = Mode::Train, .seed = seed}).outputs;
  };
  EXPECT_TRUE(at::equal(train(5), train(5)));
  EXPECT_GT(relative_error(train(5), train(6)), 1e-3);
  EXPECT_GT(relative_error(train(5), plain), 1e-3);
}

TEST(ModelEdges, ValuesThatAreDroppedStayDroppedAtAllTimesAndTheirMeanIsTheWhole) {
  ProgrammerConfig c = small_config(Linear{}, Drive::DerivativeKeys);
  c.rule = "hebb";
  c.initial = InitialWeights::Zero;
  c.value_dropout = 0.4;
  const Model model = model_of(c);
  Sample sample = one_series(6);
  sample.outputs = {time_at(sample, 1), time_at(sample, 3), time_at(sample, 5)};
  const ModelInput input = input_of({sample});
  const at::NoGradGuard no_grad;
  const Tensor whole = model.forward(input).w[0];  // [3, H, V, K]
  Tensor sum = at::zeros_like(whole);
  const int draws = 300;
  for (int seed = 0; seed < draws; ++seed) {
    const Tensor w = model.forward(input, {.mode = Mode::Train, .seed = static_cast<uint64_t>(seed)}).w[0];
    const Tensor dropped = (w == 0).all(-1);  // [3, H, V]
    EXPECT_TRUE(at::equal(dropped[0], dropped[1]) && at::equal(dropped[0], dropped[2])) << seed;
    // Hebb's W is linear in the values: a row is nothing, or 1 / (1 - rate) of the whole
    const Tensor expected = at::where(dropped.unsqueeze(-1), at::zeros_like(whole), whole / 0.6);
    EXPECT_LT(relative_error(w, expected), 1e-13) << seed;
    sum += w;
  }
  // a mask has a variance of 0.4 / 0.6; five standard deviations of the mean of 300
  EXPECT_LT(relative_error(sum / draws, whole), 5 * std::sqrt(0.4 / 0.6 / draws));
}

// gradients of all parameters and of the values, after `disturb` was done to the model behind a forward pass
template <typename Disturb>
std::vector<Tensor> gradients_after(const ProgrammerConfig& config, const Disturb& disturb) {
  auto model = std::make_unique<Model>(config, ModelOptions{.type = at::kDouble});
  Tensor loss;
  std::vector<Tensor> inputs = model->parameter_tensors();
  {
    Sample a = one_series(6), b = one_series(3);
    a.outputs = {time_at(a, 2), time_at(a, 5)};
    b.outputs = {time_at(b, 2)};
    ModelInput input = input_of({a, b});
    input.series.values.set_requires_grad(true);
    inputs.push_back(input.series.values);
    loss = model->forward(input).outputs.square().sum();
  }
  disturb(model);
  return vector_jacobian({loss}, inputs, {at::ones_like(loss)});
}

TEST(ModelEdges, BackwardPassesOutliveTheModelAndItsSolver) {
  using Owned = std::unique_ptr<Model>;
  for (Gradient gradient : {Gradient::Exact, Gradient::Checkpointed, Gradient::Adjoint}) {
    for (const ControlPath& kind : std::vector<ControlPath>{HermiteCubic{}, Rectilinear{}, LogSignatures{}}) {
      ProgrammerConfig c = small_config(kind, Drive::Derivative);
      c.solver.gradient = gradient;
      c.layers = 2;
      const std::vector<Tensor> plain = gradients_after(c, [](Owned&) {});
      const std::vector<Tensor> gone = gradients_after(c, [](Owned& model) { model.reset(); });
      const std::vector<Tensor> changed = gradients_after(c, [](Owned& model) {
        model->set_solver({.method = euler(), .steps = ObservationSteps{.max_step = 0.1}});
      });
      EXPECT_TRUE(at::equal(testing::flat(gone), testing::flat(plain)));
      EXPECT_TRUE(at::equal(testing::flat(changed), testing::flat(plain)));
    }
  }
}

TEST(ModelEdges, ParametersThatChangeBeforeTheBackwardPassAreRefused) {
  for (Gradient gradient : {Gradient::Exact, Gradient::Checkpointed, Gradient::Adjoint}) {
    ProgrammerConfig c = small_config(HermiteCubic{}, Drive::Derivative);
    c.solver.gradient = gradient;
    const auto change = [](std::unique_ptr<Model>& model) {
      const at::NoGradGuard no_grad;
      for (const auto& [name, tensor] : model->parameters()) {
        Tensor(tensor).mul_(1.5);
      }
    };
    EXPECT_NE(error_message<std::exception>([&] { gradients_after(c, change); }), "");
  }
}

TEST(ModelEdges, HeldValuesAndLogSignaturesWorkFarFromZero) {
  ProgrammerConfig hold = small_config(Hold{}, Drive::X);
  ProgrammerConfig windows = small_config(LogSignatures{.clock = WindowClock::Time}, Drive::X);
  ProgrammerConfig linear = small_config(Linear{}, Drive::Derivative);
  for (ProgrammerConfig c : {hold, windows, linear}) {
    c.time_unit = 4096;
    const Model model = model_of(c);
    Sample near = one_series(6);
    near.times = at::tensor({0.0, 4096.0, 12288.0, 16384.0, 28672.0, 32768.0}, at::kDouble);
    near.outputs = {4096, 32768};
    // nanoseconds since 1970: neighbouring numbers are 128 apart, and 4096 divides what is added
    Sample far = near;
    const double offset = 0x1p60;
    far.times = near.times + offset;
    for (double& t : far.outputs) t += offset;
    // these signals are constant within a step, so the places of its stages do not matter
    EXPECT_LT(relative_error(model.forward(input_of({far})).w[0], model.forward(input_of({near})).w[0]),
              1e-13)
        << to_json(c);
    c.time_unit = 1;
    const ModelOutput out = model_of(c).forward(input_of({far, near}));
    EXPECT_TRUE(out.status) << out.status.message();
  }
}

TEST(ModelEdges, TheSmallestGapIsOneBetweenObservations) {
  ProgrammerConfig c = small_config(Hold{}, Drive::X);
  c.solver.steps = FixedSteps{};
  Sample sample = one_series(4);
  sample.times = at::tensor({0.0, 3.0, 6.0, 9.0}, at::kDouble);
  sample.outputs = {9};
  EXPECT_EQ(model_of(c).forward(input_of({sample})).steps, 3);
}

TEST(ModelEdges, TheShortestGapsHurtNobodyElse) {
  for (const ControlPath& kind : std::vector<ControlPath>{NaturalCubic{}, HermiteCubic{}, Linear{},
                                                          Rectilinear{}, Hold{}, LogSignatures{}}) {
    ProgrammerConfig c = small_config(kind, Drive::X);
    c.deterministic = true;
    const Model model = model_of(c);
    Sample sample = one_series(5), sharp = one_series(4), shortest = one_series(2);
    sharp.times = at::tensor({0.0, 1e-300, 1.0, 1.0 + 0x1p-52}, at::kDouble);
    shortest.times = at::tensor({0.0, 5e-324}, at::kDouble);
    for (Sample* s : {&sample, &sharp, &shortest}) s->outputs = {s->times[-1].item<double>()};
    const ModelOutput together = model.forward(input_of({sharp, sample, shortest}));
    EXPECT_TRUE(same_bits(together.outputs[1], model.forward(input_of({sample})).outputs[0])) << to_json(c);
    // slopes are divided by such a gap, others are not; whoever cannot go on says so
    const bool slopes = std::holds_alternative<NaturalCubic>(kind) ||
                        std::holds_alternative<HermiteCubic>(kind) || std::holds_alternative<Linear>(kind);
    const bool finite = at::isfinite(together.outputs).all().item<bool>();
    EXPECT_TRUE(finite || slopes) << to_json(c);
    EXPECT_EQ(static_cast<bool>(together.status), finite) << to_json(c);
  }
}

TEST(ModelEdges, ChannelsNeverObservedAreRefusedWhereThatIsAskedFor) {
  for (const ControlPath& kind : std::vector<ControlPath>{NaturalCubic{}, HermiteCubic{}, Linear{},
                                                          Rectilinear{}, Hold{}, LogSignatures{}}) {
    ProgrammerConfig c = small_config(kind, Drive::X);
    Sample sample = one_series(4);
    sample.values.select(1, 1).fill_(NAN);
    sample.outputs = {time_at(sample, 3)};
    const ModelInput input = input_of({one_series(3), sample});
    EXPECT_TRUE(model_of(c).forward(input).status);
    c.control.never_observed = NeverObserved::Reject;
    EXPECT_NE(
        error_message([&] { model_of(c).forward(input); }).find("sample 1: channel 1 is never observed"),
        std::string::npos)
        << to_json(c);
  }
}

TEST(ModelEdges, OutputTimesThatMakeNoSenseAreRefused) {
  const Model model = model_of(small_config(HermiteCubic{}, Drive::X));
  const Sample sample = one_series(4);
  const auto refused = [&](const Tensor& times, const Tensor& offsets) {
    ModelInput input = input_of({sample, sample});
    input.output_times = RaggedTimes{times, offsets};
    return error_message([&] { model.forward(input); });
  };
  const double end = time_at(sample, 3);
  const Tensor offsets = at::tensor({0, 1, 2}, at::kLong);
  EXPECT_NE(refused(at::tensor({end, end + 1}, at::kDouble), offsets), "");
  EXPECT_NE(refused(at::tensor({end, NAN}, at::kDouble), offsets), "");
  EXPECT_NE(refused(at::tensor({end, end}, at::kDouble), at::tensor({0, 2, 2}, at::kLong)), "");
  EXPECT_NE(refused(at::tensor({end, end}, at::kDouble), at::tensor({0, 1, 3}, at::kLong)), "");
  // read before they were checked, these would lead a long way out of the tensor
  EXPECT_NE(refused(at::tensor({end, end}, at::kDouble), at::tensor({0, 1'000'000'000, 2}, at::kLong))
                .find("offsets of output times fall"),
            std::string::npos);
}

}  // namespace
}  // namespace fastweights
