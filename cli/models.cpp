#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "commands.h"
#include "fastweights/run.h"

namespace fastweights::cli {
namespace {

struct ModelsCommand {
  int64_t channels = 8, static_features = 0, outputs = 2;
  bool json = false;
};

void print_models(const ModelsCommand& command) {
  if (!command.json) std::printf("%-20s %10s  %s\n", "model", "parameters", "description and reference");
  for (const NamedModel& model : named_models()) {
    const ModelConfig config = named_model(model.name, {.channels = command.channels,
                                                        .static_features = command.static_features,
                                                        .outputs = command.outputs});
    const int64_t count = Model(config).parameter_count();
    if (command.json) {
      const nlohmann::ordered_json line = {{"model", model.name},
                                           {"parameters", count},
                                           {"sentence", model.sentence},
                                           {"reference", model.reference}};
      std::printf("%s\n", line.dump().c_str());
      continue;
    }
    std::printf("%-20s %10lld  %s (%s)\n", model.name.c_str(), static_cast<long long>(count),
                model.sentence.c_str(), model.reference.c_str());
  }
  if (!command.json)
    std::printf(
        "\nparameters of the default sizes with %lld channels and %lld outputs; train one with --model "
        "NAME\n",
        static_cast<long long>(command.channels), static_cast<long long>(command.outputs));
}

}  // namespace

void add_models(CLI::App& program, Session&) {
  auto command = std::make_shared<ModelsCommand>();
  CLI::App* app = program.add_subcommand(
      "models", "List the models that can be trained, with their numbers of parameters");
  const auto size = [&](const char* name, int64_t& to, int64_t smallest, const char* help) {
    app->add_option(name, to, help)->check(CLI::Range(smallest, int64_t{100'000}))->capture_default_str();
  };
  size("--channels", command->channels, 1, "input channels, time included");
  size("--static-features", command->static_features, 0, "static features per series");
  size("--outputs", command->outputs, 1, "outputs");
  app->add_flag("--json", command->json, "print a JSON object per model");
  app->callback([command] { print_models(*command); });
}

}  // namespace fastweights::cli
