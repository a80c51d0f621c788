#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "base/printable.h"
#include "errors.h"
#include "fastweights/train.h"
#include "train_command.h"

namespace fastweights::cli {
namespace {

struct CompareCommand {
  TrainCommand train;
  std::string models = "all";
};

// empty for all
std::vector<std::string> chosen_models(const std::string& list) {
  if (list == "all") return {};
  std::vector<std::string> names;
  std::istringstream in(list);
  for (std::string name; std::getline(in, name, ',');) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  FW_CHECK(!names.empty(), "--models needs names separated by commas, or all");
  return names;
}

// how far seeds differ, or that it is unknown; a line
std::string spread_line(const CompareOptions& options, const Comparison& comparison) {
  if (!options.seeds.empty())
    return message("mean over ", options.seeds.size(), " seeds, and in brackets their standard deviation\n");
  const std::string advice = comparison.models.empty() ? "" : seeds_advice(comparison.models.front().part);
  return advice.empty() ? "" : advice + "\n";
}

void run(const CompareCommand& command, Session& session) {
  const TrainCommand& train = command.train;
  FW_CHECK(!train.out.empty(), "no folder for the runs; use --out FOLDER");
  handle_interrupts();
  CompareOptions options = {.folder = train.out,
                            .models = chosen_models(command.models),
                            .setup = setup_of(train),
                            .seeds = seeds_of(train)};
  const DataSet data = read(train.data, options.setup.source);
  options.train = [&](const Run& one, const RunOptions& how) {
    if (train.verbose()) std::printf("\n%s\n", how.folder.c_str());
    try {
      return train_one(train, one, how, data, how.folder, session);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "fastweights: %s: %s\n", printable(how.folder).c_str(), error_text(error).c_str());
      session.exit_status = 1;
      throw;
    }
  };
  const Comparison comparison = compare(options, data);
  if (comparison.end == RunEnd::Stopped) return;
  if (train.json) std::printf("%s\n", to_json(comparison).c_str());
  if (train.verbose())
    std::printf("\n%s\n%sthe table is in %s/comparison.md\n", markdown_table(comparison).c_str(),
                spread_line(options, comparison).c_str(), train.out.c_str());
}

}  // namespace

void add_compare(CLI::App& program, Session& session) {
  auto command = std::make_shared<CompareCommand>();
  CLI::App* app = program.add_subcommand(
      "compare", "Train several models on the same data and write a table of their results");
  add_data_options(*app, command->train.data, "data to train on");
  app->add_option("--out,-o", command->train.out,
                  "folder for one run per model; finished runs are not repeated");
  app->add_option("--models", command->models,
                  "names separated by commas, or all that serve the task; 'fastweights models' lists "
                  "them")
      ->capture_default_str();
  add_run_options(*app, command->train);
  app->footer(
      "Examples:\n"
      "  fastweights compare spirals --out runs/spirals-compared --models delta-cde,ncde,gru --epochs 2\n"
      "Exit codes: 0 done, 1 error, 2 wrong command line, 3 a loss or gradient is not finite, 130 "
      "interrupted; the same command resumes it.");
  app->callback([command, &session] { run(*command, session); });
}

}  // namespace fastweights::cli
