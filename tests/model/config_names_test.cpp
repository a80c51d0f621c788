#include <set>

#include "fastweights/model_config.h"
#include "support/support.h"

namespace fastweights {
namespace {

using testing::error_message;

// a configuration that has the key
ModelConfig base_of(const std::string& key) {
  if (key.rfind("field.", 0) == 0) return {.architecture = NeuralCde{}};
  if (key == "rows.input") return {.architecture = OdeRnn{}};
  if (key == "rows.order") return {.architecture = OdeRfwp{}};
  FastWeights options;
  if (key == "control.end_filling") options.control.path = NaturalCubic{};
  if (key == "control.window_tail" || key == "control.clock" || key == "control.last_window")
    options.control.path = LogSignatures{};
  if (key == "solver.stage_times") options.solver.steps = FixedSteps{};
  if (key == "solver.error_control" || key == "solver.first_step_gradient")
    options.solver.steps = AdaptiveSteps{};
  return {.architecture = options};
}

// names of the header's enumerators in lower case with underscores
TEST(ModelConfigNames, EveryEnumeratorHasItsName) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> names = {
      {"control.kind", {"natural_cubic", "hermite_cubic", "linear", "rectilinear", "hold", "log_signature"}},
      {"control.end_filling", {"whole_gap", "end_point"}},
      {"control.never_observed", {"zero", "reject"}},
      {"control.window_tail", {"drop", "keep"}},
      {"control.clock", {"windows", "time"}},
      {"control.last_window", {"once", "twice"}},
      {"solver.steps", {"observations", "fixed", "shared_grid", "adaptive"}},
      {"solver.edges", {"as_is", "inside", "shortened"}},
      {"solver.stage_times", {"double", "single"}},
      {"solver.error_control", {"per_sample", "joint"}},
      {"solver.first_step_gradient", {"none", "through"}},
      {"solver.gradient", {"exact", "checkpointed", "adjoint"}},
      {"architecture",
       {"fast_weights", "neural_cde", "gru_ode", "direct_gru_ode", "ode_rnn", "gru_dt", "gru_d", "gru",
        "lstm", "lem", "latent_ode", "linear_transformer", "delta_net", "recurrent_fwp", "ode_rfwp",
        "latent_ode_rfwp", "tensor_map"}},
      {"field.form", {"full", "rank_one"}},
      {"field.end", {"tanh_output", "tanh_hidden"}},
      {"rows.input", {"masked", "published", "published_in_place"}},
      {"rows.order", {"ode_first", "data_first"}},
      {"drive", {"x", "derivative_keys", "derivative_values", "derivative"}},
      {"backend", {"auto", "reference", "cpu", "cuda"}},
      {"layer_input", {"weights", "update"}},
      {"initial", {"rule", "zero", "static_features", "first_observation"}},
      {"query", {"output", "last_of_batch", "first_observation"}},
      {"read", {"plain", "transposed"}},
      {"learning_rate", {"sigmoid", "raw"}},
      {"value_activation", {"tanh", "none"}}};
  size_t count = 0;
  for (const auto& [key, values] : names) {
    std::set<std::string> texts;
    const ModelConfig base = base_of(key);
    for (const std::string& value : values) texts.insert(to_json(with_setting(base, key, value)));
    EXPECT_EQ(texts.size(), values.size()) << key;
    count += values.size();
    const std::string wrong = values[0] + "q";
    EXPECT_EQ(error_message([&, &key = key] { with_setting(base, key, wrong); }),
              "[config] " + key + " cannot be '" + wrong + "'; the nearest is '" + values[0] + "'");
  }
  EXPECT_EQ(count, 81u);
}

}  // namespace
}  // namespace fastweights
