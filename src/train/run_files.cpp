#include "train/run_files.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "fastweights/environment.h"
#include "train/clock.h"

namespace fastweights {
namespace {

Metrics metrics_from(const Json& json) {
  Metrics metrics;
  for (const auto& [name, value] : json.items()) {
    if (name != "samples") metrics.emplace_back(name, value.is_number() ? value.get<double>() : NAN);
  }
  return metrics;
}

Json epoch_json(const TrainEpoch& e) {
  Json json = {{"epoch", e.epoch}};
  // unknown of epochs that an earlier version trained
  if (e.steps > 0) json.update({{"steps", e.steps}, {"replayed_steps", e.replayed_steps}});
  json.update({{"loss", e.loss},
               {"learning_rate", e.learning_rate},
               {"seconds", e.seconds},
               {"best", e.best},
               {"validation", metrics_json(e.validation)}});
  return json;
}

// nothing, if a run that was killed has left half a line
std::optional<TrainEpoch> epoch_from(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("epoch") || !json.contains("validation")) return std::nullopt;
  const auto number = [&](const char* key) {
    return json.contains(key) && json[key].is_number() ? json[key].get<double>() : NAN;
  };
  return TrainEpoch{.epoch = json["epoch"].get<int64_t>(),
                    .steps = json.value("steps", int64_t{0}),
                    .replayed_steps = json.value("replayed_steps", int64_t{0}),
                    .loss = number("loss"),
                    .learning_rate = number("learning_rate"),
                    .seconds = number("seconds"),
                    .validation = metrics_from(json["validation"]),
                    .best = json.value("best", false)};
}

}  // namespace

void RunFolder::log(const std::string& line) const {
  std::ofstream out(*this / "log.txt", std::ios::app);
  out << utc_now("%Y-%m-%d %H:%M:%S UTC") << "  " << line << "\n";
}

void RunFolder::note(const std::string& line) const {
  log(line);
  if (events_.note) events_.note(line);
}

void RunFolder::clock(const std::string& phase, double seconds) const {
  char text[32];
  std::snprintf(text, sizeof text, ": %.3f s", seconds);
  log(phase + text);
}

void RunFolder::append_epoch(const TrainEpoch& epoch) const {
  const std::string path = *this / "metrics.jsonl";
  std::ofstream out(path, std::ios::app);
  out << epoch_json(epoch).dump() << "\n" << std::flush;
  if (!out) throw std::runtime_error("cannot write " + path + "; is the disk full?");
}

Json environment_json() {
  const Environment e = environment();
  return {{"fastweights", e.version}, {"compiler", e.compiler},
          {"libtorch", e.libtorch},   {"blas", e.blas},
          {"threads", e.threads},     {"processor", e.processor},
          {"cores", e.cores},         {"instructions", e.instruction_set}};
}

Json metrics_json(const Metrics& metrics) {
  Json out = Json::object();
  for (const auto& [name, value] : metrics) out[name] = std::isfinite(value) ? Json(value) : Json();
  return out;
}

Json result_json(const PartResult& part) {
  Json json = metrics_json(part.metrics);
  json["samples"] = part.samples;
  return json;
}

std::vector<TrainEpoch> read_epochs(const std::string& folder) {
  std::istringstream in(read_file(folder + "/metrics.jsonl"));
  std::vector<TrainEpoch> epochs;
  for (std::string line; std::getline(in, line);) {
    if (const std::optional<TrainEpoch> epoch = epoch_from(line)) epochs.push_back(*epoch);
  }
  return epochs;
}

std::vector<TrainEpoch> keep_epochs(const std::string& folder, int64_t epochs) {
  std::vector<TrainEpoch> kept = read_epochs(folder);
  std::erase_if(kept, [&](const TrainEpoch& epoch) { return epoch.epoch > epochs; });
  std::string lines;
  for (const TrainEpoch& epoch : kept) lines += epoch_json(epoch).dump() + "\n";
  replace_file(folder + "/metrics.jsonl", lines);
  return kept;
}

std::string to_json(const RunResult& result) {
  Json json = {{"best_epoch", result.best_epoch}, {"threshold", result.threshold}};
  for (const PartResult& part : result.parts) json[part.name] = result_json(part);
  return json.dump(2);
}

RunResult read_result(const std::string& folder) {
  const Json json = parse_json(read_file(folder + "/result.json"));
  RunResult result = {.best_epoch = json.at("best_epoch").get<int64_t>(),
                      .threshold = json.at("threshold").get<double>()};
  for (const char* name : {"train", "validation", "test"}) {
    if (!json.contains(name)) continue;
    const Json& part = json.at(name);
    result.parts.push_back({name, part.at("samples").get<int64_t>(), metrics_from(part)});
  }
  return result;
}

}  // namespace fastweights
