#include "fastweights/gradcheck.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "commands.h"
#include "fastweights/environment.h"
#include "fastweights/published.h"
#include "fastweights/run.h"

namespace fastweights::cli {
namespace {

struct GradcheckCommand {
  std::string config_file;
  std::vector<std::string> settings;
  std::string model, rule, drive, control, method;
  SyntheticSeries series = {.samples = 3, .length = 9, .channels = 3};
  int64_t directions = 4;
  uint64_t seed = 1;
  double tolerance = 0;  // 0: what differences can show
  bool long_series = false;
  std::vector<int64_t> windows = {100, 250, 500, 1000};
};

ModelConfig read_config(const std::string& path) {
  try {
    return config_from_json(read_file(path));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(path + ": " + error.what());
  }
}

// the file, then the options; small by default, so that it takes a second
ModelConfig chosen_config(const GradcheckCommand& command) {
  ModelConfig config;
  if (!command.model.empty()) {
    config = named_model(command.model, {.channels = command.series.channels, .outputs = 2});
    // small, and without dropout
    const Json keys = parse_json(to_json(config));
    const int64_t heads = keys.value("heads", int64_t{0});
    config = with_setting(config, "hidden_size", std::to_string(heads > 4 ? heads : 8));
    for (const char* key : {"dropout", "value_dropout"}) {
      if (keys.contains(key)) config = with_setting(config, key, "0");
    }
  } else if (command.config_file.empty()) {
    config.channels = command.series.channels;
    config.outputs = 2;
    config.architecture = FastWeights{.hidden_size = 12, .heads = 3, .feed_forward_size = 10};
  } else {
    config = read_config(command.config_file);
  }
  const std::pair<const char*, const std::string&> short_forms[] = {{"rule", command.rule},
                                                                    {"drive", command.drive},
                                                                    {"control.kind", command.control},
                                                                    {"solver.method", command.method}};
  for (const auto& [key, value] : short_forms) {
    if (!value.empty()) config = with_setting(config, key, value);
  }
  for (const std::string& setting : command.settings) {
    const size_t equals = setting.find('=');
    FW_CHECK(equals != std::string::npos, "--set expects KEY=VALUE, got '", setting, "'");
    config = with_setting(config, setting.substr(0, equals), setting.substr(equals + 1));
  }
  return config;
}

// whether there is a feed-forward block with relus
bool reads_feed_forward(const ModelConfig& config) {
  const Architecture& a = config.architecture;
  return a.get_if<FastWeights>() || a.get_if<TensorMap>() || a.get_if<DiscreteFwp>() || a.get_if<OdeRfwp>();
}

ModelInput random_input(const GradcheckCommand& command, const ModelConfig& config) {
  SyntheticSeries options = command.series;
  options.channels = config.channels;
  options.seed = command.seed;
  ModelInput input = {.series = synthetic_series(options)};
  if (config.static_features > 0) {
    input.static_features = synthetic_series({.samples = 1,
                                              .length = std::max<int64_t>(2, options.samples),
                                              .channels = config.static_features,
                                              .times = SyntheticTimes::Regular,
                                              .seed = command.seed + 1})
                                .values.slice(0, 0, options.samples);
  }
  return input;
}

// returns whether the exact modes are exact
bool check_parameters(const GradcheckCommand& command) {
  const ModelConfig config = chosen_config(command);
  const Model model(config, {.seed = command.seed, .type = at::kDouble});
  const ModelInput input = random_input(command, config);
  // a tensor map has no rule
  const auto* fast = config.architecture.get_if<FastWeights>();
  const std::string rule = fast                                      ? "rule " + fast->rule
                           : config.architecture.get_if<TensorMap>() ? "tensor map"
                                                                     : command.model;
  std::printf("%s, %lld parameters, float64, synthetic series: %lld of up to %lld points in %lld channels\n",
              rule.c_str(), static_cast<long long>(model.parameter_count()),
              static_cast<long long>(command.series.samples), static_cast<long long>(command.series.length),
              static_cast<long long>(config.channels));
  std::printf("computed by %s\n", model.forward(input).backend.c_str());
  std::printf("errors of directional derivatives against central differences, relative to |gradient|\n\n");
  std::printf("%-28s %7s %10s %10s %12s %10s\n", "parameter", "size", "|gradient|", "exact", "checkpointed",
              "adjoint");
  double worst = 0;
  GradcheckOptions check = {.directions = command.directions, .seed = command.seed};
  if (!model.has_solver()) check.modes = {Gradient::Exact};
  // the solution itself has no adjoint
  const SolverConfig* solver = solver_of(model.config());
  if (solver && solver->method && std::holds_alternative<Flow>(*solver->method)) check.modes.pop_back();
  gradcheck(model, input, random_loss(command.seed), check, [&](const GradcheckRow& row) {
    std::printf("%-28s %7lld %10.2e %10.1e", row.name.c_str(), static_cast<long long>(row.size), row.norm,
                row.errors[0]);
    if (row.errors.size() > 1) std::printf(" %12.1e", row.errors[1]);
    if (row.errors.size() > 2) std::printf(" %10.1e", row.errors[2]);
    std::printf("\n");
    std::fflush(stdout);
    for (size_t mode = 0; mode < row.errors.size() && mode < 2; ++mode) {
      if (!std::isnan(worst) && !(row.errors[mode] <= worst)) worst = row.errors[mode];
    }
  });
  const bool adaptive = solver && std::holds_alternative<AdaptiveSteps>(solver->steps);
  const bool relus = config.architecture.get_if<NeuralCde>() || reads_feed_forward(config);
  const double tolerance = command.tolerance > 0 ? command.tolerance : adaptive ? 1e-5 : 1e-6;
  const bool good = worst <= tolerance;
  std::printf("\n%s: largest error of the exact and checkpointed gradients %.1e, allowed %.0e\n",
              good ? "ok" : "FAILED", worst, tolerance);
  if (!good && relus)
    std::printf(
        "a relu that switches between the two points of a difference has the same effect: try another "
        "--seed\n");
  if (adaptive)
    std::printf("adaptive steps change with the parameters, so differences are accurate to about 1e-6\n");
  if (model.has_solver())
    std::printf(
        "the continuous adjoint solves another equation backwards: its error is that of the steps, or "
        "worse\n");
  return good;
}

// the adjoint on the EigenWorms model, on series of increasing length
void check_long_series(const GradcheckCommand& command) {
  ModelConfig config = published::eigenworms("ode_delta", 1);
  auto& path = std::get<LogSignatures>(fast_weights(config).control.path);
  path.last_window = LastWindow::Once;
  const int64_t increments = std::get<PointWindows>(path.windows).increments;
  fast_weights(config).solver = {.method = rk4()};
  if (!command.rule.empty()) config = with_setting(config, "rule", command.rule);
  check_config(config);
  std::printf(
      "EigenWorms model (rule %s, 128 wide, 16 heads) at its initial values on 2 synthetic series of 7 "
      "channels,\n"
      "one rk4 step per window, float64; errors of the gradient of the vector field's parameters\n\n",
      fast_weights(config).rule.c_str());
  std::printf("%8s %16s %9s %16s %9s\n", "windows", "adjoint against", "cosine", "exact against", "seconds");
  std::printf("%8s %16s %9s %16s %9s\n", "", "exact", "", "differences", "");
  for (int64_t windows : command.windows) {
    const Model model(config, {.seed = command.seed, .type = at::kDouble});
    const ModelInput input = {.series = synthetic_series({.samples = 2,
                                                          .length = windows * increments + 1,
                                                          .channels = config.channels,
                                                          .times = SyntheticTimes::Regular,
                                                          .seed = command.seed})};
    const auto begin = std::chrono::steady_clock::now();
    const Tensor labels = at::arange(2, at::kLong);
    const AdjointError error = adjoint_error(
        model, input, [&](const Tensor& outputs) { return at::cross_entropy_loss(outputs, labels); });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("%8lld %16.1e %9.3f %16.1e %9.1f\n", static_cast<long long>(windows), error.relative_error,
                error.cosine, error.difference_error, seconds.count());
    std::fflush(stdout);
  }
  std::printf(
      "\na rule that forgets is unstable when solved backwards: the adjoint then differentiates another "
      "solution.\n"
      "A gradient with a relative error of 1 or a cosine of 0 is useless.\n");
}

}  // namespace

void add_gradcheck(CLI::App& program, Session& session) {
  auto command = std::make_shared<GradcheckCommand>();
  CLI::App* app = program.add_subcommand(
      "gradcheck", "Compare a model's gradients (exact, checkpointed, adjoint) with finite differences");
  CLI::Option* config =
      app->add_option("--config", command->config_file, "JSON file with the configuration of the model");
  CLI::Option* model =
      app->add_option("--model", command->model, "a name that 'fastweights models' lists")->excludes(config);
  app->add_option("--rule", command->rule, "hebb, oja, oja_softmax, delta_pre or delta_post");
  std::vector<CLI::Option*> short_only = {config, model};  // excluded by --long
  short_only.push_back(
      app->add_option("--drive", command->drive, "x, derivative_keys, derivative_values or derivative"));
  short_only.push_back(
      app->add_option("--control", command->control,
                      "natural_cubic, hermite_cubic, linear, rectilinear, hold or log_signature"));
  short_only.push_back(
      app->add_option("--method", command->method, "solver, for example rk4, midpoint or dopri5"));
  short_only.push_back(
      app->add_option("--set", command->settings, "KEY=VALUE of the configuration, for example layers=2")
          ->allow_extra_args(false));
  short_only.push_back(app->add_option("--samples", command->series.samples, "number of synthetic series")
                           ->capture_default_str());
  short_only.push_back(app->add_option("--length", command->series.length, "points of the longest series")
                           ->capture_default_str());
  short_only.push_back(
      app->add_option("--channels", command->series.channels, "number of channels, without a configuration")
          ->excludes(config)
          ->capture_default_str());
  short_only.push_back(
      app->add_option("--directions", command->directions, "number of random directions per parameter")
          ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
          ->capture_default_str());
  app->add_option("--seed", command->seed, "seed of parameters, data and directions")
      ->check(not_negative())
      ->capture_default_str();
  short_only.push_back(
      app->add_option("--tolerance", command->tolerance,
                      "largest error of the exact gradients (default 1e-6, with adaptive steps 1e-5)")
          ->check(positive()));
  CLI::Option* long_series =
      app->add_flag("--long", command->long_series,
                    "show instead how the error of the continuous adjoint grows with the length of series");
  for (CLI::Option* option : short_only) long_series->excludes(option);
  app->add_option("--windows", command->windows, "with --long: lengths to try, in windows of 4 points")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->needs(long_series)
      ->capture_default_str();
  app->callback([command, &session] {
    // the work is too small for a second thread to pay off
    if (session.threads == 0) set_threads(1);
    if (command->long_series) {
      check_long_series(*command);
    } else {
      session.exit_status = check_parameters(*command) ? 0 : 1;
    }
  });
}

}  // namespace fastweights::cli
