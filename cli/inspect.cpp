#include <cmath>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/printable.h"
#include "data_options.h"
#include "progress.h"

namespace fastweights::cli {
namespace {

struct InspectCommand {
  std::string run, sample;
  std::vector<std::string> shown;
  DataOptions data;
  int64_t times = 8;
};

void print_model(const TrainedModel& trained) {
  const ModelConfig& c = trained.model.config();
  std::printf("%s\n", shown(model_summary(c)).c_str());
  std::printf("%zu channels in the data, %lld for the model; %lld outputs",
              trained.preparation.channels.size(), static_cast<long long>(c.channels),
              static_cast<long long>(c.outputs));
  if (trained.preparation.classes.size() == 2) std::printf("; threshold %.3f", trained.threshold);
  std::printf("\n\n%-32s %-16s %9s %10s\n", "parameter", "shape", "size", "norm");
  for (const auto& [name, tensor] : trained.model.parameters())
    std::printf("%-32s %-16s %9lld %10.4g\n", name.c_str(), message(tensor.sizes()).c_str(),
                static_cast<long long>(tensor.numel()), tensor.norm().item<double>());
  std::printf("%-32s %-16s %9lld\n", "all", "", static_cast<long long>(trained.model.parameter_count()));
}

int64_t sample_of(const InspectCommand& command, const DataSet& data) {
  if (command.sample.empty()) return 0;
  for (size_t b = 0; b < data.ids.size(); ++b) {
    if (data.ids[b] == command.sample) return static_cast<int64_t>(b);
  }
  throw std::runtime_error(message("there is no series '", command.sample, "' in ", data.head.name));
}

// norm and rank of W over one series, and its cosine to the last W
void print_weights(const InspectCommand& command, const TrainedModel& trained) {
  const DataSet data = read(command.data, data_for_model(command.data, command.run, trained.preparation));
  const DataSet one = match_data(select_series(data, {sample_of(command, data)}), trained.preparation);
  const SeriesOutput series = follow_series(trained, prepare(one, trained.preparation), 0, command.times);
  const ModelOutput& out = series.output;
  std::printf("\nW over series '%s', %lld rows\n", printable(one.ids[0]).c_str(),
              static_cast<long long>(one.rows()));
  std::printf("%12s %6s %10s %10s %16s  %s\n", "time", "layer", "norm", "rank", "like the last W", "outputs");
  for (size_t l = 0; l < out.w.size(); ++l) {
    const Tensor w = out.w[l].detach().to(at::kDouble);  // [T, H, V, K]
    const Tensor end = w[-1].flatten();
    for (int64_t t = 0; t < w.size(0); ++t) {
      const Tensor here = w[t].flatten();
      double rank = 0;
      for (int64_t h = 0; h < w.size(1); ++h)
        rank += effective_rank(w[t][h]) / static_cast<double>(w.size(1));
      const double norms = (here.norm() * end.norm()).item<double>();
      std::printf("%12.6g %6zu %10.4g %10.3g %16.3f ", series.times[t].item<double>(), l + 1,
                  here.norm().item<double>(), rank,
                  norms > 0 ? (here * end).sum().item<double>() / norms : NAN);
      for (int64_t o = 0; o < std::min<int64_t>(out.outputs.size(1), 6); ++o)
        std::printf(" %8.3f", out.outputs[t][o].item<double>());
      std::printf("\n");
    }
  }
}

}  // namespace

void add_inspect(CLI::App& program, Session&) {
  auto command = std::make_shared<InspectCommand>();
  command->data.label_columns = LabelColumns::Optional;
  CLI::App* app = program.add_subcommand(
      "inspect", "Show a trained model's parameters, and its fast weights over a series");
  app->add_option("run", command->run,
                  "folder of a run, of folds or of seeds (shows the first), or a model.safetensors")
      ->required();
  add_data_options(*app, command->data, "data with a series to follow W over (optional)");
  app->add_option("--series", command->sample, "id of the series; default: the first");
  app->add_option("--times", command->times, "number of times at which W is shown")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  app->footer("Example:\n  fastweights inspect runs/spirals spirals");
  app->callback([command] {
    const TrainedModel trained = load_trained(command->run);
    if (!trained.members.empty())
      std::printf("ensemble of %zu models with the same settings; this is %s\n\n", trained.members.size(),
                  printable(run_folder(command->run)).c_str());
    const TrainedModel& shown = trained.members.empty() ? trained : trained.members.front();
    print_model(shown);
    if (!command->data.path.empty()) print_weights(*command, shown);
  });
}

void add_report(CLI::App& program, Session&) {
  auto command = std::make_shared<InspectCommand>();
  CLI::App* app =
      program.add_subcommand("report", "Regenerate the HTML report of a run, of folds or of seeds");
  app->add_option("run", command->run, "folder of a finished run, of folds or of seeds")->required();
  add_data_options(*app, command->data, "the run's data, if they are elsewhere now");
  app->add_option("--series", command->shown,
                  "id of a series of the reported part to show first; may be repeated")
      ->take_all()
      ->expected(1);
  app->footer("Example:\n  fastweights report runs/spirals");
  app->callback([command] {
    const Preparation preparation = load_trained(command->run).preparation;
    write_report(command->run, read(command->data, data_for_model(command->data, command->run, preparation)),
                 command->shown);
    std::printf("%s/report.html\n", printable(command->run).c_str());
  });
}

}  // namespace fastweights::cli
