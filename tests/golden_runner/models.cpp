#include "models.h"

#include "model/programmer_config.h"

#include "fastweights/published.h"
#include "tensor/autograd.h"

namespace fastweights::golden {
namespace {

bool model_flag(const GoldenFile& file, const std::string& key) {
  return file.has_text(key) && file.json(key).get<bool>();
}

// torchdiffeq's arguments
void read_model_solver(const GoldenFile& file, SolverConfig& solver) {
  if (!file.has_text("solver_method")) return;
  solver.method = method(file.text("solver_method"));
  const nlohmann::json options = file.json("solver_options");
  for (const auto& [key, value] : options.items()) {
    if (key != "step_size") throw std::runtime_error("not understood: solver option " + key);
    std::get<FixedSteps>(solver.steps).size = value.get<double>();
  }
  if (!file.has_text("solver_kwargs")) return;
  const nlohmann::json arguments = file.json("solver_kwargs");
  AdaptiveSteps adaptive = {.control = ErrorControl::Joint};
  for (const auto& [key, value] : arguments.items()) {
    if (key == "rtol") {
      adaptive.rtol = value.get<double>();
    } else if (key == "atol") {
      adaptive.atol = value.get<double>();
    } else if (key != "method" && key != "options") {
      throw std::runtime_error("not understood: solver argument " + key);
    }
  }
  if (arguments.contains("rtol")) solver.steps = adaptive;
}

ProgrammerConfig spline_programmer(GoldenFile& file) {
  const std::string name = file.text("model_name");
  const bool from_static = file.has("in.static");
  ProgrammerConfig config =
      from_static ? published::sepsis(name, published::Intensity::Off) : published::speech(name);
  config.channels = file.tensor("in.X_raw").size(2);
  config.hidden_size = static_cast<int64_t>(file.number("hidden_channels"));
  config.heads = static_cast<int64_t>(file.number("num_heads"));
  config.feed_forward_size = static_cast<int64_t>(file.number("trafo_ff_dim"));
  config.outputs = static_cast<int64_t>(file.number("output_channels"));
  config.value_norm = model_flag(file, "use_v_laynorm");
  if (model_flag(file, "delta_post_tanh")) {
    if (config.rule != "delta_pre") throw std::runtime_error("not understood: delta_post_tanh with " + name);
    config.rule = "delta_post";
  }
  if (config.tensor_map) {
    config.map_hidden_size = static_cast<int64_t>(file.number("hidden_hidden_channels"));
    config.map_layers = static_cast<int64_t>(file.number("num_hidden_layers"));
  }
  if (from_static) {
    config.static_features = file.tensor("in.static").size(1);
    config.static_hidden_size = file.tensor("param.model.linear1.weight").size(0);
  }
  read_model_solver(file, config.solver);
  config.backend = file.target().backend;
  return config;
}

}  // namespace

std::map<std::string, Tensor> file_parameters(GoldenFile& file) {
  std::map<std::string, Tensor> parameters;
  for (const std::string& name : file.names("param.")) parameters[name.substr(6)] = file.tensor(name);
  return parameters;
}

void compare_coefficients(GoldenFile& file) {
  const Tensor data = file.tensor("in.X_raw");
  const Control control(shared_times(file.tensor("in.times"), data),
                        {.interpolation = NaturalCubic{EndFilling::EndPoint}});
  const char* names[] = {"in.coeff_a", "in.coeff_b", "in.coeff_two_c", "in.coeff_three_d"};
  for (int64_t term = 0; term < 4; ++term) {
    const Tensor ours = control.coefficients().select(1, term);
    file.compare(names[term], ours.reshape({data.size(0), -1, data.size(2)}), kRounding);
  }
}

PublishedModel spline_model(GoldenFile& file) {
  PublishedModel result = {
      Model(spline_programmer(file), {.type = file.target().type, .device = file.target().device}), {}, {}};
  result.names = published::load_parameters(result.model, file_parameters(file));
  const Tensor times = file.tensor("in.times"), data = file.tensor("in.X_raw");
  result.input.series = shared_times(times, data);
  result.input.output_times = {times.index_select(0, file.tensor("in.final_index")),
                               at::arange(data.size(0) + 1, at::kLong)};
  if (file.has("in.static")) result.input.static_features = file.tensor("in.static");
  return result;
}

Tensor published_loss(GoldenFile& file, const Tensor& logits) {
  const std::string text = file.text("loss");
  const Tensor labels = file.tensor("in.labels").to(logits.device());
  if (text.rfind("cross_entropy", 0) == 0 || text.rfind("cross entropy", 0) == 0) {
    return at::cross_entropy_loss(logits, labels);
  }
  const std::string binary = "binary cross entropy with logits, pos_weight ";
  if (text.rfind(binary, 0) != 0) throw std::runtime_error("not understood: loss " + text);
  const double weight = std::stod(text.substr(binary.size()));
  return at::binary_cross_entropy_with_logits(logits, labels.to(logits.scalar_type()), {},
                                              at::full({}, weight, logits.options().requires_grad(false)));
}

Tensor published_logits(const ModelOutput& output, const Tensor& like) {
  return like.dim() == 1 ? output.outputs.squeeze(1) : output.outputs;
}

std::vector<std::pair<std::string, Tensor>> PublishedModel::named() const {
  std::vector<std::pair<std::string, Tensor>> result;
  for (const auto& [ours, tensor] : model.parameters()) result.emplace_back(names.at(ours), tensor);
  return result;
}

std::map<std::string, Tensor> published_gradients(const PublishedModel& published, const Tensor& loss) {
  const std::vector<Tensor> grads =
      vector_jacobian({loss}, published.model.parameter_tensors(), {at::ones_like(loss)});
  std::map<std::string, Tensor> result;
  size_t i = 0;
  for (const auto& [ours, tensor] : published.model.parameters())
    result[published.names.at(ours)] = grads[i++];
  return result;
}

}  // namespace fastweights::golden
