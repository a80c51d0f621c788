#include <cstdio>
#include <memory>

#include "data_options.h"
#include "fastweights/error.h"

namespace fastweights::cli {
namespace {

struct PredictCommand {
  std::string run, out;
  DataOptions data;
};

// in quotes, if a comma, a quote or a line's end is in it
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

std::string table(const TrainedModel& trained, const PreparedData& data) {
  const Predictions p = predict(trained.model, data, trained.preparation, trained.task);
  const bool classes =
      trained.task.kind == TaskKind::Classification || trained.task.kind == TaskKind::StepClassification;
  const Tensor values =
      (classes ? class_probabilities(p.outputs) : in_own_units(p.outputs, trained.task, trained.preparation))
          .contiguous();  // [M, K]
  const std::vector<std::string>& names = classes ? trained.preparation.classes
                                          : trained.task.kind == TaskKind::Regression
                                              ? trained.preparation.targets
                                              : trained.preparation.channels;
  const Tensor guesses = classes ? predicted_classes(values, trained.threshold) : Tensor();
  std::string text = "id,time";
  if (classes) text += ",predicted";
  for (const std::string& name : names) text += "," + field(classes ? "p(" + name + ")" : name);
  text += "\n";
  const double* v = values.data_ptr<double>();
  for (int64_t row = 0; row < values.size(0); ++row) {
    text += field(data.ids[static_cast<size_t>(p.samples.data_ptr<int64_t>()[row])]) + "," +
            number(p.times.data_ptr<double>()[row]);
    if (classes) text += "," + field(names[static_cast<size_t>(guesses[row].item<int64_t>())]);
    for (size_t k = 0; k < names.size(); ++k)
      text += "," + number(v[static_cast<size_t>(row) * names.size() + k]);
    text += "\n";
  }
  return text;
}

void run(const PredictCommand& command) {
  const TrainedModel trained = load_trained(command.run);
  const DataSet data = read(command.data, data_config(command.data));
  const std::string text = table(trained, prepare(matched(data, trained.preparation), trained.preparation));
  if (command.out.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    replace_file(command.out, text);
    std::printf("%lld series, predictions in %s\n", static_cast<long long>(data.samples()),
                command.out.c_str());
  }
}

}  // namespace

void add_predict(CLI::App& program, Session&) {
  auto command = std::make_shared<PredictCommand>();
  CLI::App* app = program.add_subcommand("predict", "Apply a trained model to data");
  app->add_option("run", command->run, "folder of a run, or its model.safetensors")->required();
  add_data_options(*app, command->data, "what to apply it to");
  app->add_option("--out,-o", command->out, "CSV file; default: the terminal");
  app->footer(
      "One row per series, or per time if the model was trained so: id, time, predicted class, "
      "probabilities.\n"
      "Example:\n  fastweights predict runs/spirals spirals --out predictions.csv");
  app->callback([command] { run(*command); });
}

}  // namespace fastweights::cli
