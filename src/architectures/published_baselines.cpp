#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "fastweights/published.h"
#include "tensor/autograd.h"

namespace fastweights::published {
namespace {

using Tensors = std::map<std::string, Tensor>;
using Names = std::vector<std::string>;

// hidden layers of the vector field
int64_t field_layers(const ModelConfig& config) {
  if (const auto* cde = config.architecture.get_if<NeuralCde>()) return cde->field.layers;
  if (const auto* rnn = config.architecture.get_if<OdeRnn>()) return rnn->field.layers;
  return 0;
}

// the layer of ours, as lists of layers of theirs that stand one below the other
std::vector<Names> layer_candidates(const std::string& layer, const ModelConfig& config) {
  const int64_t last = field_layers(config);
  static const std::map<std::string, std::vector<Names>> kNames = {
      {"first", {{"initial_network"}, {"initial_linear"}}},
      {"head", {{"linear"}, {"final_linear"}}},
      {"static.hidden", {{"linear1"}}},
      {"static.out", {{"linear2"}}},
      {"decay", {{"decay"}}},
      {"field.input",
       {{"func.model.W_r", "func.model.W_z", "func.model.W_h"}, {"func.W_r", "func.W_z", "func.W_h"}}},
      {"field.gates", {{"func.model.U_r", "func.model.U_z"}, {"func.U_r", "func.U_z"}}},
      {"field.state", {{"func.model.U_h"}, {"func.U_h"}}}};
  if (const auto found = kNames.find(layer); found != kNames.end()) return found->second;
  if (layer == "field.out")
    return {{"func.linear_out"},
            {message("func.net.", 2 * last)},
            {message("func.sequential.", 2 * last)},
            {"func.net"}};
  if (layer.rfind("field.", 0) != 0) return {};
  const int64_t l = std::stoll(layer.substr(6));
  return {{l == 0 ? "func.linear_in" : message("func.linears.", l - 1)},
          {message("func.net.", 2 * l)},
          {message("func.sequential.", 2 * l)}};
}

// names of ours as lists of theirs
std::vector<Names> candidates(const std::string& ours, const ModelConfig& config) {
  const size_t dot = ours.rfind('.');
  const std::string layer = ours.substr(0, dot), kind = ours.substr(dot);
  // cells of a GRU have other names than layers
  if (layer == "cell.input" || layer == "cell.state")
    return {{"gru_cell" + kind + (layer == "cell.input" ? "_ih" : "_hh")}};
  std::vector<Names> found = layer_candidates(layer, config);
  for (Names& names : found) {
    for (std::string& name : names) name += kind;
  }
  return found;
}

Names find_names(const std::string& ours, const ModelConfig& config, const Tensors& tensors) {
  std::string tried;
  for (Names names : candidates(ours, config)) {
    for (const char* before : {"", "model.", "model.model."}) {
      Names whole = names;
      for (std::string& name : whole) name = before + name;
      if (std::all_of(whole.begin(), whole.end(), [&](const auto& n) { return tensors.contains(n); }))
        return whole;
    }
    tried += (tried.empty() ? "" : " or ") + names[0];
  }
  FW_CHECK(false, "[published] missing tensor for parameter ", ours,
           tried.empty() ? "" : ", which would be " + tried);
}

Tensor joined(const Names& names, const Tensors& tensors) {
  std::vector<Tensor> parts;
  for (const std::string& name : names) parts.push_back(tensors.at(name));
  return at::cat(parts, 0);
}

// a constant of the published GRU-ODE, and copies of a layer that stands several times in a list
bool may_be_left(const std::string& name, const Model& model, const Tensors& tensors) {
  if (name.size() >= 13 && name.substr(name.size() - 13) == "func.out_base") return true;
  const auto* cde = model.config().architecture.get_if<NeuralCde>();
  if (!cde || !cde->field.tied || name.rfind("func.net.", 0) != 0) return false;
  const std::string first = "func.net.2" + name.substr(name.rfind('.'));
  return tensors.contains(first) && at::equal(tensors.at(first), tensors.at(name));
}

}  // namespace

std::map<std::string, Names> load_state_dict(const Model& model, const Tensors& tensors) {
  std::map<std::string, Names> names;
  const Architecture& architecture = model.config().architecture;
  if (architecture.get_if<FastWeights>() || architecture.get_if<TensorMap>()) {
    Model programmer = model;
    for (const auto& [ours, theirs] : load_parameters(programmer, tensors)) names[ours] = {theirs};
    return names;
  }
  std::set<std::string> used;
  for (const auto& [ours, tensor] : model.parameters()) {
    names[ours] = find_names(ours, model.config(), tensors);
    const Tensor given = joined(names[ours], tensors);
    FW_CHECK(given.sizes() == tensor.sizes(), "[published] ", names[ours][0], " must be ", tensor.sizes(),
             " for ", ours, ", got ", given.sizes());
    used.insert(names[ours].begin(), names[ours].end());
  }
  for (const auto& [theirs, tensor] : tensors) {
    FW_CHECK(used.contains(theirs) || may_be_left(theirs, model, tensors), "[published] unexpected tensor ",
             theirs);
  }
  // only now, so that what does not fit changes nothing
  const at::NoGradGuard no_grad;
  for (const auto& [ours, tensor] : model.parameters()) tensor.copy_(joined(names[ours], tensors));
  return names;
}

const Names& baseline_models() {
  static const Names kModels = {"ncde", "gruode", "mygruode", "dt", "decay", "odernn"};
  return kModels;
}

namespace {

ControlConfig published_spline() { return {.path = NaturalCubic{EndFilling::EndPoint}}; }

Architecture continuous_baseline(const std::string& model) {
  const SolverConfig solver = {.method = rk4(), .steps = FixedSteps{}, .gradient = Gradient::Adjoint};
  if (model == "ncde")
    return NeuralCde{.control = published_spline(),
                     .solver = solver,
                     .field = {.hidden_size = 40, .layers = 4},
                     .hidden_size = 90};
  const bool direct = model == "mygruode";
  return GruOde{.form = direct ? GruOdeForm::Direct : GruOdeForm::PathSoFar,
                .control = published_spline(),
                .solver = solver,
                .hidden_size = direct ? 128 : 160};
}

Architecture row_baseline(const std::string& model, Intensity intensity) {
  const RowConfig rows = {.input = RowInput::Published, .values_only = intensity == Intensity::Off};
  if (model == "odernn")
    return OdeRnn{.control = published_spline(),
                  .solver = {.method = rk4(), .gradient = Gradient::Adjoint},
                  .field = {.hidden_size = 64, .layers = 4},
                  .rows = rows,
                  .hidden_size = 128};
  return GapGru{.form = model == "dt" ? GapForm::Input : GapForm::Decay,
                .control = published_spline(),
                .rows = rows,
                .hidden_size = 160};
}

}  // namespace

ModelConfig baseline(const std::string& model, Intensity intensity) {
  const Names& known = baseline_models();
  FW_CHECK(std::find(known.begin(), known.end(), model) != known.end(), "[published] unknown model '", model,
           "'", suggestion(model, known));
  const bool continuous = model == "ncde" || model == "gruode" || model == "mygruode";
  return {.channels = continuous ? 21 : 41,
          .outputs = 10,
          .architecture = continuous ? continuous_baseline(model) : row_baseline(model, intensity)};
}

ModelConfig neural_rde(int64_t depth) {
  // windows and steps are those of the fast weights there
  const FastWeights worms = fast_weights(eigenworms("ode_delta", depth));
  return {.channels = 7,
          .outputs = 5,
          .architecture =
              NeuralCde{.control = worms.control,
                        .solver = worms.solver,
                        .field = {.hidden_size = 64, .layers = 3, .end = FieldEnd::TanhHidden, .tied = true},
                        .hidden_size = 32}};
}

}  // namespace fastweights::published
