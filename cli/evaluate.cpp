#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data_options.h"
#include "progress.h"

namespace fastweights::cli {
namespace {

using Json = nlohmann::ordered_json;

struct EvaluateCommand {
  std::string device = "auto";
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
Selection selected(const EvaluateCommand& command, const DataSet& data, const std::string& path) {
  const std::string folder = run_folder(command.run);
  const bool own = !folder.empty() && is_data_of(folder, data);
  Selection chosen;
  chosen.part = !command.part.empty() ? command.part : own || has_part(data, Part::Test) ? "test" : "all";
  if (chosen.part == "all" && !command.part.empty()) {
    for (int64_t b = 0; b < data.samples(); ++b) chosen.samples.push_back(b);
    return chosen;
  }
  FW_CHECK(own || folder.empty() || read_run_config(folder).data.path != path, path, " has changed since ",
           folder, " was trained on it: what it was trained on cannot be told; --part all takes all series");
  if (chosen.part == "all") {
    for (int64_t b = 0; b < data.samples(); ++b) chosen.samples.push_back(b);
    return chosen;
  }
  const Split parts = own ? split_of(folder, data) : split_data(data, {});
  chosen.samples = chosen.part == "train"        ? parts.train
                   : chosen.part == "validation" ? parts.validation
                                                 : parts.test;
  FW_CHECK(!chosen.samples.empty(), "there are no series for ", chosen.part, " in ", data.head.name,
           "; --part all takes them all");
  return chosen;
}

// series, or rows, whose answer is known
int64_t known_answers(const Predictions& p) {
  if (p.targets.defined()) return p.targets.isfinite().any(1).sum().item<int64_t>();
  return p.classes.defined() ? p.classes.ge(0).sum().item<int64_t>() : 0;
}

void run(const EvaluateCommand& command, Session& session) {
  TrainedModel trained = load_trained(command.run);
  move_to_device(trained.model, command.device);
  const DataConfig source = data_for_model(command.data, command.run, trained.preparation);
  const DataSet data = read(command.data, source);
  const Selection chosen = selected(command, data, source.path);
  const PreparedData prepared =
      prepare(match_data(select_series(data, chosen.samples), trained.preparation), trained.preparation);
  const Predictions p = predict(trained.model, prepared, trained.preparation, trained.task);
  if (!check_finite(p, prepared, session)) return;
  const Metrics metrics = evaluate(p, trained.task, trained.preparation);
  const int64_t known = known_answers(p), all = p.outputs.defined() ? p.outputs.size(0) : 0;
  FW_CHECK(!metrics.empty() && known > 0, data.head.name,
           " has nothing to compare predictions with; 'fastweights predict' makes them");
  if (p.classes.defined() && known < all)
    std::fprintf(stderr, "%lld of %lld labels are missing or unknown to the model\n",
                 static_cast<long long>(all - known), static_cast<long long>(all));
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

void add_evaluate(CLI::App& program, Session& session) {
  auto command = std::make_shared<EvaluateCommand>();
  CLI::App* app = program.add_subcommand("evaluate", "Score a trained model on data with known answers");
  app->add_option("run", command->run, "folder of a run, or its model.safetensors")->required();
  add_data_options(*app, command->data, "what to score it on");
  app->add_option("--part", command->part,
                  "train, validation, test or all; default: test, if there is such a part, otherwise all")
      ->check(CLI::IsMember({"train", "validation", "test", "all"}));
  app->add_flag("--json", command->json, "one JSON object");
  app->add_option("--device", command->device,
                  "cpu, cuda, or auto: cuda where it can be used; default: auto");
  app->footer("Example:\n  fastweights evaluate runs/spirals spirals --json");
  app->callback([command, &session] { run(*command, session); });
}

}  // namespace fastweights::cli
