#include "train/preparation_json.h"

#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "train/run_fields.h"

namespace fastweights {
namespace {

Json scales_json(const std::vector<Scale>& scales) {
  Json list = Json::array();
  for (const Scale& scale : scales) list.push_back({scale.mean, scale.deviation});
  return list;
}

std::vector<Scale> scales_from(const Json& json) {
  std::vector<Scale> scales;
  for (const Json& pair : json) scales.push_back({pair.at(0).get<double>(), pair.at(1).get<double>()});
  return scales;
}

Json texts_json(const std::vector<TextColumn>& texts) {
  Json list = Json::array();
  for (const TextColumn& text : texts) list.push_back({{"column", text.column}, {"values", text.values}});
  return list;
}

const char* time_form_name(TimeForm form) {
  return form == TimeForm::Unknown ? "unknown" : form == TimeForm::Dates ? "dates" : "numbers";
}

// absent in files of earlier versions
TimeForm time_form_from(const Json& json) {
  const std::string name = json.value("time_form", time_form_name(TimeForm::Unknown));
  for (const TimeForm form : {TimeForm::Unknown, TimeForm::Numbers, TimeForm::Dates}) {
    if (name == time_form_name(form)) return form;
  }
  throw std::invalid_argument("unknown time_form '" + printable(name) + "'");
}

// absent in files of earlier versions
std::vector<TextColumn> texts_from(const Json& json, const char* key) {
  std::vector<TextColumn> texts;
  if (!json.contains(key)) return texts;
  for (const Json& text : json.at(key))
    texts.push_back(
        {text.at("column").get<std::string>(), text.at("values").get<std::vector<std::string>>()});
  return texts;
}

Json guesses_json(const std::vector<ChannelGuess>& guesses) {
  Json list = Json::array();
  for (const ChannelGuess& guess : guesses)
    list.push_back({{"harmonics", guess.harmonics}, {"line", guess.line}});
  return list;
}

std::vector<ChannelGuess> guesses_from(const Json& json) {
  std::vector<ChannelGuess> guesses;
  for (const Json& guess : json)
    guesses.push_back({guess.at("harmonics").get<int64_t>(), guess.at("line").get<bool>()});
  return guesses;
}

}  // namespace

Json preparation_json(const Preparation& p) {
  return {{"config", json_of(p.config)},
          {"channels", p.channels},
          {"statics", p.statics},
          {"targets", p.targets},
          {"classes", p.classes},
          {"channel_scales", scales_json(p.channel_scales)},
          {"static_scales", scales_json(p.static_scales)},
          {"static_flags", p.static_flags},
          {"channel_texts", texts_json(p.channel_texts)},
          {"static_texts", texts_json(p.static_texts)},
          {"target_scales", scales_json(p.target_scales)},
          {"time_unit", p.time_unit},
          {"time_form", time_form_name(p.time_form)},
          {"median_gap", p.median_gap},
          {"usual_gap", p.usual_gap},
          {"time_scale", p.time_scale},
          {"count_scale", p.count_scale},
          {"window", p.window},
          {"season", p.season},
          {"guesses", guesses_json(p.guesses)},
          {"naive_errors", p.naive_errors}};
}

Preparation preparation_from(const Json& json) {
  using Texts = std::vector<std::string>;
  Preparation p = {.config = read_fields(json.at("config"), PrepareConfig{}),
                   .channels = json.at("channels").get<Texts>(),
                   .statics = json.at("statics").get<Texts>(),
                   .targets = json.at("targets").get<Texts>(),
                   .classes = json.at("classes").get<Texts>(),
                   .channel_scales = scales_from(json.at("channel_scales")),
                   .static_scales = scales_from(json.at("static_scales")),
                   .target_scales = scales_from(json.at("target_scales")),
                   .static_flags = json.at("static_flags").get<std::vector<int64_t>>()};
  p.channel_texts = texts_from(json, "channel_texts");
  p.static_texts = texts_from(json, "static_texts");
  p.time_unit = json.at("time_unit").get<std::string>();
  p.time_form = time_form_from(json);
  p.median_gap = json.at("median_gap").get<double>();
  p.time_scale = json.at("time_scale").get<double>();
  p.count_scale = json.at("count_scale").get<double>();
  // absent in files of earlier versions, whose model time is time
  if (json.contains("usual_gap")) p.usual_gap = json.at("usual_gap").get<double>();
  if (!json.at("config").contains("usual_gaps")) p.config.usual_gaps = 0;
  // nor had they first guesses
  if (!json.at("config").contains("first_guess")) p.config.first_guess = FirstGuess::None;
  // nor windows
  if (json.contains("window")) p.window = json.at("window").get<int64_t>();
  if (json.contains("season")) p.season = json.at("season").get<double>();
  if (json.contains("guesses")) p.guesses = guesses_from(json.at("guesses"));
  if (json.contains("naive_errors")) p.naive_errors = json.at("naive_errors").get<std::vector<double>>();
  return p;
}

bool has_valid_guesses(const Preparation& p) {
  constexpr int64_t kMostHarmonics = 64;
  const bool season = p.season > 0 && std::isfinite(p.season);
  const auto one_per_channel = [&](const auto& list) {
    return list.empty() || list.size() == p.channels.size();
  };
  return one_per_channel(p.guesses) && one_per_channel(p.naive_errors) &&
         std::all_of(p.naive_errors.begin(), p.naive_errors.end(),
                     [](double x) { return x >= 0 && std::isfinite(x); }) &&
         std::all_of(p.guesses.begin(), p.guesses.end(), [&](const ChannelGuess& guess) {
           return guess.harmonics >= -1 && guess.harmonics <= (season ? kMostHarmonics : 0);
         });
}

}  // namespace fastweights
