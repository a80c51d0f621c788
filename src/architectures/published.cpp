#include "fastweights/published.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "model/programmer_config.h"
#include "tensor/autograd.h"

namespace fastweights::published {
namespace {

struct Sizes {
  int64_t hidden, heads, feed_forward;
};

void set_sizes(ProgrammerConfig& config, const Sizes& sizes) {
  config.hidden_size = sizes.hidden;
  config.heads = sizes.heads;
  config.feed_forward_size = sizes.feed_forward;
}

void check_name(const std::string& model, const std::vector<std::string>& known) {
  FW_CHECK(std::find(known.begin(), known.end(), model) != known.end(), "[published] unknown model '", model,
           "'", suggestion(model, known));
}

bool begins_with(const std::string& text, const std::string& beginning) {
  return text.rfind(beginning, 0) == 0;
}

// the rule by its family; in the published code Oja is the softmax form
std::string rule_of(const std::string& model) {
  if (begins_with(model, "hebb")) return "hebb";
  return begins_with(model, "oja") ? "oja_softmax" : "delta_pre";
}

// what the models on splines have in common
ProgrammerConfig spline_model(const std::string& model) {
  ProgrammerConfig c;
  c.rule = rule_of(model);
  c.control.path = NaturalCubic{EndFilling::EndPoint};
  c.solver = {.method = rk4(), .steps = FixedSteps{}, .gradient = Gradient::Adjoint};
  c.query = QueryTime::LastOfBatch;
  c.unused_layer = true;
  if (model == "big_fw_cde") {
    c.tensor_map = true;
    c.drive = Drive::Derivative;
    c.initial = InitialWeights::FirstObservation;
    c.unused_layer = false;
    c.map_layers = 3;
  } else if (model == "hebb_cde" || model == "oja_cde") {
    c.drive = Drive::DerivativeValues;
    c.read = Read::Transposed;
  } else if (model == "delta_cde" || model == "hebb_cde_v2" || model == "hebb_cde_v3") {
    c.drive = Drive::DerivativeKeys;
    if (model == "hebb_cde_v3") c.read = Read::Transposed;
  } else if (model.find("dx_only") != std::string::npos) {
    c.drive = Drive::Derivative;
    // its "Hebb" is given W by the solver and computes the delta rule
    if (model == "hebb_cde_dx_only") c.rule = "delta_pre";
  }
  if (model == "hebb_cde" || model == "hebb_cde_v2" || model == "hebb_cde_v3") {
    c.learning_rate = LearningRate::Raw;
    c.value_activation = ValueActivation::None;
  }
  return c;
}

Sizes sepsis_sizes(const std::string& model, Intensity intensity) {
  const bool on = intensity == Intensity::On, ode = model.find("_ode") != std::string::npos;
  if (begins_with(model, "hebb")) {
    if (ode) return on ? Sizes{160, 32, 64} : Sizes{32, 8, 64};
    return on ? Sizes{32, 8, 256} : Sizes{160, 32, 64};
  }
  if (begins_with(model, "oja") && ode) return {160, 32, 64};
  if (ode) return on ? Sizes{128, 16, 64} : Sizes{80, 16, 64};
  return on ? Sizes{80, 16, 64} : Sizes{160, 32, 64};
}

// names that a parameter of ours may have in the published code, without what stands before them
std::vector<std::string> candidates(const std::string& name, int64_t layers) {
  const size_t dot = name.rfind('.');
  const std::string part = name.substr(0, dot);
  const std::string last_query = message("layers.", layers - 1, ".query");
  static const std::map<std::string, std::vector<std::string>> kNames = {
      {"layers.0.input", {"update_net.input_proj"}},
      {"layers.0.norm", {"update_net.input_layer_norm"}},
      {"layers.0.program", {"update_net.kvb_net", "update_net.kb_net"}},
      {"layers.0.value", {"update_net.dx_dt_proj", "update_net.vs_proj"}},
      {"layers.0.value_norm", {"update_net.v_layer_norm"}},
      {"layers.0.value_out", {"update_net.v_net"}},
      {"layers.0.query", {"mid_query_net"}},
      {"layers.0.ff.norm", {"mid_ff_block.layer_norm"}},
      {"layers.0.ff.in", {"mid_ff_block.ff_layers.0"}},
      {"layers.0.ff.out", {"mid_ff_block.ff_layers.3"}},
      {"layers.1.norm", {"update_net2.input_layer_norm"}},
      {"layers.1.program", {"update_net2.kvb_net"}},
      {"out", {"out_proj", "final_out_proj"}},
      {"ff.norm", {"ff_block.layer_norm", "final_ff_block.layer_norm"}},
      {"ff.in", {"ff_block.ff_layers.0", "final_ff_block.ff_layers.0"}},
      {"ff.out", {"ff_block.ff_layers.3", "final_ff_block.ff_layers.3"}},
      {"head", {"linear", "final_linear"}},
      {"first", {"initial_network"}},
      {"unused", {"initial_network"}},
      {"static.hidden", {"linear1"}},
      {"static.out", {"kvl_linear", "linear2"}},
  };
  std::vector<std::string> found;
  if (part == last_query) {
    found = {"query_net", "final_query_net"};
  } else if (begins_with(part, "map.")) {
    found = {"update_net.big_net_layers." + part.substr(4)};
  } else if (const auto entry = kNames.find(part); entry != kNames.end()) {
    found = entry->second;
  }
  for (std::string& candidate : found) candidate += name.substr(dot);
  return found;
}

std::string find_name(const std::string& ours, int64_t layers, const std::map<std::string, Tensor>& tensors) {
  std::string tried;
  for (const std::string& candidate : candidates(ours, layers)) {
    for (const char* before : {"", "model.", "model.model."}) {
      if (tensors.contains(before + candidate)) return before + candidate;
    }
    tried += (tried.empty() ? "" : " or ") + candidate;
  }
  FW_CHECK(false, "[published] missing tensor for parameter ", ours,
           tried.empty() ? "" : ", which would be " + tried);
}

}  // namespace

const std::vector<std::string>& speech_models() {
  static const std::vector<std::string> kModels = {
      "hebb_ode",    "oja_ode",     "delta_ode",        "hebb_cde",        "oja_cde",           "delta_cde",
      "hebb_cde_v2", "hebb_cde_v3", "hebb_cde_dx_only", "oja_cde_dx_only", "delta_cde_dx_only", "big_fw_cde"};
  return kModels;
}

const std::vector<std::string>& eigenworms_models() {
  static const std::vector<std::string> kModels = {"ode_hebb", "ode_oja",   "ode_delta",  "cde_hebb",
                                                   "cde_oja",  "cde_delta", "multi_delta"};
  return kModels;
}

ModelConfig speech(const std::string& model) {
  check_name(model, speech_models());
  ProgrammerConfig c = spline_model(model);
  c.channels = 21;
  c.outputs = 10;
  const bool delta = begins_with(model, "delta"), ode = model.find("_ode") != std::string::npos;
  set_sizes(c, !delta ? Sizes{128, 32, 512} : ode ? Sizes{160, 16, 80} : Sizes{80, 4, 320});
  return c;
}

ModelConfig sepsis(const std::string& model, Intensity intensity) {
  check_name(model, speech_models());
  ProgrammerConfig c = spline_model(model);
  const bool on = intensity == Intensity::On;
  c.channels = on ? 69 : 35;
  c.static_features = on ? 7 : 5;
  c.outputs = 1;
  c.initial = InitialWeights::StaticFeatures;
  c.unused_layer = true;
  set_sizes(c, sepsis_sizes(model, intensity));
  // the command with intensity takes the tanh after the subtraction
  if (on && begins_with(model, "delta")) c.rule = "delta_post";
  return c;
}

ModelConfig eigenworms(const std::string& model, int64_t depth) {
  check_name(model, eigenworms_models());
  ProgrammerConfig c;
  c.channels = 7;
  c.outputs = 5;
  c.control.path = LogSignatures{.depth = depth,
                                 .windows = PointWindows{.increments = 4, .tail = WindowTail::Drop},
                                 .last_window = LastWindow::Twice};
  c.solver = {.method = rk4(),
              .steps = FixedSteps{.size = 1, .edges = StageEdges::Shortened},
              .gradient = Gradient::Adjoint};
  c.initial = InitialWeights::FirstObservation;
  c.query = QueryTime::LastOfBatch;
  const std::string family = model.substr(model.find('_') + 1);
  const bool large = family == "hebb" || (family == "oja" && depth > 1);
  set_sizes(c, large ? Sizes{160, 16, 128} : Sizes{128, 16, 64});
  c.rule = family == "oja" ? "oja_softmax" : family == "hebb" ? "hebb" : "delta_post";
  if (begins_with(model, "cde_")) {
    c.drive = Drive::Derivative;
    c.value_norm = true;
    if (family == "hebb") c.rule = "delta_pre";
  }
  if (begins_with(model, "multi_")) {
    c.layers = 2;
    c.layer_input = LayerInput::Update;
  }
  return c;
}

std::map<std::string, std::string> load_parameters(Model& model,
                                                   const std::map<std::string, Tensor>& tensors) {
  std::map<std::string, std::string> names;
  std::set<std::string> used;
  for (const auto& [ours, tensor] : model.parameters()) {
    const std::string theirs = find_name(ours, ProgrammerConfig(model.config()).layers, tensors);
    const Tensor& given = tensors.at(theirs);
    FW_CHECK(given.defined() && given.sizes() == tensor.sizes(), "[published] ", theirs, " must be ",
             tensor.sizes(), " for ", ours, ", got ", given.defined() ? message(given.sizes()) : "nothing");
    names[ours] = theirs;
    used.insert(theirs);
  }
  for (const auto& [theirs, tensor] : tensors) {
    FW_CHECK(used.contains(theirs), "[published] unexpected tensor ", theirs);
  }
  // only now, so that what does not fit changes nothing
  const at::NoGradGuard no_grad;
  for (const auto& [ours, tensor] : model.parameters()) tensor.copy_(tensors.at(names[ours]));
  return names;
}

}  // namespace fastweights::published
