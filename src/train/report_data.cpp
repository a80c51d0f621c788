#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "fastweights/error.h"
#include "fastweights/run.h"
#include "report/report.h"
#include "tensor/autograd.h"
#include "train/clock.h"
#include "train/run_fields.h"

namespace fastweights {
namespace {

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(); }

Json numbers(const Tensor& x) {
  const Tensor flat = x.to(at::kDouble).contiguous().view(-1);
  Json list = Json::array();
  for (int64_t i = 0; i < flat.size(0); ++i) list.push_back(number(flat.data_ptr<double>()[i]));
  return list;
}

// four digits are enough for a picture
Json rounded(const Tensor& x) {
  const Tensor flat = x.to(at::kDouble).contiguous().view(-1);
  Json list = Json::array();
  for (int64_t i = 0; i < flat.size(0); ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", flat.data_ptr<double>()[i]);
    list.push_back(number(std::strtod(text, nullptr)));
  }
  return list;
}

struct Line {
  Json x = Json::array(), y = Json::array();
};

Json curve(const char* title, const char* y_label, const std::vector<std::pair<std::string, Line>>& lines,
           int64_t best) {
  Json json = {{"title", title}, {"x_label", "epoch"}, {"y_label", y_label}, {"best_x", best}};
  json["lines"] = Json::array();
  for (const auto& [name, line] : lines)
    json["lines"].push_back({{"name", name}, {"x", line.x}, {"y", line.y}});
  return json;
}

Json curves(const std::string& folder, int64_t best) {
  Line loss, rate, validation_loss;
  std::vector<std::pair<std::string, Line>> metrics;
  std::istringstream in(file_text(folder + "/metrics.jsonl"));
  for (std::string text; std::getline(in, text);) {
    const Json epoch = Json::parse(text);
    const auto add = [&](Line& line, const Json& y) {
      line.x.push_back(epoch.at("epoch"));
      line.y.push_back(y);
    };
    add(loss, epoch.at("loss"));
    add(rate, epoch.at("learning_rate"));
    for (const auto& [name, value] : epoch.at("validation").items()) {
      if (name == "log_loss" || name == "mse") add(validation_loss, value);
      if (name == "log_loss" || name == "mse" || name == "mae") continue;
      auto known = std::find_if(metrics.begin(), metrics.end(),
                                [key = name](const auto& m) { return m.first == key; });
      if (known == metrics.end()) known = metrics.emplace(metrics.end(), name, Line{});
      add(known->second, value);
    }
  }
  Json out = Json::array();
  std::vector<std::pair<std::string, Line>> losses = {{"train", loss}};
  if (!validation_loss.x.empty()) losses.emplace_back("validation", validation_loss);
  out.push_back(curve("Loss", "loss", losses, best));
  if (!metrics.empty()) out.push_back(curve("Validation", "metric", metrics, best));
  out.push_back(curve("Learning rate", "rate", {{"learning rate", rate}}, best));
  return out;
}

Json metrics_table(const Json& result) {
  Json columns = Json::array(), rows = Json::array();
  std::vector<std::string> names;
  for (const char* part : {"train", "validation", "test"}) {
    if (!result.contains(part)) continue;
    columns.push_back(part);
    for (const auto& [name, value] : result[part].items()) {
      if (name != "samples" && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    Json values = Json::array();
    for (const Json& part : columns) values.push_back(result[part.get<std::string>()].value(name, Json()));
    const bool percent = name.find("accuracy") != std::string::npos;
    rows.push_back({{"name", name}, {"format", percent ? "percent" : "number"}, {"values", values}});
  }
  return {{"columns", columns}, {"rows", rows}};
}

// what share of those predicted so were so, in ten bins
Json calibration(const Tensor& p, const Tensor& positive, const std::string& part) {
  constexpr int kBins = 10;
  std::vector<double> sum(kBins, 0), hits(kBins, 0), count(kBins, 0);
  const Tensor probabilities = p.to(at::kDouble).contiguous(), truth = positive.to(at::kDouble).contiguous();
  for (int64_t i = 0; i < p.size(0); ++i) {
    const double x = probabilities.data_ptr<double>()[i];
    const auto bin = static_cast<size_t>(std::clamp(static_cast<int>(x * kBins), 0, kBins - 1));
    sum[bin] += x;
    hits[bin] += truth.data_ptr<double>()[i];
    count[bin] += 1;
  }
  Json json = {
      {"part", part}, {"predicted", Json::array()}, {"observed", Json::array()}, {"count", Json::array()}};
  for (size_t bin = 0; bin < kBins; ++bin) {
    if (count[bin] == 0) continue;
    json["predicted"].push_back(sum[bin] / count[bin]);
    json["observed"].push_back(hits[bin] / count[bin]);
    json["count"].push_back(count[bin]);
  }
  return json;
}

// a curve of many points, thinned
Json roc_json(const Tensor& p, const Tensor& positive, double threshold, const std::string& part) {
  const Roc curve = roc(p, positive);
  constexpr size_t kMost = 400;
  const size_t step = curve.thresholds.size() / kMost + 1;
  Json json = {{"part", part}, {"auc", number(auroc(p, positive))}};
  json["false_positive"] = json["true_positive"] = Json::array();
  size_t chosen = 0;
  for (size_t i = 0; i < curve.thresholds.size(); ++i) {
    if (curve.thresholds[i] >= threshold) chosen = i;
    if (i % step != 0 && i + 1 != curve.thresholds.size()) continue;
    json["false_positive"].push_back(curve.false_positive[i]);
    json["true_positive"].push_back(curve.true_positive[i]);
  }
  json["threshold"] = {{"value", threshold},
                       {"false_positive", curve.false_positive[chosen]},
                       {"true_positive", curve.true_positive[chosen]}};
  return json;
}

Json mistakes(const Predictions& p, const Tensor& probabilities, const Tensor& predicted,
              const PreparedData& data, const std::vector<std::string>& classes) {
  constexpr size_t kMost = 12;
  const Tensor wrong = (predicted.ne(p.classes) & p.classes.ge(0)).nonzero().squeeze(1);
  std::vector<std::pair<double, int64_t>> worst;
  for (int64_t i = 0; i < wrong.size(0); ++i) {
    const int64_t row = wrong[i].item<int64_t>();
    worst.emplace_back(probabilities[row][p.classes[row].item<int64_t>()].item<double>(), row);
  }
  std::sort(worst.begin(), worst.end());
  Json list = Json::array();
  for (size_t i = 0; i < worst.size() && i < kMost; ++i) {
    const auto [likely, row] = worst[i];
    const auto guess = static_cast<size_t>(predicted[row].item<int64_t>());
    list.push_back({{"id", data.ids[static_cast<size_t>(p.samples[row].item<int64_t>())]},
                    {"true", classes[static_cast<size_t>(p.classes[row].item<int64_t>())]},
                    {"predicted", classes[guess]},
                    {"probability", probabilities[row][static_cast<int64_t>(guess)].item<double>()},
                    {"loss", -std::log(std::max(likely, 1e-15))}});
  }
  return list;
}

void add_classes(Json& json, const TrainedModel& trained, const Predictions& p, const PreparedData& data,
                 const std::string& part) {
  const Tensor probabilities = class_probabilities(p.outputs), known = p.classes.ge(0).nonzero().squeeze(1);
  if (known.size(0) == 0) return;
  const Tensor predicted = predicted_classes(probabilities, trained.threshold);
  const std::vector<std::string>& classes = trained.preparation.classes;
  json["confusion"] = {{"part", part},
                       {"classes", classes},
                       {"counts", confusion(predicted, p.classes, static_cast<int64_t>(classes.size()))}};
  if (classes.size() == 2) {
    const Tensor scores = probabilities.select(1, 1).index_select(0, known),
                 truth = p.classes.index_select(0, known);
    json["roc"] = roc_json(scores, truth, trained.threshold, part);
    json["calibration"] = calibration(scores, truth, part);
  }
  json["mistakes"] = mistakes(p, probabilities, predicted, data, classes);
}

void add_scatter(Json& json, const TrainedModel& trained, const Predictions& p, const std::string& part) {
  constexpr int64_t kMost = 2000;
  const bool channels = trained.task.kind != TaskKind::Regression;
  const Tensor truth = in_own_units(p.targets, trained.task, trained.preparation).select(1, 0),
               guess = in_own_units(p.outputs, trained.task, trained.preparation).select(1, 0);
  const Tensor known = truth.isnan().logical_not().nonzero().squeeze(1).slice(0, 0, kMost);
  if (known.size(0) == 0) return;
  json["scatter"] = {{"part", part},
                     {"target", channels ? trained.preparation.channels[0] : trained.preparation.targets[0]},
                     {"true", numbers(truth.index_select(0, known))},
                     {"predicted", numbers(guess.index_select(0, known))}};
}

std::vector<std::string> output_names(const TrainedModel& trained) {
  const Preparation& p = trained.preparation;
  if (trained.task.kind == TaskKind::Regression) return p.targets;
  const bool channels = trained.task.kind == TaskKind::Forecast || trained.task.kind == TaskKind::Imputation;
  return channels ? p.channels : p.classes;
}

// W over one series, at some sixty times
Json fast_weights(const TrainedModel& trained, const PreparedData& data, int64_t sample) {
  constexpr int64_t kFrames = 60, kRows = 2000;
  TaskConfig whole = trained.task;
  if (whole.kind != TaskKind::Regression) whole.kind = TaskKind::Classification;
  Batch batch = make_batch(data, trained.preparation, whole, {sample}, 1);
  const RaggedSeries& series = batch.input.series;
  const Tensor times = series.times;  // [L]
  // a row that is alone has been given company
  const int64_t observed = data.offsets[sample + 1].item<int64_t>() - data.offsets[sample].item<int64_t>();
  const int64_t length = times.size(0);
  const double first = times[0].item<double>(), last = times[-1].item<double>();
  const int64_t frames = std::min<int64_t>(kFrames, std::max<int64_t>(2, length));
  const Tensor at_times = length == 1 ? times : at::linspace(first, last, frames, at::kDouble);
  batch.input.output_times = RaggedTimes{at_times, at::tensor({int64_t{0}, at_times.size(0)}, at::kLong)};
  const ModelOutput out = trained.model.forward(batch.input);
  const Tensor own = in_own_units(
      data.values.slice(0, data.offsets[sample].item<int64_t>(), data.offsets[sample + 1].item<int64_t>()),
      {.kind = TaskKind::Forecast}, trained.preparation);  // [L, C]
  Json json = {{"id", data.ids[static_cast<size_t>(sample)]},
               {"of", out.w.empty() || out.w[0].size(2) > 1 ? "weights" : "state"},
               {"channels", trained.preparation.channels},
               {"time_unit", trained.preparation.time_unit}};
  json["times"] = json["values"] = Json::array();
  const int64_t every = observed / kRows + 1;
  for (int64_t i = 0; i < observed; i += every) {
    json["times"].push_back(times[length - observed + i].item<double>());
    json["values"].push_back(rounded(own[i]));
  }
  Json layers = Json::array(), names = Json::array(), norms = Json::array();
  for (size_t l = 0; l < out.w.size(); ++l) {
    const Tensor& w = out.w[l];  // [T, H, V, K]
    Json list = Json::array();
    for (int64_t t = 0; t < w.size(0); ++t) list.push_back(rounded(w[t]));
    layers.push_back({{"heads", w.size(1)}, {"rows", w.size(2)}, {"columns", w.size(3)}, {"w", list}});
    for (int64_t h = 0; h < w.size(1); ++h) names.push_back(message("layer ", l + 1, " head ", h + 1));
  }
  for (int64_t t = 0; t < at_times.size(0); ++t) {
    Json row = Json::array();
    for (const Tensor& w : out.w) {
      for (const Json& norm : rounded(w[t].flatten(1).norm(2, 1))) row.push_back(norm);
    }
    norms.push_back(row);
  }
  json["frames"] = {{"times", numbers(at_times)}, {"layers", layers}};
  json["norms"] = {{"names", names}, {"values", norms}};
  const bool classes =
      trained.task.kind == TaskKind::Classification || trained.task.kind == TaskKind::StepClassification;
  const Tensor values = classes ? class_probabilities(out.outputs)
                                : in_own_units(out.outputs, trained.task, trained.preparation);
  Json rows = Json::array();
  for (int64_t t = 0; t < values.size(0); ++t) rows.push_back(rounded(values[t]));
  json["outputs"] = {{"names", output_names(trained)}, {"times", numbers(at_times)}, {"values", rows}};
  if (classes && data.labels.defined()) {
    const int64_t label = data.labels[sample].item<int64_t>();
    if (label >= 0) json["label"] = trained.preparation.classes[static_cast<size_t>(label)];
    json["predicted"] =
        trained.preparation
            .classes[static_cast<size_t>(predicted_classes(values, trained.threshold)[-1].item<int64_t>())];
  }
  return json;
}

// a list of pairs, which the JSON library would take for an object
Json pairs(const std::vector<std::pair<std::string, std::string>>& list) {
  Json out = Json::array();
  for (const auto& [name, value] : list) out.push_back(Json::array({name, value}));
  return out;
}

Json model_json(const TrainedModel& trained) {
  const ModelConfig& c = trained.model.config();
  Json parameters = Json::array();
  for (const auto& [name, tensor] : trained.model.parameters())
    parameters.push_back(Json::array({name, message(tensor.sizes()), tensor.numel()}));
  std::vector<std::pair<std::string, std::string>> summary = {{"system", name_of(c.system)}};
  if (c.system == System::FastWeights) {
    summary.insert(summary.end(), {{"rule", c.rule},
                                   {"drive", name_of(c.drive)},
                                   {"method", c.solver.method},
                                   {"heads", message(c.heads)},
                                   {"layers", message(c.layers)}});
  }
  summary.insert(summary.end(), {{"control", name_of(c.control.kind)},
                                 {"hidden size", message(c.hidden_size)},
                                 {"parameters", message(trained.model.parameter_count())}});
  return {{"summary", pairs(summary)}, {"parameters", parameters}, {"config", to_json(c)}};
}

std::string model_text(const ModelConfig& model) {
  if (model.system != System::FastWeights) return "system " + std::string(name_of(model.system));
  return "fast weights, rule " + model.rule + ", drive " + name_of(model.drive);
}

Json facts(const RunConfig& config, const DataSet& data, const Split& parts) {
  char rate[32];
  std::snprintf(rate, sizeof rate, "%g", config.training.learning_rate);
  return pairs(
      {{"Data", data.head.name + " (" + data.head.origin + ")"},
       {"Series", message(parts.train.size(), " train, ", parts.validation.size(), " validation, ",
                          parts.test.size(), " test; split ", name_of(parts.rule))},
       {"Channels", message(data.channels(), " in the data, ", config.model.channels, " for the model")},
       {"Task", name_of(config.task.kind)},
       {"Model", model_text(config.model)},
       {"Training", message("learning rate ", rate, ", ", name_of(config.training.schedule),
                            " schedule, seed ", config.training.seed)}});
}

}  // namespace

void write_report(const std::string& folder, const DataSet& data) {
  const at::NoGradGuard no_grad;
  const RunConfig config = read_run_config(folder);
  const TrainedModel trained = load_trained(folder);
  const Json result = parse_json(file_text(folder + "/result.json"));
  const Split parts = split_of(folder, data);
  const auto& [part, samples] = !parts.test.empty() ? std::pair(std::string("test"), parts.test)
                                : !parts.validation.empty()
                                    ? std::pair(std::string("validation"), parts.validation)
                                    : std::pair(std::string("train"), parts.train);
  const PreparedData shown = prepare(subset(data, samples), trained.preparation);
  const Predictions p = predict(trained.model, shown, trained.preparation, trained.task);
  const int64_t best = result.at("best_epoch").get<int64_t>();
  Json json = {{"version", 1},
               {"title", data.head.name},
               {"subtitle", message(name_of(config.task.kind), " with ", model_text(config.model))},
               {"finished", utc_now("%Y-%m-%d %H:%M UTC")},
               {"facts", facts(config, data, parts)}};
  json["headline"] = Json::array();
  const std::string chosen = config.training.metric;
  for (const char* name : {"accuracy", "auroc", "mse"}) {
    if (!result[part].contains(name) || result[part][name].is_null()) continue;
    const bool percent = std::string(name) == "accuracy";
    json["headline"].push_back({{"name", part + " " + name},
                                {"value", result[part][name]},
                                {"format", percent ? "percent" : "number"}});
  }
  json["headline"].push_back(
      {{"name", "parameters"}, {"value", trained.model.parameter_count()}, {"format", "integer"}});
  json["curves"] = curves(folder, best);
  json["metrics"] = metrics_table(result);
  if (p.classes.defined()) add_classes(json, trained, p, shown, part);
  if (p.targets.defined()) add_scatter(json, trained, p, part);
  json["model"] = model_json(trained);
  json["fast_weights"] = fast_weights(trained, shown, 0);
  if (!data.head.skipped.empty())
    json["warnings"] = Json::array({message(data.head.skipped.size(), " files were left out")});
  json["commands"] =
      Json::array({message("fastweights evaluate ", folder, " ", config.data.path),
                   message("fastweights predict ", folder, " ", config.data.path, " --out predictions.csv")});
  const std::string text = json.dump();
  replace_file(folder + "/report.json", text);
  replace_file(folder + "/report.html", report_page(text));
}

}  // namespace fastweights
