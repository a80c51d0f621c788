#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/serialize/archive.h>

#include <memory>
#include <string>
#include <utility>

#include "fastweights/model.h"

/// Wraps any model of the library as a torch::nn::Module, a layer of a larger network. This header is not
/// part of fastweights.h: it is the only one that includes LibTorch's module headers.
///
///     torch::nn::Sequential net(SeriesModule(ModelConfig{.channels = 3, .outputs = 16}),
///                               torch::nn::ReLU(), torch::nn::Linear(16, 2));
///     torch::optim::AdamW adam(net->parameters(), 1e-3);
///     const torch::Tensor logits = net->forward(series);  // RaggedSeries
///     torch::save(net, "net.pt");

namespace fastweights {

/// Parameters have the same names as in model files: named_parameters() returns "layers.0.input.weight".
class SeriesModuleImpl : public torch::nn::Module {
 public:
  explicit SeriesModuleImpl(const ModelConfig& config, const ModelOptions& options = {})
      : SeriesModuleImpl(Model(config, options)) {}
  /// Shares the parameters of the model.
  explicit SeriesModuleImpl(Model model) : torch::nn::Module("SeriesModule"), model_(std::move(model)) {
    register_all();
  }

  /// One row per series: [B, O]. In training mode every call draws new dropout masks.
  Tensor forward(const RaggedSeries& series) { return run({.series = series}).outputs; }

  /// The complete output, also for static features and output times, which a Sequential cannot pass; throws
  /// if the solve failed.
  ModelOutput run(const ModelInput& input) {
    ForwardOptions options;
    if (is_training()) options = {.mode = Mode::Train, .seed = seed_++};
    ModelOutput output = model_.forward(input, options);
    if (!output.status) throw std::runtime_error(output.status.message());
    return output;
  }

  const Model& model() const { return model_; }
  /// Sets the seed of dropout; each call in training mode uses the next one.
  void set_seed(uint64_t seed) { seed_ = seed; }

  void to(torch::Device device, torch::Dtype, bool non_blocking = false) override {
    to(device, non_blocking);
  }
  void to(torch::Dtype type, bool = false) override {
    TORCH_CHECK(type == model_.parameters()[0].second.scalar_type(),
                "the type of a model is that of its ModelOptions");
  }
  /// Call before constructing an optimiser: the parameters on the device are new tensors.
  void to(torch::Device device, bool = false) override {
    if (device == model_.device()) return;
    model_ = model_.to(device);
    register_all();
  }

  /// Writes the configuration and the parameters in order; names such as "ff.in" are not valid LibTorch keys.
  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("config", c10::IValue(to_json(model_.config())));
    int64_t index = 0;
    for (const auto& [name, tensor] : model_.parameters())
      archive.write("parameter_" + std::to_string(index++), tensor.detach());
  }

  void load(torch::serialize::InputArchive& archive) override {
    c10::IValue config;
    archive.read("config", config);
    TORCH_CHECK(config_from_json(config.toStringRef()) == model_.config(),
                "the file has a model of another configuration: ", config.toStringRef());
    const at::NoGradGuard no_grad;
    int64_t index = 0;
    for (const auto& [name, tensor] : model_.parameters()) {
      Tensor value;
      archive.read("parameter_" + std::to_string(index++), value);
      tensor.copy_(value);
    }
  }

 private:
  // names with dots are paths of submodules, which LibTorch joins with dots
  void register_all() {
    for (const auto& [name, tensor] : model_.parameters()) {
      torch::nn::Module* owner = this;
      size_t begin = 0;
      for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', begin)) {
        owner = &child(*owner, name.substr(begin, dot - begin));
        begin = dot + 1;
      }
      set_parameter(*owner, name.substr(begin), tensor);
    }
  }

  struct Part : torch::nn::Module {
    using torch::nn::Module::Module;
    using torch::nn::Module::parameters_;
  };

  static torch::nn::Module& child(torch::nn::Module& owner, const std::string& name) {
    for (const auto& item : owner.named_children()) {
      if (item.key() == name) return *item.value();
    }
    return *owner.register_module(name, std::make_shared<Part>(name));
  }

  void set_parameter(torch::nn::Module& owner, const std::string& name, const Tensor& tensor) {
    auto& own = &owner == this ? parameters_ : static_cast<Part&>(owner).parameters_;
    if (own.contains(name)) {
      own[name] = tensor;
    } else {
      owner.register_parameter(name, tensor);
    }
  }

  Model model_;
  uint64_t seed_ = 1;
};

TORCH_MODULE(SeriesModule);

}  // namespace fastweights
