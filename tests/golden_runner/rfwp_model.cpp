#include "rfwp_model.h"

#include "architectures/packed.h"
#include "base/error.h"

namespace fastweights::golden {

Parameters::Parameters(GoldenFile& file) {
  for (const std::string& name : file.names("param."))
    tensors_[name.substr(6)] = file.tensor(name).clone().set_requires_grad(true);
}

Tensor Parameters::tensor(const std::string& name) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw std::runtime_error("the file has no parameter " + name);
  used_.insert(name);
  return found->second;
}

nn::Linear Parameters::linear(const std::string& name) {
  return {tensor(name + ".weight"), has(name + ".bias") ? tensor(name + ".bias") : Tensor()};
}

nn::LayerNorm Parameters::layer_norm(const std::string& name) {
  return {tensor(name + ".weight"), tensor(name + ".bias")};
}

nn::FeedForward Parameters::feed_forward(const std::string& name) {
  return {layer_norm(name + ".layer_norm"), linear(name + ".ff_layers.0"), linear(name + ".ff_layers.3")};
}

std::vector<nn::Linear> Parameters::layers(const std::string& name) {
  std::vector<nn::Linear> result;
  for (int64_t l = 0; has(message(name, ".", l, ".weight")); l += 2)
    result.push_back(linear(message(name, ".", l)));
  return result;
}

std::string Parameters::unused() const {
  for (const auto& [name, tensor] : tensors_) {
    if (!used_.contains(name)) return name;
  }
  return "";
}

namespace {

int64_t size_of(const GoldenFile& file, const std::string& key) {
  return static_cast<int64_t>(file.number(key));
}

// the network of the ODE, which must be what the text says: "Linear-Tanh-Linear, units 10"
FieldNet field_net(const GoldenFile& file, Parameters& parameters) {
  const FieldNet field = {parameters.layers("diffeq_solver.ode_func.net")};
  std::string said = "Linear";
  for (size_t l = 1; l < field.layers.size(); ++l) said += "-Tanh-Linear";
  said += message(", units ", field.layers.at(0).weight.size(0));
  if (said != file.text("ode_net")) throw std::runtime_error("not understood: ode_net is " + said);
  return field;
}

Rule rule_of(const std::string& name) {
  if (name == "hebb") return hebb();
  if (name == "oja") return oja_softmax();
  if (name == "delta") return delta_post();
  throw std::runtime_error("not understood: rule " + name);
}

RfwpCell rfwp_cell(const GoldenFile& file, Parameters& parameters) {
  const Rule rule = rule_of(file.text("rule"));
  RfwpCell cell;
  cell.wiring = rfwp_wiring(rule, size_of(file, "latent_dim"), size_of(file, "num_heads"));
  if (cell.wiring.key_width != size_of(file, "head_dim"))
    throw std::runtime_error("not understood: head_dim");
  cell.merged = published_merging(rule);
  cell.input = parameters.linear("update_layer.input_proj");
  cell.norm = parameters.layer_norm("update_layer.input_layer_norm");
  cell.merge = parameters.linear("update_layer.merge_layer");
  cell.program = parameters.linear("update_layer.kvb_net");
  cell.query_input = parameters.linear("input_proj");
  cell.query_norm = parameters.layer_norm("input_layer_norm");
  cell.query = parameters.linear("query_net");
  cell.out = parameters.linear("out_proj");
  cell.ff = parameters.feed_forward("ff_block");
  if (cell.ff.in.weight.size(0) != size_of(file, "ff_dim"))
    throw std::runtime_error("not understood: ff_dim");
  return cell;
}

// fast weights and an ODE, in the order that the file says
Step rfwp_step(const GoldenFile& file, Parameters& parameters, const FieldNet& field) {
  const RfwpCell cell = rfwp_cell(file, parameters);
  const bool data_first = file.json("add_data_first").get<bool>();
  return [cell, data_first, field](const SolverConfig& solver, const Tensor& data, const RfwpState& before,
                                   const Tensor& dt) {
    const RfwpCell::Projections projected = cell.project(data);
    const Tensor u = data_first ? before.h : evolve(solver, field, before.h, dt);
    const Tensor w = cell.write(projected.merged, u, before.w);
    const Tensor h = cell.read(projected.q, w);
    return RfwpState{data_first ? evolve(solver, field, h, dt) : h, w};
  };
}

Step gru_step(Parameters& parameters, const FieldNet& field) {
  const GruCell cell = {{parameters.tensor("gru_cell.weight_ih"), parameters.tensor("gru_cell.bias_ih")},
                        {parameters.tensor("gru_cell.weight_hh"), parameters.tensor("gru_cell.bias_hh")}};
  return [cell, field](const SolverConfig& solver, const Tensor& data, const RfwpState& before,
                       const Tensor& dt) {
    return RfwpState{cell(linear(cell.input, data), evolve(solver, field, before.h, dt)), {}};
  };
}

Step linear_step(Parameters& parameters, const FieldNet& field) {
  const nn::Linear merge = parameters.linear("aug_layer");
  return [merge, field](const SolverConfig& solver, const Tensor& data, const RfwpState& before,
                        const Tensor& dt) {
    return RfwpState{evolve(solver, field, linear(merge, at::cat({data, before.h}, 1)), dt), {}};
  };
}

LatentNet latent_net(const GoldenFile& file, Parameters& parameters) {
  const LatentNet net = {parameters.linear("encoder_z0.hidden_to_z0.0"),
                         parameters.linear("encoder_z0.hidden_to_z0.2")};
  if (net.hidden.weight.size(0) != size_of(file, "encoder_hidden_to_z0_units"))
    throw std::runtime_error("not understood: encoder_hidden_to_z0_units");
  return net;
}

Encoder gru_encoder(const GoldenFile& file, Parameters& parameters) {
  const LatentNet net = latent_net(file, parameters);
  const std::string rnn = "encoder_z0.rnn.";
  const GruCell cell = {{parameters.tensor(rnn + "weight_ih_l0"), parameters.tensor(rnn + "bias_ih_l0")},
                        {parameters.tensor(rnn + "weight_hh_l0"), parameters.tensor(rnn + "bias_hh_l0")}};
  return [net, cell](const Tensor& data, const Tensor& offsets) {
    const Packed packed = pack(offsets);
    const Tensor first = at::zeros({offsets.size(0) - 1, cell.state.weight.size(1)}, data.options());
    const Tensor states = gru_states(cell, packed, data.index_select(0, packed.packed_to_batch), first);
    const Tensor last = packed.batch_to_packed.index_select(0, offsets.slice(0, 1) - 1);
    return net(states.index_select(0, last));
  };
}

Encoder delta_encoder(const GoldenFile& file, Parameters& parameters) {
  const LatentNet net = latent_net(file, parameters);
  const nn::Linear input = parameters.linear("encoder_z0.fwp.input_proj");
  const std::string name = "encoder_z0.fwp.layers.0.";
  const int64_t heads = size_of(file, "num_heads");
  const nn::LayerNorm norm = parameters.layer_norm(name + "layer_norm");
  const nn::Linear slow = parameters.linear(name + "slow_net"), out = parameters.linear(name + "out_linear");
  const nn::FeedForward ff = parameters.feed_forward("encoder_z0.final_ff");
  return [=](const Tensor& data, const Tensor& offsets) {
    const Tensor x = linear(input, data);
    const Packed packed = pack(offsets);
    const Tensor numbers = linear(slow, layer_norm(norm, x)).view({x.size(0), heads, -1});
    const RowReads read = delta_net(numbers, {.packed = packed, .offsets = offsets}, Backend::Auto);
    const Tensor states = x + linear(out, read.y.reshape(x.sizes()));
    const Tensor last = states.index_select(0, offsets.slice(0, 1) - 1);
    return net(nn::feed_forward(ff, {last, {}}, Products::Fast).value);
  };
}

}  // namespace

EnvironmentModel make_environment_model(GoldenFile& file, Parameters& parameters) {
  const std::string name = file.text("model"), timer = file.text("timer");
  EnvironmentModel model;
  model.size = size_of(file, "latent_dim");
  model.decoder = parameters.linear("decoder.decoder");
  const FieldNet field = field_net(file, parameters);
  if (name == "ode_gru") {
    model.step = gru_step(parameters, field);
  } else if (name == "latent_ode") {
    model.step = linear_step(parameters, field);
    model.encode = gru_encoder(file, parameters);
  } else if (name == "ode_rfwp" || name == "latent_ode_rfwp" || name == "latent_ode_rfwp_full") {
    model.heads = size_of(file, "num_heads");
    model.step = rfwp_step(file, parameters, field);
    if (name == "latent_ode_rfwp") model.encode = gru_encoder(file, parameters);
    if (name == "latent_ode_rfwp_full") model.encode = delta_encoder(file, parameters);
  } else {
    throw std::runtime_error("not understood: model " + name);
  }
  if (timer == "MLPTimer (one output, mean squared error)") {
    model.timer = parameters.layers("timer.net");
  } else if (timer != "Timer (no dt loss)") {
    throw std::runtime_error("not understood: timer " + timer);
  }
  const std::string unused = parameters.unused();
  if (!unused.empty()) throw std::runtime_error("not understood: parameter " + unused);
  return model;
}

}  // namespace fastweights::golden
