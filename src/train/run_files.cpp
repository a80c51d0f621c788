#include "train/run_files.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "fastweights/environment.h"
#include "train/calibration_json.h"
#include "train/clock.h"

namespace fastweights {
namespace {

Metrics metrics_from(const Json& json) {
  Metrics metrics;
  for (const auto& [name, value] : json.items()) {
    if (name != "samples" && !value.is_object())
      metrics.emplace_back(name, value.is_number() ? value.get<double>() : NAN);
  }
  return metrics;
}

Json number_json(double x) { return std::isfinite(x) ? Json(x) : Json(); }

ConfidenceIntervals metric_intervals_from(const Json& part) {
  ConfidenceIntervals intervals;
  // absent in results of earlier versions
  if (!part.contains("intervals")) return intervals;
  const auto end = [](const Json& x) { return x.is_number() ? x.get<double>() : NAN; };
  for (const auto& [name, ends] : part.at("intervals").items())
    intervals.push_back({name, {end(ends.at(0)), end(ends.at(1))}});
  return intervals;
}

const std::vector<std::string> kGroupKinds = {"channels", "rows_ahead"};

std::vector<MetricsGroup> groups_from(const Json& part) {
  std::vector<MetricsGroup> groups;
  for (const std::string& kind : kGroupKinds) {
    if (!part.contains(kind)) continue;
    for (const auto& [name, metrics] : part.at(kind).items())
      groups.push_back({kind, name, metrics_from(metrics)});
  }
  return groups;
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

std::optional<TrainEpoch> epoch_from(const Json& json) {
  const auto has = [&](const char* key, bool (Json::*is)() const noexcept) {
    return json.contains(key) && (json[key].*is)();
  };
  if (!json.is_object() || !has("epoch", &Json::is_number_integer) || !has("validation", &Json::is_object))
    return std::nullopt;
  const auto number = [&](const char* key) {
    return has(key, &Json::is_number) ? json[key].get<double>() : NAN;
  };
  // earlier versions did not count steps
  const auto count = [&](const char* key) {
    return has(key, &Json::is_number_integer) ? json[key].get<int64_t>() : 0;
  };
  return TrainEpoch{.epoch = json["epoch"].get<int64_t>(),
                    .steps = count("steps"),
                    .replayed_steps = count("replayed_steps"),
                    .loss = number("loss"),
                    .learning_rate = number("learning_rate"),
                    .seconds = number("seconds"),
                    .validation = metrics_from(json["validation"]),
                    .best = has("best", &Json::is_boolean) && json["best"].get<bool>()};
}

// nothing, if the line is cut off or damaged
std::optional<TrainEpoch> epoch_from(const std::string& line) {
  try {
    return epoch_from(parse_json(line));
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

}  // namespace

void RunFolder::log(const std::string& line) const {
  std::ofstream out(*this / "log.txt", std::ios::app);
  out << utc_now("%Y-%m-%d %H:%M:%S UTC") << "  " << printable(line) << "\n" << std::flush;
  if (out || log_failed_) return;
  log_failed_ = true;
  if (events_.note)
    events_.note(message("warning: ", *this / "log.txt", " cannot be written: ", std::strerror(errno)));
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
  if (!out)
    throw std::runtime_error(
        message(path, ": cannot be written: ", std::strerror(errno), "; --resume continues the run"));
}

Json environment_json() {
  const Environment e = environment();
  return {{"fastweights", e.version}, {"compiler", e.compiler},
          {"libtorch", e.libtorch},   {"blas", e.blas},
          {"threads", e.threads},     {"processor", e.processor},
          {"cores", e.cores},         {"instructions", e.instruction_set}};
}

Json environment_of(const std::string& folder) {
  const std::string path = folder + "/environment.json";
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path))) return Json::object();
  try {
    return read_json_file(path, [](const Json& json) { return json.is_object() ? json : Json::object(); });
  } catch (const std::runtime_error&) {
    return Json::object();
  }
}

std::string text_at(const Json& json, const char* key) {
  if (!json.contains(key)) return "";
  const Json& value = json[key];
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Json metrics_json(const Metrics& metrics) {
  Json out = Json::object();
  for (const auto& [name, value] : metrics) out[name] = number_json(value);
  return out;
}

Json intervals_json(const ConfidenceIntervals& intervals) {
  Json out = Json::object();
  for (const auto& [name, of] : intervals) out[name] = {number_json(of.low), number_json(of.high)};
  return out;
}

Json result_json(const PartResult& part) {
  Json json = metrics_json(part.metrics);
  json["samples"] = part.samples;
  if (!part.intervals.empty()) json["intervals"] = intervals_json(part.intervals);
  json.update(groups_json(part.groups));
  return json;
}

Json groups_json(const std::vector<MetricsGroup>& groups) {
  Json json = Json::object();
  for (const MetricsGroup& group : groups) json[group.kind][group.name] = metrics_json(group.metrics);
  return json;
}

std::string EpochsFile::warning() const {
  if (damaged == 0) return "";
  return message("warning: metrics.jsonl is damaged: ", damaged,
                 damaged == 1 ? " line was left out" : " lines were left out");
}

EpochsFile read_epochs(const std::string& folder) {
  const std::string path = folder + "/metrics.jsonl";
  // curves are not worth an error
  const std::string text = std::filesystem::is_regular_file(path) ? read_file(path) : "";
  std::istringstream in(text);
  EpochsFile found;
  for (std::string line; std::getline(in, line);) {
    const std::optional<TrainEpoch> epoch = epoch_from(line);
    const int64_t last = found.epochs.empty() ? 0 : found.epochs.back().epoch;
    if (epoch && epoch->epoch > last) {
      found.epochs.push_back(*epoch);
    } else if (!in.eof()) {
      ++found.damaged;
    }
  }
  return found;
}

EpochsFile keep_epochs(const std::string& folder, int64_t epochs) {
  EpochsFile kept = read_epochs(folder);
  std::erase_if(kept.epochs, [&](const TrainEpoch& epoch) { return epoch.epoch > epochs; });
  std::string lines;
  for (const TrainEpoch& epoch : kept.epochs) lines += epoch_json(epoch).dump() + "\n";
  replace_file(folder + "/metrics.jsonl", lines);
  return kept;
}

std::string to_json(const RunResult& result) {
  Json json = {{"best_epoch", result.best_epoch}, {"threshold", result.threshold}};
  if (!result.calibration.is_identity()) json["calibration"] = calibration_json(result.calibration);
  for (const PartResult& part : result.parts) json[part.name] = result_json(part);
  return json.dump(2);
}

bool has_finished(const std::string& folder) {
  const auto there = [&](const char* name) { return std::filesystem::exists(folder + name); };
  return there("/result.json") && there("/model.safetensors") && there("/report.html") &&
         there("/model_card.md") && !there("/lock");
}

RunResult read_result(const std::string& folder) {
  return read_json_file(folder + "/result.json", [](const Json& json) {
    RunResult result = {.best_epoch = json.at("best_epoch").get<int64_t>(),
                        .threshold = json.at("threshold").get<double>()};
    for (const char* name : {"train", "validation", "test"}) {
      if (!json.contains(name)) continue;
      const Json& part = json.at(name);
      result.parts.push_back({name, part.at("samples").get<int64_t>(), metrics_from(part),
                              metric_intervals_from(part), groups_from(part)});
    }
    FW_CHECK(!result.parts.empty(), "there is no result of train, validation or test in it");
    return result;
  });
}

}  // namespace fastweights
