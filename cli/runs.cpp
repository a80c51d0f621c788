#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/printable.h"
#include "fastweights/train.h"
#include "seed_list.h"
#include "train/run_set.h"
#include "train_command.h"

namespace fastweights::cli {
namespace {

void print_part(const RunsPart& part, const std::string& together) {
  std::printf("\n%-18s %9s %9s %9s %9s %12s\n", part.name.c_str(), "mean", "deviation", "min", "max",
              part.together.metrics.empty() ? "" : together.c_str());
  for (const Spread& of : part.spread) {
    std::printf("%-18s %9.4f %9.4f %9.4f %9.4f", of.name.c_str(), of.mean, of.deviation, of.least,
                of.largest);
    const double all = metric(part.together.metrics, of.name);
    if (std::isfinite(all)) std::printf(" %12.4f", all);
    std::printf("\n");
  }
}

void print_result(const TrainCommand& command, const RunsOptions& options, const RunsResult& result) {
  const bool folds = options.folds > 0;
  const std::string folder = printable(options.folder);
  if (command.json) {
    const std::string json = to_json(result, options);
    std::printf("{\"run\":%s,%s\n", shown_dump(options.folder).c_str(), json.substr(1).c_str());
  }
  if (!command.verbose()) return;
  std::printf("\n%s\n", tests_text(options).c_str());
  for (const RunsPart& part : result.parts) print_part(part, folds ? "out-of-fold" : "ensemble");
  if (folds) std::printf("\nout-of-fold predictions  %s/predictions.csv", folder.c_str());
  std::printf("\nreport  %s/report.html\n", folder.c_str());
}

RunsOptions runs_options(const TrainCommand& command) {
  RunsOptions options = {.folder = command.out, .folds = command.folds, .setup = setup_of(command)};
  if (!command.seeds.empty()) options.seeds = seeds_of(command);
  return options;
}

}  // namespace

std::vector<int64_t> seeds_of(const TrainCommand& command) {
  if (command.seeds.empty()) return {};
  for (const Setting& setting : setup_of(command).settings)
    FW_CHECK(setting.key != "training.seed",
             "--seeds sets training.seed, which is given, too; leave one out");
  return seed_list(command.seeds);
}

std::string seeds_advice(const PartResult& part) {
  constexpr int64_t kSmall = 200;
  if (part.name != "test" || part.samples >= kSmall) return "";
  return message(
      "the test part has only ", part.samples,
      " series, so results of different seeds differ by several points; --seeds 1..5 shows how much");
}

void run_set(const TrainCommand& command, Session& session) {
  const bool resume = !command.resume.empty();
  RunsOptions options = resume ? *read_runs(command.resume) : runs_options(command);
  if (resume) options.setup.source = data_config(command.data, options.setup.source);
  const std::string& folder = options.folder;
  const DataSet data = read(command.data, options.setup.source);
  options.train = [&](const Run& run, const RunOptions& one) {
    if (command.verbose()) std::printf("\n%s\n", printable(one.folder).c_str());
    return train_one(command, run, one, data, folder, session);
  };
  const RunsResult result = resume ? resume_runs(folder, data, options.train) : train_runs(options, data);
  if (result.end != RunEnd::Finished) return;
  if (options.folds > 0) write_out_of_fold(folder, data, session);
  // with the rule of the split
  print_result(command, *read_runs(folder), result);
}

}  // namespace fastweights::cli
