#include "fastweights/published.h"
#include "base/error.h"

#include "model/programmer_config.h"

#include "data/data_support.h"
#include "fastweights/run.h"
#include "support/support.h"

namespace fastweights {
namespace {

using published::Intensity;
using testing::error_message;
using testing::random;

// numbers of the models of the published code, counted there by building its own modules
int64_t parameters(ProgrammerConfig config) { return Model(config).parameter_count(); }

int64_t with_value_norm(ProgrammerConfig config) {
  config.value_norm = true;
  return parameters(config);
}

int64_t unused_parameters(const ProgrammerConfig& config) {
  const Model model(config);
  int64_t count = 0;
  for (const auto& [name, tensor] : model.parameters()) {
    if (name.rfind("unused.", 0) == 0) count += tensor.numel();
  }
  return count;
}

// fast weights of one sample
int64_t state_size(const ProgrammerConfig& config) {
  const Model model(config);
  const Tensor times = at::arange(5, at::kDouble);
  const RaggedSeries series = shared_times(times, random({5, config.channels}, 1));
  ModelInput input = {.series = series};
  if (config.static_features > 0) input.static_features = random({1, config.static_features}, 2);
  const ModelOutput output = model.forward(input);
  int64_t size = 0;
  for (const Tensor& w : output.last.w) size += w.numel();
  return size;
}

TEST(Published, SpeechModelsHaveAsManyParametersAsPublished) {
  struct Case {
    const char* model;
    int64_t count, value_norm, unused, state;
  };
  const Case cases[] = {
      {"hebb_ode", 209'322, 0, 2'816, 512},      {"oja_ode", 209'322, 0, 2'816, 512},
      {"delta_ode", 140'746, 0, 3'520, 1'600},   {"hebb_cde", 195'626, 212'394, 2'816, 512},
      {"oja_cde", 195'626, 212'394, 2'816, 512}, {"delta_cde", 77'774, 84'414, 1'760, 1'600}};
  for (const Case& c : cases) {
    const ProgrammerConfig config = ProgrammerConfig(published::speech(c.model));
    EXPECT_EQ(parameters(config), c.count) << c.model;
    if (c.value_norm > 0) {
      EXPECT_EQ(with_value_norm(config), c.value_norm) << c.model;
    }
    EXPECT_EQ(unused_parameters(config), c.unused) << c.model;
    EXPECT_EQ(state_size(config), c.state) << c.model;
  }
}

TEST(Published, SepsisModelsHaveAsManyParametersAsPublished) {
  struct Case {
    const char* model;
    Intensity intensity;
    int64_t count, value_norm;
  };
  const Case cases[] = {
      {"hebb_ode", Intensity::On, 244'609, 0},       {"oja_ode", Intensity::On, 244'609, 0},
      {"delta_ode", Intensity::On, 175'201, 0},      {"hebb_cde", Intensity::On, 47'537, 48'657},
      {"oja_cde", Intensity::On, 95'601, 102'241},   {"delta_cde", Intensity::On, 95'601, 102'241},
      {"hebb_ode", Intensity::Off, 31'185, 0},       {"oja_ode", Intensity::Off, 233'217, 0},
      {"delta_ode", Intensity::Off, 90'529, 0},      {"hebb_cde", Intensity::Off, 213'217, 239'297},
      {"oja_cde", Intensity::Off, 213'217, 239'297}, {"delta_cde", Intensity::Off, 213'217, 239'297}};
  for (const Case& c : cases) {
    const ProgrammerConfig config = ProgrammerConfig(published::sepsis(c.model, c.intensity));
    EXPECT_EQ(parameters(config), c.count) << c.model;
    if (c.value_norm > 0) {
      EXPECT_EQ(with_value_norm(config), c.value_norm) << c.model;
    }
    // the state is H (d / H)^2
    EXPECT_EQ(state_size(config), config.hidden_size * config.hidden_size / config.heads) << c.model;
  }
  // the command in the published README leaves d_ff at 4 d and adds the LayerNorm on values
  ProgrammerConfig readme = ProgrammerConfig(published::sepsis("delta_cde", Intensity::Off));
  readme.feed_forward_size = 640;
  EXPECT_EQ(with_value_norm(readme), 424'193);
}

TEST(Published, EigenWormsModelsHaveAsManyParametersAsPublished) {
  EXPECT_EQ(parameters(published::eigenworms("ode_hebb", 2)), 153'173);
  EXPECT_EQ(parameters(published::eigenworms("ode_oja", 2)), 153'173);
  EXPECT_EQ(parameters(published::eigenworms("ode_delta", 2)), 89'781);
  EXPECT_EQ(parameters(published::eigenworms("ode_hebb", 1)), 149'645);
  EXPECT_EQ(parameters(published::eigenworms("ode_oja", 1)), 86'925);
  EXPECT_EQ(parameters(published::eigenworms("ode_delta", 1)), 86'925);
  // 128 wide, 16 heads of 8; 160 wide, 16 heads of 10
  EXPECT_EQ(state_size(published::eigenworms("ode_delta", 1)), 16 * 8 * 8);
  EXPECT_EQ(state_size(published::eigenworms("ode_hebb", 2)), 16 * 10 * 10);
}

TEST(Published, TheTwoLayerModelHasAsManyParametersAsPublished) {
  EXPECT_EQ(parameters(published::eigenworms("multi_delta", 1)), 155'613);
  EXPECT_EQ(state_size(published::eigenworms("multi_delta", 1)), 2 * 16 * 8 * 8);
}

TEST(Published, AnUnknownModelIsNamedWithTheNearestOne) {
  EXPECT_EQ(error_message([] { published::speech("delta_cd"); }),
            "[published] unknown model 'delta_cd'; the nearest is 'delta_cde'");
  EXPECT_EQ(error_message([] { published::sepsis("hebb-ode", Intensity::On); }),
            "[published] unknown model 'hebb-ode'; the nearest is 'hebb_ode'");
  EXPECT_EQ(error_message([] { published::eigenworms("ode_delt", 1); }),
            "[published] unknown model 'ode_delt'; the nearest is 'ode_delta'");
  EXPECT_EQ(error_message([] { check_config(published::eigenworms("ode_delta", 0)); }),
            "[config] control.depth must be at least 1, got 0");
}

struct Loading {
  Model model;
  std::map<std::string, Tensor> tensors;  // by the published names, as they should be
};

Tensor parameter_of(const Model& model, const std::string& wanted) {
  for (const auto& [name, tensor] : model.parameters()) {
    if (name == wanted) return tensor;
  }
  return {};
}

Loading small_model() {
  ProgrammerConfig config = ProgrammerConfig(published::speech("delta_cde"));
  config.channels = 3;
  config.outputs = 2;
  config.hidden_size = 6;
  config.heads = 2;
  config.feed_forward_size = 5;
  Loading result = {Model(config, {.seed = 5}), {}};
  const std::pair<const char*, const char*> names[] = {{"layers.0.input", "update_net.input_proj"},
                                                       {"layers.0.norm", "update_net.input_layer_norm"},
                                                       {"layers.0.program", "update_net.kb_net"},
                                                       {"layers.0.value", "update_net.vs_proj"},
                                                       {"layers.0.query", "query_net"},
                                                       {"out", "out_proj"},
                                                       {"ff.norm", "ff_block.layer_norm"},
                                                       {"ff.in", "ff_block.ff_layers.0"},
                                                       {"ff.out", "ff_block.ff_layers.3"},
                                                       {"head", "linear"},
                                                       {"unused", "initial_network"}};
  const Model other(config, {.seed = 6});
  for (const auto& [name, tensor] : other.parameters()) {
    const size_t dot = name.rfind('.');
    for (const auto& [ours, theirs] : names) {
      if (name.substr(0, dot) == ours)
        result.tensors["model." + std::string(theirs) + name.substr(dot)] = tensor.detach();
    }
  }
  return result;
}

TEST(Published, ParametersComeInByTheirPublishedNames) {
  Loading loading = small_model();
  const auto names = published::load_parameters(loading.model, loading.tensors);
  ASSERT_EQ(names.size(), loading.model.parameters().size());
  EXPECT_EQ(names.at("layers.0.program.weight"), "model.update_net.kb_net.weight");
  for (const auto& [name, tensor] : loading.model.parameters()) {
    EXPECT_TRUE(at::equal(tensor, loading.tensors.at(names.at(name)))) << name;
    EXPECT_TRUE(tensor.requires_grad() && tensor.is_leaf()) << name;
  }
}

TEST(Published, AFileOfThemIsABeginning) {
  Loading loading = small_model();
  const TestFolder folder;
  const std::string path = folder.path("published.safetensors");
  save_safetensors(path, {.tensors = loading.tensors, .metadata = {}});
  EXPECT_EQ(initialise_from(loading.model, path),
            message("initialised ", loading.tensors.size(), " parameters from ", path,
                    ", by the names of the published code"));
  EXPECT_TRUE(
      at::equal(parameter_of(loading.model, "head.weight"), loading.tensors.at("model.linear.weight")));
  loading.tensors.erase("model.linear.weight");
  save_safetensors(path, {.tensors = loading.tensors, .metadata = {}});
  const std::string text = error_message<std::runtime_error>([&] { initialise_from(loading.model, path); });
  EXPECT_EQ(text.substr(0, path.size() + 2), path + ": ");
  EXPECT_NE(text.find("linear.weight"), std::string::npos) << text;
}

TEST(Published, TensorsThatDoNotFitAreNamedAndChangeNothing) {
  const std::string kb = "model.update_net.kb_net.weight";
  struct Case {
    std::function<void(std::map<std::string, Tensor>&)> damage;
    std::string sentence;
  };
  const Case cases[] = {
      {[&](auto& t) {
         t[kb] = random({6, 8}, 1);
       },
       "[published] model.update_net.kb_net.weight must be [8, 6] for layers.0.program.weight, got [6, 8]"},
      {[&](auto& t) { t["model.linear.bias"] = random({}, 1); },
       "[published] model.linear.bias must be [2] for head.bias, got []"},
      {[&](auto& t) { t[kb] = Tensor(); },
       "[published] model.update_net.kb_net.weight must be [8, 6] for layers.0.program.weight, got "
       "nothing"},
      {[&](auto& t) { t.erase(kb); },
       "[published] missing tensor for parameter layers.0.program.weight, which would be "
       "update_net.kvb_net.weight "
       "or update_net.kb_net.weight"},
      {[&](auto& t) { t.erase("model.initial_network.bias"); },
       "[published] missing tensor for parameter unused.bias, which would be initial_network.bias"},
      {[&](auto& t) { t["model.func.more"] = random({2}, 1); },
       "[published] unexpected tensor model.func.more"},
      // the same layer under two names
      {[&](auto& t) { t["linear.bias"] = random({2}, 1); },
       "[published] unexpected tensor model.linear.bias"},
      {[&](auto& t) { t.clear(); }, "[published] missing tensor for parameter layers.0.input.weight"}};
  for (const Case& c : cases) {
    Loading loading = small_model();
    std::vector<Tensor> before;
    for (const Tensor& p : loading.model.parameter_tensors()) before.push_back(p.detach().clone());
    c.damage(loading.tensors);
    const std::string found =
        error_message([&] { published::load_parameters(loading.model, loading.tensors); });
    EXPECT_EQ(found.find(c.sentence), 0u) << found;
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(at::equal(loading.model.parameter_tensors()[i], before[i])) << c.sentence;
    }
  }
}

}  // namespace
}  // namespace fastweights
