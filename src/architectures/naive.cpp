#include <algorithm>
#include <cmath>

#include "architectures/baseline.h"
#include "architectures/filled.h"
#include "architectures/season.h"
#include "base/error.h"
#include "model/architecture_spec.h"

/// Values of channels from their own observed values: the last one, the one a season before, and lines.

namespace fastweights {
namespace {

const Names<NaiveForm> kForms = {{NaiveForm::Last, "naive"},
                                 {NaiveForm::Season, "seasonal_naive"},
                                 {NaiveForm::Neighbours, "linear_interpolation"},
                                 {NaiveForm::FirstAndLast, "drift"}};

// the value one season earlier, or as many as it takes to reach observations
double season_before(const Observed& known, double position, double season) {
  if (known.at.empty() || season <= 0) return known.held(position);
  // sums of seasons are rounded
  const double slack = 1e-9 * season;
  const double seasons = std::max(1.0, std::ceil((position - known.at.back() - slack) / season));
  const double before = position - seasons * season;
  return before + slack < known.at.front() ? known.held(position) : known.line(before);
}

double first_and_last(const Observed& known, double position) {
  if (known.at.size() < 2) return known.held(position);
  const double slope = (known.values.back() - known.values.front()) / (known.at.back() - known.at.front());
  return known.values.front() + slope * (position - known.at.front());
}

double value_of(NaiveForm form, const Observed& known, double position, double season) {
  if (form == NaiveForm::Season) return season_before(known, position, season);
  if (form == NaiveForm::Neighbours) return known.line(position);
  return form == NaiveForm::FirstAndLast ? first_and_last(known, position) : known.held(position);
}

// rows are counted from 0; times between two rows lie between their numbers
std::vector<double> row_numbers(const std::vector<double>& times) {
  std::vector<double> rows(times.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<double>(i);
  return rows;
}

class NaiveNetwork : public Baseline {
 public:
  NaiveNetwork(const ModelConfig& model, const Naive& config, const ModelOptions& options) : Baseline(model) {
    if (config.form == NaiveForm::Season)
      parameters_ = {{"season", at::full({1}, config.season, at::TensorOptions(options.type))}};
  }

  std::shared_ptr<Baseline> copy() const override { return std::make_shared<NaiveNetwork>(*this); }

  ModelOutput forward(const ModelConfig& model, const CheckedInput& checked,
                      const ForwardOptions&) const override {
    const Naive& config = model.architecture.get<Naive>();
    const RaggedSeries& series = checked.series;
    const int64_t known = config.rows.known_channels, channels = series.channels() - known;
    FW_CHECK(model.outputs == channels, "[model] architecture ", model.architecture.name(), " predicts its ",
             channels, " channels, and ", model.outputs, " outputs are requested");
    const double season = parameters_.empty() ? 0 : parameters_[0].second.item<double>();
    Tensor outputs = at::empty({checked.requested.times.size(0), channels}, at::kDouble);
    for (int64_t b = 0; b < series.samples(); ++b) fill_outputs(config, checked, b, season, outputs);
    outputs = outputs.to(series.values.scalar_type());
    return make_output(outputs, checked.requested, {outputs.view({-1, 1, 1, channels})}, {});
  }

 private:
  static void fill_outputs(const Naive& config, const CheckedInput& checked, int64_t sample, double season,
                           const Tensor& outputs) {
    const RaggedSeries& series = checked.series;
    const int64_t *rows = series.offsets.data_ptr<int64_t>(),
                  *requested = checked.requested.offsets.data_ptr<int64_t>();
    const double *t = series.times.data_ptr<double>(), *at = checked.requested.times.data_ptr<double>();
    const Tensor values = series.values.slice(0, rows[sample], rows[sample + 1]).to(at::kDouble).contiguous();
    const std::vector<double> times = {t + rows[sample], t + rows[sample + 1]};
    const bool by_rows = config.form == NaiveForm::Season && config.season_unit == SeasonUnit::Rows;
    const std::vector<double> positions = by_rows ? row_numbers(times) : times;
    const Observed clock = {times, positions};
    double* out = outputs.data_ptr<double>();
    for (int64_t c = 0; c < outputs.size(1); ++c) {
      const Observed known =
          observed(values.data_ptr<double>(), series.channels(), c + config.rows.known_channels, positions);
      for (int64_t i = requested[sample]; i < requested[sample + 1]; ++i)
        out[i * outputs.size(1) + c] =
            value_of(config.form, known, by_rows ? clock.line(at[i]) : at[i], season);
    }
  }
};

std::string fit(const ModelConfig&, const Naive& config, const Network& network, const FitData& data) {
  if (config.form != NaiveForm::Season || config.season > 0) return "";
  const bool by_rows = config.season_unit == SeasonUnit::Rows;
  const double gap = by_rows ? 0 : config.time_unit;
  const int64_t lag = estimated_season(data.train.input.series, config.rows.known_channels, gap);
  network.parameters()[0].second.fill_(static_cast<double>(lag) * (by_rows ? 1 : config.time_unit));
  if (lag == 0) return "no season was found; the last value is repeated";
  return message("the season is ", lag, by_rows ? " rows" : " median gaps");
}

std::string form_name(const Naive& o) {
  for (const auto& [form, name] : kForms) {
    if (form == o.form) return name;
  }
  return "";
}

template <NaiveForm form>
Architecture naive_for_data(const DataShape& shape) {
  return Naive{.form = form, .rows = {shape.known_channels}, .time_unit = shape.median_gap};
}

void visit_options(Naive& o, Fields& visit) {
  if (o.form == NaiveForm::Season) {
    visit("season", o.season);
    visit("season_unit", o.season_unit);
    visit("time_unit", o.time_unit);
  }
  visit("rows", o.rows);
}

void check(const ModelConfig& model, const Naive& o) {
  check_at_least("channels", model.channels, 1);
  check_at_least("outputs", model.outputs, 1);
  FW_CHECK(o.season >= 0 && std::isfinite(o.season), "[config] season must not be negative, got ", o.season);
  check_positive("time_unit", o.time_unit);
  check_known_channels(model, o.rows);
}

std::shared_ptr<const Network> make(const ModelConfig& model, const Naive& o, const ModelOptions& options) {
  return std::make_shared<NaiveNetwork>(model, o, options);
}

}  // namespace

const ArchitectureType& architecture_type(const Naive&) {
  static const ArchitectureType kType = make_architecture_type<Naive>(
      {.names = {{"naive", Naive{}},
                 {"seasonal_naive", Naive{.form = NaiveForm::Season}},
                 {"linear_interpolation", Naive{.form = NaiveForm::Neighbours}},
                 {"drift", Naive{.form = NaiveForm::FirstAndLast}}},
       .name = form_name,
       .fields = visit_options,
       .check = check,
       .make = make,
       .fit = fit,
       .tasks = Tasks::Channels,
       .models = {
           {"naive", "repeats the last observed value; forecasts and imputation",
            "Hyndman and Athanasopoulos 2021", naive_for_data<NaiveForm::Last>},
           {"seasonal-naive", "repeats the value of a season before; forecasts and imputation",
            "Hyndman and Athanasopoulos 2021", naive_for_data<NaiveForm::Season>},
           {"linear-interpolation", "connects neighbouring observations by lines; forecasts and imputation",
            "Hyndman and Athanasopoulos 2021", naive_for_data<NaiveForm::Neighbours>},
           {"drift", "the line through the first and the last observation; forecasts and imputation",
            "Hyndman and Athanasopoulos 2021", naive_for_data<NaiveForm::FirstAndLast>}}});
  return kType;
}

}  // namespace fastweights
