#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "data_options.h"
#include "fastweights/error.h"
#include "progress.h"

namespace fastweights::cli {
namespace {

using Json = nlohmann::ordered_json;

struct EvaluateCommand {
  std::string run, part;
  DataOptions data;
  bool json = false;
};

bool has_part(const DataSet& data, Part part) {
  return std::find(data.parts.begin(), data.parts.end(), part) != data.parts.end();
}

struct Selection {
  std::vector<int64_t> samples;
  std::string part;
};

// the part that was asked for; of the run's own data the test part, of others all that is not marked as
// training
Selection selected(const EvaluateCommand& command, const DataSet& data) {
  Selection chosen;
  const bool own = std::filesystem::is_directory(command.run) &&
                   read_run_config(command.run).data.path == data_for_model(command.data, command.run).path;
  chosen.part = !command.part.empty() ? command.part : own || has_part(data, Part::Test) ? "test" : "all";
  if (chosen.part != "all") {
    const Split parts = split(data, own ? read_run_config(command.run).split : SplitConfig{});
    chosen.samples = chosen.part == "train"        ? parts.train
                     : chosen.part == "validation" ? parts.validation
                                                   : parts.test;
    FW_CHECK(!chosen.samples.empty(), "there are no series for ", chosen.part, " in ", data.head.name,
             "; --part all takes them all");
    return chosen;
  }
  for (int64_t b = 0; b < data.samples(); ++b) chosen.samples.push_back(b);
  return chosen;
}

void run(const EvaluateCommand& command) {
  const TrainedModel trained = load_trained(command.run);
  const DataSet data = read(command.data, data_for_model(command.data, command.run));
  const Selection chosen = selected(command, data);
  const PreparedData prepared =
      prepare(matched(subset(data, chosen.samples), trained.preparation), trained.preparation);
  const Predictions p = predict(trained.model, prepared, trained.preparation, trained.task);
  const Metrics metrics = evaluate(p, trained.task, trained.preparation);
  FW_CHECK(!metrics.empty(), data.head.name,
           " has nothing to compare predictions with; 'fastweights predict' makes them");
  const bool two = p.classes.defined() && trained.preparation.classes.size() == 2;
  const Metrics decided = two ? evaluate(p, trained.task, trained.preparation, trained.threshold) : Metrics{};
  if (command.json) {
    Json json = {{"data", data.head.name}, {"part", chosen.part}, {"samples", chosen.samples.size()}};
    for (const auto& [name, value] : metrics) json[name] = std::isfinite(value) ? Json(value) : Json();
    if (two) {
      json["threshold"] = trained.threshold;
      for (const auto& [name, value] : decided) {
        if (name == "accuracy" || name == "balanced_accuracy" || name == "f1")
          json[name + "_at_threshold"] = value;
      }
    }
    std::printf("%s\n", json.dump().c_str());
    return;
  }
  std::printf("%s, %s: %zu series\n", data.head.name.c_str(), chosen.part.c_str(), chosen.samples.size());
  for (const auto& [name, value] : metrics) std::printf("  %-18s %.4f\n", name.c_str(), value);
  if (two) {
    std::printf("with the threshold %.3f that validation chose: %s\n", trained.threshold,
                shown(decided).c_str());
  }
}

}  // namespace

void add_evaluate(CLI::App& program, Session&) {
  auto command = std::make_shared<EvaluateCommand>();
  CLI::App* app = program.add_subcommand("evaluate", "Score a trained model on data with known answers");
  app->add_option("run", command->run, "folder of a run, or its model.safetensors")->required();
  add_data_options(*app, command->data, "what to score it on");
  app->add_option("--part", command->part,
                  "train, validation, test or all; default: test, if there is such a part, otherwise all")
      ->check(CLI::IsMember({"train", "validation", "test", "all"}));
  app->add_flag("--json", command->json, "one JSON object");
  app->footer("Example:\n  fastweights evaluate runs/spirals spirals --json");
  app->callback([command] { run(*command); });
}

}  // namespace fastweights::cli
