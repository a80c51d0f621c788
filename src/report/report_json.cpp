#include "base/json_fields.h"
#include "report/report.h"

namespace fastweights::report {
namespace {

template <typename Visit>
void visit_fields(Headline& h, Visit& visit) {
  visit("name", h.name);
  visit("value", h.value);
  visit("format", h.format);
}

template <typename Visit>
void visit_fields(Line& l, Visit& visit) {
  visit("name", l.name);
  visit("x", l.x);
  visit("y", l.y);
}

template <typename Visit>
void visit_fields(Curve& c, Visit& visit) {
  visit("title", c.title);
  visit("x_label", c.x_label);
  visit("y_label", c.y_label);
  visit("best_x", c.best_x);
  visit("lines", c.lines);
}

template <typename Visit>
void visit_fields(MetricsRow& r, Visit& visit) {
  visit("name", r.name);
  visit("format", r.format);
  visit("values", r.values);
  visit("intervals", r.intervals);
}

template <typename Visit>
void visit_fields(MetricsTable& t, Visit& visit) {
  visit("columns", t.columns);
  visit("rows", t.rows);
}

template <typename Visit>
void visit_fields(Confusion& c, Visit& visit) {
  visit("part", c.part);
  visit("note", c.note);
  visit("classes", c.classes);
  visit("counts", c.counts);
}

template <typename Visit>
void visit_fields(ClassRow& c, Visit& visit) {
  visit("name", c.name);
  visit("precision", c.precision);
  visit("recall", c.recall);
  visit("f1", c.f1);
  visit("samples", c.samples);
  visit("predicted", c.predicted);
}

template <typename Visit>
void visit_fields(ClassTable& c, Visit& visit) {
  visit("part", c.part);
  visit("note", c.note);
  visit("rows", c.rows);
}

template <typename Visit>
void visit_fields(RocPoint& p, Visit& visit) {
  visit("value", p.value);
  visit("false_positive", p.false_positive);
  visit("true_positive", p.true_positive);
}

template <typename Visit>
void visit_fields(RocCurve& r, Visit& visit) {
  visit("part", r.part);
  visit("auc", r.auc);
  visit("false_positive", r.false_positive);
  visit("true_positive", r.true_positive);
  visit("threshold", r.threshold);
}

template <typename Visit>
void visit_fields(ClassRoc& c, Visit& visit) {
  visit("name", c.name);
  visit("auc", c.auc);
  visit("false_positive", c.false_positive);
  visit("true_positive", c.true_positive);
}

template <typename Visit>
void visit_fields(ClassRocs& c, Visit& visit) {
  visit("part", c.part);
  visit("note", c.note);
  visit("curves", c.curves);
}

template <typename Visit>
void visit_fields(Calibration& c, Visit& visit) {
  visit("part", c.part);
  visit("of", c.of);
  visit("predicted", c.predicted);
  visit("observed", c.observed);
  visit("count", c.count);
  visit("low", c.low);
  visit("high", c.high);
}

template <typename Visit>
void visit_fields(Scatter& s, Visit& visit) {
  visit("part", s.part);
  visit("target", s.target);
  visit("true", s.truth);
  visit("predicted", s.predicted);
}

template <typename Visit>
void visit_fields(Forecast& f, Visit& visit) {
  visit("id", f.id);
  visit("channel", f.channel);
  visit("time_unit", f.time_unit);
  visit("history_times", f.history_times);
  visit("history", f.history);
  visit("times", f.times);
  visit("truth", f.truth);
  visit("predicted", f.predicted);
  visit("low", f.low);
  visit("high", f.high);
}

template <typename Visit>
void visit_fields(Mistake& m, Visit& visit) {
  visit("id", m.id);
  visit("true", m.truth);
  visit("predicted", m.predicted);
  visit("probability", m.probability);
  visit("loss", m.loss);
}

template <typename Visit>
void visit_fields(ChangedSetting& c, Visit& visit) {
  visit("key", c.key);
  visit("value", c.value);
  visit("default", c.usual);
}

template <typename Visit>
void visit_fields(ModelSection& m, Visit& visit) {
  visit("summary", m.summary);
  visit("changed", m.changed);
  visit("parameters", m.parameters);
  visit("config", m.config);
}

template <typename Visit>
void visit_fields(LayerFrames& l, Visit& visit) {
  visit("heads", l.heads);
  visit("rows", l.rows);
  visit("columns", l.columns);
  visit("w", l.w);
}

template <typename Visit>
void visit_fields(Frames& f, Visit& visit) {
  visit("times", f.times);
  visit("layers", f.layers);
}

template <typename Visit>
void visit_fields(Norms& n, Visit& visit) {
  visit("names", n.names);
  visit("values", n.values);
}

template <typename Visit>
void visit_fields(Outputs& o, Visit& visit) {
  visit("label", o.label);
  visit("names", o.names);
  visit("times", o.times);
  visit("values", o.values);
}

template <typename Visit>
void visit_fields(ImportanceView& i, Visit& visit) {
  visit("of", i.of);
  visit("values", i.values);
  visit("output", i.output);
  visit("baseline", i.baseline);
}

template <typename Visit>
void visit_fields(WeightView& v, Visit& visit) {
  visit("id", v.id);
  visit("of", v.of);
  visit("channels", v.channels);
  visit("time_unit", v.time_unit);
  visit("times", v.times);
  visit("values", v.values);
  visit("frames", v.frames);
  visit("norms", v.norms);
  visit("outputs", v.outputs);
  visit("importance", v.importance);
  visit("label", v.label);
  visit("predicted", v.predicted);
}

template <typename Visit>
void visit_fields(RunLink& r, Visit& visit) {
  visit("name", r.name);
  visit("href", r.href);
  visit("values", r.values);
}

template <typename Visit>
void visit_fields(RunsTable& r, Visit& visit) {
  visit("part", r.part);
  visit("columns", r.columns);
  visit("formats", r.formats);
  visit("runs", r.runs);
}

template <typename Visit>
void visit_fields(Calendar& c, Visit& visit) {
  visit("zero", c.zero);
  visit("unit", c.unit);
}

template <typename Visit>
void visit_fields(ReportData& r, Visit& visit) {
  visit("version", r.version);
  visit("title", r.title);
  visit("subtitle", r.subtitle);
  visit("finished", r.finished);
  visit("facts", r.facts);
  visit("data", r.data);
  visit("calendar", r.calendar);
  visit("headline", r.headline);
  visit("runs", r.runs);
  visit("curves", r.curves);
  visit("advice", r.advice);
  visit("metrics", r.metrics);
  visit("confusion", r.confusion);
  visit("classes", r.classes);
  visit("roc", r.roc);
  visit("class_roc", r.class_roc);
  visit("calibration", r.calibration);
  visit("mistakes", r.mistakes);
  visit("scatter", r.scatter);
  visit("forecasts", r.forecasts);
  visit("model", r.model);
  visit("fast_weights", r.fast_weights);
  visit("series", r.series);
  visit("references", r.references);
  visit("warnings", r.warnings);
  visit("commands", r.commands);
}

template <typename Visit>
void visit_fields(BoardRun& r, Visit& visit) {
  visit("name", r.name);
  visit("state", r.state);
  visit("note", r.note);
  visit("task", r.task);
  visit("model", r.model);
  visit("data", r.data);
  visit("metric", r.metric);
  visit("link", r.link);
  visit("validation", r.validation);
  visit("test", r.test);
  visit("larger_is_better", r.larger_is_better);
  visit("best_epoch", r.best_epoch);
  visit("epochs", r.epochs);
  visit("seconds", r.seconds);
  visit("settings", r.settings);
}

template <typename Visit>
void visit_fields(BoardData& b, Visit& visit) {
  visit("version", b.version);
  visit("title", b.title);
  visit("written", b.written);
  visit("live", b.live);
  visit("notes", b.notes);
  visit("keys", b.keys);
  visit("runs", b.runs);
  visit("curves", b.curves);
}

struct Writer;

template <typename T>
concept Structure = requires(T& value, Writer& writer) {
  visit_fields(value, writer);
};

// numbers, texts, and what the JSON library makes of pairs
template <typename T>
Json value_of(T& value) {
  return Json(value);
}
Json value_of(std::variant<double, int64_t>& value) {
  return std::visit([](const auto& x) { return Json(x); }, value);
}
Json value_of(Parameter& p) { return Json::array({p.name, p.shape, p.count}); }
template <Structure T>
Json value_of(T& value);
template <typename T>
Json value_of(std::vector<T>& list) {
  Json out = Json::array();
  for (T& item : list) out.push_back(value_of(item));
  return out;
}

struct Writer {
  Json out = Json::object();

  template <typename T>
  void operator()(const char* key, T& value) {
    out[key] = value_of(value);
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    if (value) out[key] = value_of(*value);
  }
};

template <Structure T>
Json value_of(T& value) {
  Writer writer;
  visit_fields(value, writer);
  return std::move(writer.out);
}

}  // namespace

// names that are not UTF-8 are only shown
std::string to_json(ReportData data) { return shown_dump(value_of(data)); }
std::string to_json(BoardData data) { return shown_dump(value_of(data)); }

}  // namespace fastweights::report
