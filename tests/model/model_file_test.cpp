#include <cstdio>
#include <filesystem>
#include <fstream>

#include "fastweights/model.h"
#include "fastweights/tensor.h"
#include "model/programmer_config.h"
#include "support/support.h"

namespace fastweights {
namespace {

using testing::error_message;
using testing::irregular_times;
using testing::random;
using testing::relative_error;
using testing::with_missing;

// many parts: two layers, values of their own with a norm, a network of static features
ProgrammerConfig rich_config() {
  ProgrammerConfig config;
  config.channels = 3;
  config.static_features = 2;
  config.outputs = 5;
  config.rule = "oja_softmax";
  config.drive = Drive::DerivativeKeys;
  config.control.path = NaturalCubic{};
  config.solver.method = midpoint();
  config.solver.steps = ObservationSteps{.parts = 1, .max_step = 0.5};
  config.hidden_size = 12;
  config.heads = 2;
  config.key_width = 4;
  config.feed_forward_size = 7;
  config.static_hidden_size = 9;
  config.layers = 2;
  config.value_norm = true;
  config.initial = InitialWeights::StaticFeatures;
  config.time_unit = 1.25;
  return config;
}

ModelInput file_input() {
  const Tensor a = irregular_times(5, 1), b = irregular_times(8, 2);
  return {.series = ragged({a, b}, {with_missing(random({5, 3}, 3), 0.2, 4), random({8, 3}, 5)}),
          .static_features = random({2, 2}, 6)};
}

Rule own_rule() {
  return {.name = "decaying_hebb",
          .slope = [](const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& w) {
            return outer_product(beta * v, k) - 0.1 * w;
          }};
}

class ModelFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() / ("fastweights_model_" + std::string(info->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    // not remove_all: LibTorch 2.11 from pip brings a copy of it into the process that crashes
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) std::remove(entry.path().c_str());
    std::remove(folder_.c_str());
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // the sentence for a file whose contents were changed
  std::string refused(const std::function<void(NamedTensors&)>& change) const {
    save_model(path("model"), Model(rich_config()));
    NamedTensors contents = load_safetensors(path("model"));
    change(contents);
    save_safetensors(path("model"), contents);
    return error_message<std::runtime_error>([&] { load_model(path("model")); });
  }
  void expect_refused(const std::function<void(NamedTensors&)>& change, const std::string& sentence) const {
    EXPECT_EQ(refused(change).find("[load_model] " + path("model") + ": " + sentence), 0u) << refused(change);
  }

  std::filesystem::path folder_;
};

TEST_F(ModelFile, ComesBackBitForBit) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    const Model model(rich_config(), {.seed = 7, .type = type});
    save_model(path("model"), model);
    const Model back = load_model(path("model"));
    EXPECT_TRUE(back.config() == model.config());
    ASSERT_EQ(back.parameters().size(), model.parameters().size());
    for (size_t i = 0; i < model.parameters().size(); ++i) {
      const auto& [name, tensor] = back.parameters()[i];
      EXPECT_EQ(name, model.parameters()[i].first);
      EXPECT_EQ(tensor.scalar_type(), type);
      EXPECT_TRUE(at::equal(tensor, model.parameters()[i].second)) << name;
      EXPECT_TRUE(tensor.requires_grad() && tensor.is_leaf()) << name;
    }
    const ModelOutput expected = model.forward(file_input()), got = back.forward(file_input());
    EXPECT_TRUE(at::equal(got.outputs, expected.outputs));
    for (size_t l = 0; l < expected.w.size(); ++l) EXPECT_TRUE(at::equal(got.w[l], expected.w[l]));
  }
}

TEST_F(ModelFile, WritingAgainReplacesTheFileAndLeavesNothingElse) {
  save_model(path("model"), Model(rich_config(), {.seed = 1}));
  const Model second(rich_config(), {.seed = 2});
  save_model(path("model"), second);
  EXPECT_TRUE(at::equal(load_model(path("model")).parameters()[0].second, second.parameters()[0].second));
  const std::filesystem::directory_iterator begin(folder_), end;
  EXPECT_EQ(std::distance(begin, end), 1);
}

TEST_F(ModelFile, AModelOfAGpuCanBeLoadedWithoutOne) {
  ProgrammerConfig config = rich_config();
  config.backend = Backend::Cuda;
  save_model(path("model"), Model(config));
  const Model back = load_model(path("model"));
  EXPECT_EQ(ProgrammerConfig(back.config()).backend, Backend::Cuda);
  EXPECT_EQ(testing::error_message<std::runtime_error>([&] { back.forward(file_input()); }),
            "[model] backend cuda cannot be used: the model is on the CPU");
}

TEST_F(ModelFile, OwnRulesMustBeGiven) {
  ProgrammerConfig config = rich_config();
  config.rule = own_rule().name;
  const Model model(config, {.custom_rules = {own_rule()}});
  save_model(path("model"), model);
  EXPECT_EQ(
      error_message<std::runtime_error>([&] {
        load_model(path("model"));
      }).find("[load_model] " + path("model") + ": [config] rule cannot be 'decaying_hebb'; the nearest is "),
      0u);
  const Model back = load_model(path("model"), {own_rule()});
  EXPECT_TRUE(at::equal(back.forward(file_input()).outputs, model.forward(file_input()).outputs));
}

TEST_F(ModelFile, TensorsThatDoNotFitAreNamed) {
  const std::string name = "layers.0.program.weight";
  expect_refused([&](NamedTensors& f) { f.tensors.erase(name); }, "parameter " + name + " is missing");
  expect_refused([&](NamedTensors& f) { f.tensors["more"] = at::zeros({2}); }, "unexpected tensor more");
  expect_refused(
      [&](NamedTensors& f) {
        f.tensors.erase(name);
        f.tensors["more"] = at::zeros({2});
      },
      "parameter " + name + " is missing");
  // 2 heads of 4 keys and a rate
  expect_refused(
      [&](NamedTensors& f) {
        f.tensors[name] = at::zeros({12, 10});
      },
      "parameter " + name + " must be Float [10, 12], it is Float [12, 10]");
  expect_refused([&](NamedTensors& f) { f.tensors[name] = f.tensors[name].to(at::kDouble); },
                 "parameter " + name + " must be Float [10, 12], it is Double [10, 12]");
  expect_refused([&](NamedTensors& f) { f.tensors.clear(); }, "the file contains no tensors");
  expect_refused(
      [&](NamedTensors& f) {
        for (auto& [key, tensor] : f.tensors) tensor = tensor.to(at::kHalf);
      },
      "[model] parameters are float32 or float64, not Half");
}

TEST_F(ModelFile, MetadataThatDoNotFitAreNamed) {
  const std::string format = "this is not a model file; the metadata must have format 'fastweights model 1'";
  expect_refused([](NamedTensors& f) { f.metadata.clear(); }, format);
  expect_refused([](NamedTensors& f) { f.metadata["format"] = "fastweights model 2"; }, format);
  expect_refused([](NamedTensors& f) { f.metadata.erase("config"); },
                 "there is no configuration in the metadata");
  expect_refused([](NamedTensors& f) { f.metadata["config"] = "{"; }, "[config] this is not JSON: ");
  expect_refused([](NamedTensors& f) { f.metadata["config"] = R"({"chanels": 3})"; },
                 "[config] unknown key 'chanels'; the nearest is 'channels'");
  expect_refused([](NamedTensors& f) { f.metadata["config"] = R"({"heads": 3})"; },
                 "[config] hidden_size 32 is not divisible by heads 3");
  // nothing is reserved for what cannot be meant
  expect_refused([](NamedTensors& f) { f.metadata["config"] = R"({"hidden_size": 10000000})"; },
                 "[config] these sizes need about ");
}

TEST_F(ModelFile, FilesThatAreNoModelsAreNamed) {
  const auto refusal = [&](const std::string& name) {
    return error_message<std::runtime_error>([&] { load_model(path(name)); });
  };
  EXPECT_EQ(refusal("none"), path("none") + ": No such file or directory");
  EXPECT_EQ(error_message<std::runtime_error>([&] { load_model(folder_.string()); }),
            folder_.string() + ": not a file");
  std::ofstream(path("empty")) << "";
  EXPECT_EQ(refusal("empty").find(path("empty") + ": "), 0u);
  std::ofstream(path("text")) << "Call me Ishmael. Some years ago, never mind how long precisely";
  EXPECT_EQ(refusal("text").find(path("text") + ": "), 0u);
  save_model(path("model"), Model(rich_config()));
  const auto size = std::filesystem::file_size(path("model"));
  for (const auto part : {size - 1, size / 2, size / 8, decltype(size){100}, decltype(size){8}}) {
    std::filesystem::resize_file(path("model"), part);
    EXPECT_EQ(refusal("model").find(path("model") + ": "), 0u) << refusal("model");
  }
}

TEST_F(ModelFile, AFolderThatCannotBeWrittenIsNamed) {
  const Model model(rich_config());
  const auto refusal = [&](const std::string& where) {
    return error_message<std::runtime_error>([&] { save_model(where, model); });
  };
  EXPECT_EQ(refusal(path("no/model")), path("no/model") + ": cannot be written: No such file or directory");
  std::ofstream(path("file")) << "text";
  EXPECT_EQ(refusal(path("file/model")), path("file/model") + ": cannot be written: Not a directory");
  // a folder stands where the file would go
  EXPECT_EQ(refusal(folder_.string()).find(folder_.string() + ": cannot be written: "), 0u);
  // whoever may write everything cannot see this one
  if (std::filesystem::exists("/proc/version")) {
    EXPECT_EQ(refusal("/proc/model").find("/proc/model: cannot be written: "), 0u);
  }
}

// The model was written once, by a build with LibTorch 1.13, together with a batch and what the model made of
// it. Any later version and any other LibTorch must read it and compute the same: files stay readable.
TEST_F(ModelFile, AFileOfAnEarlierVersionGivesTheSameOutputs) {
  const std::string folder = FASTWEIGHTS_TEST_DATA;
  const Model model = load_model(folder + "/model_libtorch_1_13.safetensors");
  EXPECT_TRUE(model.config() == rich_config());
  EXPECT_EQ(model.parameters()[0].second.scalar_type(), at::kFloat);
  const NamedTensors batch = load_safetensors(folder + "/model_libtorch_1_13_batch.safetensors");
  const ModelOutput output = model.forward(
      {.series = {batch.tensors.at("values"), batch.tensors.at("times"), batch.tensors.at("offsets")},
       .static_features = batch.tensors.at("static_features")});
  // float32 in about 50 steps of two stages: 100 roundings of 6e-8 that partly cancel
  EXPECT_LT(relative_error(output.outputs.to(at::kDouble), batch.tensors.at("outputs").to(at::kDouble)),
            1e-6);
  // it has parameters under an earlier name, which is not written any more
  const NamedTensors old = load_safetensors(folder + "/model_libtorch_1_13.safetensors");
  EXPECT_TRUE(old.tensors.contains("layers.0.programme.weight"));
  save_model(path("again"), model);
  const NamedTensors again = load_safetensors(path("again"));
  EXPECT_TRUE(
      at::equal(again.tensors.at("layers.0.program.weight"), old.tensors.at("layers.0.programme.weight")));
  EXPECT_FALSE(again.tensors.contains("layers.0.programme.weight"));
}

}  // namespace
}  // namespace fastweights
