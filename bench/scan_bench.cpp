#include "scan_bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "fastweights/environment.h"
#include "fastweights/tensor.h"
#include "gpu_bench.h"
#include "scan_runs.h"
#include "tensor/runtime.h"

namespace fastweights::bench {
namespace {

using Json = nlohmann::ordered_json;

using Settings = ScanBenchSettings;

enum class What { Step, Forward };

double milliseconds(ScanRun& run, What what) {
  const auto start = std::chrono::steady_clock::now();
  if (what == What::Step) {
    run.step();
  } else {
    run.forward();
  }
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double total_steps(const ScanShape& shape) {
  return static_cast<double>(std::accumulate(shape.points.begin(), shape.points.end(), int64_t{0}) -
                             shape.samples()) /
         static_cast<double>(shape.points_per_step());
}

// a small batch of the same model: the engine against the definition in float64, and what is timed as the
// definition against both
bool gate(const ScanShape& shape) {
  std::vector<SelftestResult> results = engine_results({shape.name, shape.config, shape.gate});
  const ScanShape small = tiny(shape);
  const Tensor got = ScanRun(Way::Model, small.config, make_batch(small)).forward(),
               expected = ScanRun(Way::Definition, small.config, make_batch(small)).forward();
  const double error = ((got - expected).abs().max() / expected.abs().max()).item<double>();
  results.push_back({shape.name + ", what is timed as the definition", error, results[0].tolerance, ""});
  bool passed = true;
  for (const SelftestResult& result : results) {
    if (result.passed()) continue;
    passed = false;
    std::fprintf(stderr, "FAILED %s: error %g, allowed %g; %s is not timed\n", result.name.c_str(),
                 result.error, result.tolerance, shape.name.c_str());
  }
  return passed;
}

Json describe(const ScanShape& shape, What what) {
  return {{"shape", shape.name}, {"what", what == What::Step ? "step" : "forward"}};
}

void add_sizes(Json& line, const ScanShape& shape, const MemoryPlan& plan) {
  line["planned_mb"] = static_cast<double>(plan.bytes) / (1 << 20);
  line["blocks"] = plan.blocks;
  line["samples"] = shape.samples();
  line["steps"] = shape.longest_steps();
  line["heads"] = shape.config.heads;
  line["threads"] = thread_count();
}

// of the first run, before anything else has filled the process
double peak_of(const ScanShape& shape, What what) {
  ScanRun model(Way::Model, shape.config, make_batch(shape));
  return peak_mb_of([&] { milliseconds(model, what); });
}

Json measure(const ScanShape& shape, What what, double peak, const Settings& settings) {
  const ScanShape shorter = shape.definition_steps > 0 ? with_steps(shape, shape.definition_steps) : shape;
  // in one block, which is what costs the definition least
  ProgrammerConfig plain = shape.config;
  plain.solver.memory_limit = std::numeric_limits<int64_t>::max();
  ScanRun model(Way::Model, shape.config, make_batch(shape)),
      definition(Way::Definition, plain, make_batch(shorter));
  milliseconds(model, what);
  milliseconds(definition, what);
  std::vector<double> ours, theirs;
  for (int i = 0; i < settings.repeat; ++i) {
    ours.push_back(milliseconds(model, what));
    theirs.push_back(milliseconds(definition, what));
  }
  const double ms = median(ours), definition_ms = median(theirs) * total_steps(shape) / total_steps(shorter);
  Json line = describe(shape, what);
  line["backend"] = model.backend();
  line["ms"] = ms;
  line["definition_ms"] = definition_ms;
  line["ratio"] = definition_ms / ms;
  line["peak_mb"] = peak;
  line["definition_steps"] = shorter.longest_steps();
  add_sizes(line, shape, model.plan());
  return line;
}

// training steps alone, and what a single window, sample or head costs
Json measure_point(const ScanShape& shape, const char* varied, int64_t number, const Settings& settings) {
  ScanRun model(Way::Model, shape.config, make_batch(shape));
  const double peak = peak_mb_of([&] { milliseconds(model, What::Step); });
  std::vector<double> times;
  for (int i = 0; i < settings.repeat; ++i) times.push_back(milliseconds(model, What::Step));
  Json line = describe(shape, What::Step);
  line["backend"] = model.backend();
  line["ms"] = median(times);
  line["definition_ms"] = nullptr;
  line["ratio"] = nullptr;
  line["peak_mb"] = peak;
  line["varied"] = varied;
  line["number"] = number;
  line["ms_per_unit"] = median(times) / static_cast<double>(number);
  add_sizes(line, shape, model.plan());
  return line;
}

void print(const Json& line, const Settings& settings) {
  if (settings.json) {
    std::printf("%s\n", line.dump().c_str());
  } else if (line.contains("varied")) {
    std::printf("%-7s %-8s %-12s %10.1f   %s %lld: %.4f ms each, peak %.0f MB\n",
                line["shape"].get<std::string>().c_str(), line["what"].get<std::string>().c_str(),
                line["backend"].get<std::string>().c_str(), line["ms"].get<double>(),
                line["varied"].get<std::string>().c_str(), line["number"].get<long long>(),
                line["ms_per_unit"].get<double>(), line["peak_mb"].get<double>());
  } else {
    std::printf("%-7s %-8s %-12s %10.1f %14.1f %7.1f %8.0f   %lld\n",
                line["shape"].get<std::string>().c_str(), line["what"].get<std::string>().c_str(),
                line["backend"].get<std::string>().c_str(), line["ms"].get<double>(),
                line["definition_ms"].get<double>(), line["ratio"].get<double>(),
                line["peak_mb"].get<double>(), line["definition_steps"].get<long long>());
  }
  std::fflush(stdout);
}

void print_head(const Settings& settings) {
  if (settings.json) return;
  const Environment found = environment();
  std::printf("fastweights %s, %s, %d threads\n\n", found.version.c_str(), found.processor.c_str(),
              found.threads);
  std::printf("%-7s %-8s %-12s %10s", "shape", "what", "backend", "ms");
  std::printf(settings.sweep ? "\n" : " %14s %7s %8s   %s\n", "definition ms", "ratio", "peak MB",
              "steps that the definition was timed on");
}

// one of length, batch and heads grows, the others stay
void sweep(const ScanShape& shape, const Settings& settings) {
  const ScanShape base = with_steps(shape, 562);
  for (const int64_t steps : {281, 562, 1124, 2248}) {
    const ScanShape part = with_steps(shape, steps);
    print(measure_point(part, "length", part.longest_steps(), settings), settings);
  }
  for (const int64_t samples : {23, 45, 90, 181}) {
    const ScanShape part = with_samples(base, samples);
    print(measure_point(part, "batch", part.samples(), settings), settings);
  }
  for (const int64_t heads : {4, 8, 16, 32})
    print(measure_point(with_heads(base, heads), "heads", heads, settings), settings);
}

std::vector<ScanShape> chosen_shapes(const Settings& settings) {
  std::vector<ScanShape> result;
  for (ScanShape& shape : all_shapes()) {
    const auto& names = settings.shapes;
    const bool wanted =
        settings.sweep ? shape.name == "E"
                       : names.empty() || std::find(names.begin(), names.end(), shape.name) != names.end();
    if (!wanted) continue;
    shape.config.solver.memory_limit = settings.memory_limit;
    shape = with_method(shape, settings.method);
    if (settings.tiny) shape = tiny(shape);
    if (settings.definition_steps > 0) shape.definition_steps = settings.definition_steps;
    result.push_back(std::move(shape));
  }
  return result;
}

}  // namespace

int run_scan_bench(const ScanBenchSettings& settings) {
  if (!find_device(settings.device).is_cpu()) return run_gpu_bench(settings);
  return_freed_memory();
  std::vector<ScanShape> shapes;
  int status = 0;
  for (const ScanShape& shape : chosen_shapes(settings)) {
    if (gate(shape)) {
      shapes.push_back(shape);
    } else {
      status = 1;
    }
  }
  if (settings.sweep) {
    keep_freed_memory();
    print_head(settings);
    for (const ScanShape& shape : shapes) sweep(shape, settings);
    return status;
  }
  std::vector<std::array<double, 2>> peaks;
  for (const ScanShape& shape : shapes) {
    if (!settings.json) {
      const Model model(shape.config);
      std::printf("%s: %s\n", shape.name.c_str(),
                  model.plan({.series = make_batch(shape).series})->message().c_str());
    }
    peaks.push_back({peak_of(shape, What::Step), peak_of(shape, What::Forward)});
  }
  print_head(settings);
  keep_freed_memory();
  for (size_t i = 0; i < shapes.size(); ++i) {
    print(measure(shapes[i], What::Step, peaks[i][0], settings), settings);
    print(measure(shapes[i], What::Forward, peaks[i][1], settings), settings);
  }
  return status;
}

void add_scan_bench_options(CLI::App& command, ScanBenchSettings& settings) {
  std::vector<std::string> names;
  for (const ScanShape& shape : all_shapes()) names.push_back(shape.name);
  command.add_option("--device", settings.device, "cpu, cuda, or auto: cuda where it can be used")
      ->capture_default_str();
  command.add_flag("--json", settings.json, "one JSON object per line and nothing else");
  command.add_option("--shape", settings.shapes, "what to time, may be repeated; default: all")
      ->check(CLI::IsMember(names));
  command
      .add_option("--repeat", settings.repeat, "timed runs, of which the median counts; one more comes first")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--memory-limit", settings.memory_limit, "solver.memory_limit in bytes; 0 chooses")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--method", settings.method, "solver.method of the shapes")
      ->check(CLI::IsMember({"rk4", "flow"}))
      ->capture_default_str();
  command
      .add_option("--definition-steps", settings.definition_steps,
                  "time the definition on so many steps and scale linearly; 0: as many as its memory allows")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      .add_flag("--sweep", settings.sweep,
                "instead: training steps of E's model over length, batch and number of heads")
      ->excludes("--shape");
  command.add_flag("--tiny", settings.tiny, "a few short series of each shape, to see that everything works");
}

}  // namespace fastweights::bench
