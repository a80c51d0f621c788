#include "figures.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "fastweights/environment.h"

/// Measures and draws the figures of the documents.

namespace fastweights::bench {
namespace {

std::vector<FigureMaker> all_figures() { return {memory_figure(), scalability_figure(), gap_figure()}; }

FigureMaker figure_of(const std::string& name) {
  for (FigureMaker& maker : all_figures()) {
    if (maker.name == name) return maker;
  }
  throw std::invalid_argument("there is no figure " + name);
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out(path);
  out << text << std::flush;
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

// where and with what
Json machine() {
  const Environment found = environment();
  return {{"version", found.version},   {"processor", found.processor},
          {"threads", found.threads},   {"instruction_set", found.instruction_set},
          {"compiler", found.compiler}, {"libtorch", found.libtorch}};
}

void make(const std::string& name, FigureSize size, const std::filesystem::path& folder) {
  Figure figure = figure_of(name).make(size);
  Json numbers = {{"figure", name}, {"machine", machine()}};
  numbers.update(figure.numbers);
  write(folder / (name + ".json"), numbers.dump(1) + "\n");
  write(folder / (name + ".svg"), svg(figure.panels));
}

struct Settings {
  std::vector<std::string> names, measured;
  std::string folder = ".";
  int threads = 0;
  bool tiny = false;
};

void add_options(CLI::App& program, Settings& settings) {
  std::vector<std::string> names;
  for (const FigureMaker& maker : all_figures()) names.push_back(maker.name);
  program.add_option("figures", settings.names, "which ones; default: all")->check(CLI::IsMember(names));
  program.add_option("--out", settings.folder, "folder for NAME.svg and NAME.json")->capture_default_str();
  program.add_option("--threads", settings.threads, "threads to compute with; 0 takes all cores")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  program.add_flag("--tiny", settings.tiny, "a few small points, to see that everything works");
  // a process for one point; no group: not in the help text
  program.add_option("--measure", settings.measured)->expected(2)->group("");
}

// the point with what was measured, or with what went wrong
Json measured(const std::string& figure, Json point) {
  try {
    point.update(figure_of(figure).measure(point));
  } catch (const std::exception& error) {
    point["failed"] = error.what();
  }
  return point;
}

int run(const Settings& settings) {
  set_threads(settings.threads);
  if (!settings.measured.empty()) {
    std::printf("%s\n", measured(settings.measured[0], Json::parse(settings.measured[1])).dump().c_str());
    return 0;
  }
  std::vector<std::string> names = settings.names;
  if (names.empty()) {
    for (const FigureMaker& maker : all_figures()) names.push_back(maker.name);
  }
  std::filesystem::create_directories(settings.folder);
  for (const std::string& name : names)
    make(name, settings.tiny ? FigureSize::Tiny : FigureSize::Full, settings.folder);
  return 0;
}

}  // namespace
}  // namespace fastweights::bench

int main(int argc, char** argv) {
  try {
    fastweights::bench::Settings settings;
    CLI::App program("Measure and draw the figures of the documents");
    fastweights::bench::add_options(program, settings);
    CLI11_PARSE(program, argc, argv);
    return fastweights::bench::run(settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "figures: %s\n", error.what());
    return 1;
  }
}
