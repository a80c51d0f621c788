#include "fastweights/optimise.h"
#include "models.h"
#include "tensor/autograd.h"

namespace fastweights::golden {
namespace {

// what a training step needs of a model
struct Trainee {
  std::vector<std::pair<std::string, Tensor>> parameters;
  std::function<Tensor()> logits;
  std::function<bool(const std::string&)> penalised;
};

double training_number(const std::string& text, const std::string& words) {
  const size_t found = text.find(words);
  if (found == std::string::npos)
    throw std::runtime_error("not understood: no '" + words + "' in '" + text + "'");
  return std::stod(text.substr(found + words.size()));
}

// which parameters the penalty on norms looks at
std::function<bool(const std::string&)> penalty_of(const std::string& loss) {
  if (loss.find("of the whole model") != std::string::npos) return [](const std::string&) { return true; };
  if (loss.find("of the fast weight model") != std::string::npos) {
    return [](const std::string& name) { return name.rfind("model.model.", 0) == 0; };
  }
  if (loss.find("of the vector field only") != std::string::npos) {
    return [](const std::string& name) { return name.rfind("func.", 0) == 0; };
  }
  throw std::runtime_error("not understood: loss " + loss);
}

// a neural CDE: z' = tanh(network of relus(z)) x', linear readout at each sample's end
Trainee neural_cde(GoldenFile& file) {
  Trainee trainee;
  std::map<std::string, Tensor> p;
  for (const auto& [name, tensor] : file_parameters(file)) {
    p[name] = tensor.clone().set_requires_grad(true);
    trainee.parameters.emplace_back(name, p[name]);
  }
  const Tensor times = file.tensor("in.times"), data = file.tensor("in.X_raw");
  const Control control(shared_times(times, data), {.interpolation = NaturalCubic{EndFilling::EndPoint}});
  const auto hidden_layers = static_cast<int64_t>(file.number("num_hidden_layers"));
  const auto linear = [p](const std::string& name, const Tensor& x) {
    return at::linear(x, p.at(name + ".weight"), p.at(name + ".bias"));
  };
  const Field field = [linear, control, hidden_layers](const Time& t, const Tensor& z) {
    Tensor hidden = at::relu(linear("func.linear_in", z));
    for (int64_t i = 0; i + 1 < hidden_layers; ++i) {
      hidden = at::relu(linear("func.linears." + std::to_string(i), hidden));
    }
    const Tensor matrix = at::tanh(linear("func.linear_out", hidden)).view({z.size(0), z.size(1), -1});
    return at::matmul(matrix, control.at(t).derivative.unsqueeze(-1)).squeeze(-1);
  };
  std::vector<Tensor> field_parameters;
  for (const auto& [name, tensor] : p) {
    if (name.rfind("func.", 0) == 0) field_parameters.push_back(tensor);
  }
  const Tensor ends = times.index_select(0, file.tensor("in.final_index"));
  const Tensor ts = std::get<0>(at::_unique(at::cat({ends, times.slice(0, 0, 1), times.slice(0, -1)}, 0)));
  const Tensor rows = at::searchsorted(ts, ends);
  const double gap = (times.slice(0, 1) - times.slice(0, 0, -1)).min().item<double>();
  trainee.logits = [=] {
    const Tensor z0 = linear("initial_network", control.at(Time(control.begin())).value);
    const Solution solution =
        solve(field, z0, ts,
              {.steps = FixedSteps{gap}, .gradient = Gradient::Adjoint, .parameters = field_parameters});
    return linear("linear", solution.ys.index({rows, at::arange(z0.size(0), at::kLong)}));
  };
  return trainee;
}

Trainee fast_weight_programmer(GoldenFile& file) {
  auto published = std::make_shared<PublishedModel>(spline_model(file));
  const Tensor like = file.tensor("out.logits_step0");
  return {published->named(),
          [published, like] { return published_logits(published->model.forward(published->input), like); },
          {}};
}

bool is_head(const std::string& name) {
  const std::string part = name.substr(0, name.rfind('.'));
  return part == "linear" || part == "model.model.linear";
}

}  // namespace

void check_train(GoldenFile& file) {
  const std::string loss_text = file.text("loss"), optimiser = file.text("optimiser");
  if (file.text("gradients") != "adjoint, rk4, step_size = smallest gap between times") {
    throw std::runtime_error("not understood: gradients " + file.text("gradients"));
  }
  compare_coefficients(file);
  Trainee trainee = file.text("model_name") == "ncde" ? neural_cde(file) : fast_weight_programmer(file);
  trainee.penalised = penalty_of(loss_text);
  const double penalty = training_number(loss_text, " + ");
  const double head_scale = training_number(file.text("gradient_hook"), "multiplied by ");
  std::vector<Tensor> parameters, penalised;
  for (const auto& [name, tensor] : trainee.parameters) {
    parameters.push_back(tensor);
    if (trainee.penalised(name)) penalised.push_back(tensor);
  }
  if (optimiser.find("betas 0.9 0.999, eps 1e-8, no weight decay") == std::string::npos) {
    throw std::runtime_error("not understood: optimiser " + optimiser);
  }
  Adam adam(parameters, {.learning_rate = training_number(optimiser, "Adam lr ")});

  const auto steps = static_cast<int64_t>(file.number("steps"));
  for (int64_t step = 0; step < steps; ++step) {
    const std::string at_step = "_step" + std::to_string(step);
    const Tensor logits = trainee.logits();
    file.compare("out.logits" + at_step, logits.detach(), kRounding);
    const Tensor loss = published_loss(file, logits) + norm_penalty(penalised, penalty);
    file.compare("out.loss" + at_step, loss.detach(), kRounding);
    std::vector<Tensor> grads = gradients(loss, parameters);
    for (size_t i = 0; i < grads.size(); ++i) {
      const std::string& name = trainee.parameters[i].first;
      // the published hook on the readout's gradient
      if (is_head(name)) grads[i] = grads[i] * head_scale;
      if (step == 0) file.compare("grad_step0." + name, grads[i], kRounding);
    }
    adam.step(grads);
  }
  for (const auto& [name, tensor] : trainee.parameters) {
    file.compare("param_after." + name, tensor.detach(), kRounding);
  }
}

}  // namespace fastweights::golden
