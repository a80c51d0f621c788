#include "train/known_models.h"

#include <algorithm>
#include <cmath>

#include "fastweights/error.h"
#include "fastweights/nearest.h"
#include "fastweights/run.h"

namespace fastweights {

const std::vector<KnownModel>& known_models() {
  static const std::vector<KnownModel> kModels = {
      {"delta-cde", "fast weights by the delta rule, keys from x'(t), values from x(t)", "Irie et al. 2022"},
      {"delta-ode", "fast weights by the delta rule, all from x(t)", "Irie et al. 2022"},
      {"delta-rde", "fast weights by the delta rule on log-signatures of windows", "Irie et al. 2022"},
      {"oja-cde", "fast weights by Oja's rule, keys from x'(t), values from x(t)", "Irie et al. 2022"},
      {"oja-ode", "fast weights by Oja's rule, all from x(t)", "Irie et al. 2022"},
      {"oja-rde", "fast weights by Oja's rule on log-signatures of windows", "Irie et al. 2022"},
      {"hebb-cde", "fast weights by Hebb's rule, keys from x'(t), values from x(t)", "Irie et al. 2022"},
      {"hebb-ode", "fast weights by Hebb's rule, all from x(t)", "Irie et al. 2022"},
      {"hebb-rde", "fast weights by Hebb's rule on log-signatures of windows", "Irie et al. 2022"},
      {"ncde", "neural controlled differential equation: z' = F(z) x'(t)", "Kidger et al. 2020"},
      {"ncde-rank-one", "the same with a field F(z) of rank one", "Kidger et al. 2020, section 6.1"},
      {"nrde", "neural rough differential equation: an NCDE on log-signatures of windows",
       "Morrill et al. 2021"},
      {"gru-ode", "the field of a GRU on the path so far, driven by time",
       "De Brouwer et al. 2019, as in Kidger et al. 2020"},
      {"gru-ode-direct", "the field of a GRU at x(t)", "Irie et al. 2022"},
      {"ode-rnn", "a GRU at observations, a neural ODE in between", "Rubanova et al. 2019"},
      {"gru-dt", "a GRU that is told the time since the last observation", "Rubanova et al. 2019"},
      {"gru-d", "a GRU whose state decays between observations", "Che et al. 2018"},
      {"gru", "gated recurrent units over rows, with time and mask", "Cho et al. 2014"},
      {"lstm", "long short-term memory over rows, with time and mask", "Hochreiter and Schmidhuber 1997"},
      {"lem", "long expressive memory over rows, with time and mask", "Rusch et al. 2022"},
      {"latent-ode", "variational: an ODE-RNN reads backwards, a neural ODE tells forwards",
       "Rubanova et al. 2019"},
      {"linear-transformer", "fast weights by sums of outer products, row by row",
       "Katharopoulos et al. 2020"},
      {"delta-net", "fast weights by the delta rule, row by row", "Schlag et al. 2021"},
      {"rfwp", "a delta net whose slow net reads what its fast net said before", "Irie et al. 2021"},
      {"ode-rfwp", "a recurrent fast weight programmer, its state in a neural ODE between observations",
       "Irie et al. 2022, section 3.3"},
      {"latent-ode-rfwp", "the same with a variational first state", "Irie et al. 2022, section 3.3"}};
  return kModels;
}

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const KnownModel& model : known_models()) names.push_back(model.name);
    return names;
  }();
  return kNames;
}

namespace {

// longer series are read in about kWindows windows
constexpr double kLong = 1000, kWindows = 250;

void read_in_windows(ModelConfig& config, const DataShape& shape) {
  config.control.kind = ControlKind::LogSignature;
  config.control.depth = config.channels <= 8 ? 2 : 1;
  config.control.window_increments = std::max<int64_t>(2, std::llround(shape.length / kWindows));
  config.time_unit = 1;
  config.control.clock = WindowClock::Windows;
}

void set_fast_weights(ModelConfig& config, const std::string& name, const DataShape& shape) {
  const std::string rule = name.substr(0, name.find('-')), drive = name.substr(name.find('-') + 1);
  config.rule = rule == "delta" ? "delta_pre" : rule;
  config.drive = drive == "cde" ? Drive::DerivativeKeys : Drive::X;
  config.heads = 16;
  config.feed_forward_size = 128;
  config.value_dropout = shape.dropout;
  if (config.static_features > 0) config.initial = InitialWeights::StaticFeatures;
  if (drive != "rde" && (shape.length <= kLong || shape.per_row)) return;
  read_in_windows(config, shape);
  config.drive = Drive::X;
}

System system_of(const std::string& name) {
  static const std::map<std::string, System> kSystems = {{"ncde", System::NeuralCde},
                                                         {"ncde-rank-one", System::NeuralCde},
                                                         {"nrde", System::NeuralCde},
                                                         {"gru-ode", System::GruOde},
                                                         {"gru-ode-direct", System::DirectGruOde},
                                                         {"ode-rnn", System::OdeRnn},
                                                         {"gru-dt", System::GruDt},
                                                         {"gru-d", System::GruD},
                                                         {"gru", System::Gru},
                                                         {"lstm", System::Lstm},
                                                         {"lem", System::Lem},
                                                         {"latent-ode", System::LatentOde},
                                                         {"linear-transformer", System::LinearTransformer},
                                                         {"delta-net", System::DeltaNet},
                                                         {"rfwp", System::RecurrentFwp},
                                                         {"ode-rfwp", System::OdeRfwp},
                                                         {"latent-ode-rfwp", System::LatentOdeRfwp}};
  const auto found = kSystems.find(name);
  return found == kSystems.end() ? System::FastWeights : found->second;
}

void set_system(ModelConfig& config, const std::string& name, const DataShape& shape) {
  const bool path = config.system == System::NeuralCde || config.system == System::GruOde ||
                    config.system == System::DirectGruOde;
  if (!path) config.control.kind = ControlKind::Hold;
  if (name == "ncde-rank-one") config.field.form = FieldForm::RankOne;
  const bool windows =
      name == "nrde" || (config.system == System::NeuralCde && shape.length > kLong && !shape.per_row);
  if (windows) {
    read_in_windows(config, shape);
    config.field.end = FieldEnd::TanhHidden;
  }
  switch (config.system) {
    case System::OdeRnn:
    case System::GruDt:
    case System::GruD:
    case System::LatentOde:
    case System::OdeRfwp:
    case System::LatentOdeRfwp:
      config.rows.known_channels = shape.known_channels;
      break;
    default:
      break;
  }
  switch (config.system) {
    case System::LinearTransformer:
    case System::DeltaNet:
    case System::RecurrentFwp:
    case System::OdeRfwp:
    case System::LatentOdeRfwp:
      config.heads = 8;
      config.feed_forward_size = 128;
      break;
    default:
      break;
  }
}

}  // namespace

ModelConfig named_model(const std::string& name, int64_t channels, int64_t static_features, int64_t outputs) {
  return default_model(name, {.channels = channels, .static_features = static_features, .outputs = outputs});
}

ModelConfig default_model(const std::string& name, const DataShape& shape) {
  FW_CHECK(std::find(model_names().begin(), model_names().end(), name) != model_names().end(),
           "there is no model '", name, "'; the nearest is '", nearest(name, model_names()), "'");
  ModelConfig config = {
      .channels = shape.channels, .static_features = shape.static_features, .outputs = shape.outputs};
  config.system = system_of(name);
  config.hidden_size = 64;
  config.time_unit = shape.median_gap;
  config.dropout = shape.dropout;
  if (config.static_features > 0) config.static_hidden_size = 64;
  if (config.system == System::FastWeights) {
    set_fast_weights(config, name, shape);
  } else {
    set_system(config, name, shape);
  }
  return config;
}

}  // namespace fastweights
