#include <cstdio>

#include "base/json_fields.h"
#include "fastweights/train.h"
#include "train_command.h"

namespace fastweights::cli {
namespace {

void print_result(const TrainCommand& command, const std::string& folder, const FoldsResult& result) {
  if (command.json)
    std::printf("{\"run\":%s,\"summary\":%s}\n", shown_dump(folder).c_str(), to_json(result.summary).c_str());
  if (!command.verbose()) return;
  std::printf("\n%zu folds, each tested on series that it was not trained on\n", result.tests.size());
  for (const FoldsResult::Summary& of : result.summary)
    std::printf("  %-18s %.4f +- %.4f\n", of.name.c_str(), of.mean, of.deviation);
}

}  // namespace

void run_folds(const TrainCommand& command, Session& session) {
  const bool resume = !command.resume.empty();
  const std::string folder = resume ? command.resume : command.out;
  FoldsOptions options = {.folder = folder, .folds = command.folds};
  if (resume) {
    options = *read_folds(folder);
    options.setup.source = data_config(command.data, options.setup.source);
  } else {
    options.setup = setup_of(command);
  }
  const DataSet data = read(command.data, options.setup.source);
  options.train = [&](const Run& run, const RunOptions& one) {
    return train_one(command, run, one, data, folder, session);
  };
  const FoldsResult result =
      resume ? resume_folds(folder, data, options.train) : cross_validate(options, data);
  if (result.end == RunEnd::Finished) print_result(command, folder, result);
}

}  // namespace fastweights::cli
