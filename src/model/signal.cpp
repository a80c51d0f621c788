#include "model/signal.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "control/cuda/on_device.h"
#include "control/straight.h"
#include "fastweights/control.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

// a path of control.h, if it is one
std::optional<Interpolation> interpolation_of(const ControlPath& path) {
  return std::visit(
      [](const auto& kind) -> std::optional<Interpolation> {
        if constexpr (std::is_constructible_v<Interpolation, decltype(kind)>) return kind;
        return {};
      },
      path);
}

// the last observation of each channel, before the first one that one; a channel never observed is 0
Tensor last_observations(const RaggedSeries& series) {
  if (!series.values.device().is_cpu()) return device_last_observations(series.values, series.offsets);
  const int64_t rows = series.values.size(0), channels = series.channels();
  const Tensor row = at::arange(rows, at::kLong).unsqueeze(1).expand({rows, channels});
  const Tensor missing = at::isnan(series.values.detach());
  const Tensor lengths = series.offsets.slice(0, 1) - series.offsets.slice(0, 0, -1);
  const auto per_row = [&](const Tensor& x) { return x.repeat_interleave(lengths).unsqueeze(1); };
  const Tensor first = per_row(series.offsets.slice(0, 0, -1)),
               last = per_row(series.offsets.slice(0, 1) - 1);
  const Tensor before = std::get<0>(at::cummax(at::where(missing, at::full_like(row, -1), row), 0));
  const Tensor after =
      std::get<0>(at::cummin(at::where(missing, at::full_like(row, rows), row).flip(0), 0)).flip(0);
  const Tensor from = at::where(before >= first, before, after);
  const Tensor found = from <= last;
  const Tensor values = series.values.gather(0, at::where(found, from, row));
  return at::where(found, values, at::zeros_like(values));
}

RaggedSeries scaled_times(const RaggedSeries& series, double unit) {
  return {series.values, unit == 1 ? series.times : series.times / unit, series.offsets};
}

Tensor sample_lengths(const Tensor& offsets) { return offsets.slice(0, 1) - offsets.slice(0, 0, -1); }

// position of each row inside its sample: [N]
Tensor positions(const Tensor& offsets) {
  const Tensor lengths = sample_lengths(offsets);
  return at::arange(offsets[-1].item<int64_t>(), at::kLong) -
         offsets.slice(0, 0, -1).repeat_interleave(lengths);
}

// one more row at the end of each sample
Tensor with_end(const Tensor& rows, const Tensor& offsets, const Tensor& ends) {
  const Tensor longer = offsets + at::arange(offsets.size(0), at::kLong);
  Tensor result = at::empty({rows.size(0) + ends.size(0)}, rows.options());
  const Tensor sample = at::arange(ends.size(0), at::kLong).repeat_interleave(sample_lengths(offsets));
  result.index_copy_(0, at::arange(rows.size(0), at::kLong) + sample, rows);
  result.index_copy_(0, longer.slice(0, 1) - 1, ends);
  return result;
}

// rows of a table on any device
Tensor select_rows(const Tensor& table, const Tensor& rows) {
  return table.index_select(0, on_device(rows, table.device()));
}

RaggedTimes just_after_each(const RaggedTimes& times) {
  return {at::nextafter(times.times, at::full_like(times.times, INFINITY)), times.offsets};
}

}  // namespace

// where no path on the CPU is made of the values themselves, what that would check
Signal::Missing Signal::check_values(const SharedOptions& config, const RaggedSeries& series) {
  check_series(series, "control", 2);
  if (!has_missing(series, "control")) return Missing::None;
  if (config.control.never_observed == NeverObserved::Reject) check_observed(series);
  return Missing::Some;
}

Signal::Signal(const SharedOptions& config, const RaggedSeries& series, const at::Device& device)
    : path_(config.control.path),
      time_unit_(config.time_unit),
      control_(Control::piecewise_constant(
          {at::tensor({0.0, 1.0}, at::kDouble), at::tensor({0, 2}, at::kLong)}, at::zeros({1, 1}))) {
  const bool path = !piecewise_constant();
  if (path && device.is_cpu()) {
    make_path(config, series);
    return;
  }
  const Missing missing = check_values(config, series);
  const RaggedSeries there = {on_device(series.values, device), series.times, series.offsets};
  if (path) {
    make_path(config, there);
  } else if (is<Hold>()) {
    make_hold(config, there, missing);
  } else {
    make_windows(config, there, missing);
  }
}

void Signal::make_path(const SharedOptions& config, const RaggedSeries& series) {
  const ControlOptions options = {.interpolation = *interpolation_of(path_),
                                  .never_observed = config.control.never_observed};
  const RaggedSeries scaled = scaled_times(series, config.time_unit);
  control_ = series.values.device().is_cpu() ? Control(scaled, options) : Control::on_device(scaled, options);
  begin_ = control_.begin();
  end_ = control_.end();
  if (is<Rectilinear>()) {
    map_clock_ = true;
    map_ = {series.times, 2.0 * positions(series.offsets).to(at::kDouble), series.offsets};
  }
  first_ = control_.at(Time(begin_)).value;
}

void Signal::make_hold(const SharedOptions& config, const RaggedSeries& series, Missing missing) {
  const Tensor values = missing == Missing::None ? series.values : last_observations(series);
  const Tensor times = scaled_times(series, config.time_unit).times;
  begin_ = times.index_select(0, series.offsets.slice(0, 0, -1));
  end_ = times.index_select(0, series.offsets.slice(0, 1) - 1);
  const Tensor offsets = series.offsets + at::arange(series.offsets.size(0), at::kLong);
  // the last observation goes on beyond the end, over a gap that is not smaller than others are
  const Tensor beyond =
      at::maximum(end_ + (end_ - begin_), at::nextafter(end_, at::full_like(end_, INFINITY)));
  control_ = Control::piecewise_constant({with_end(times, series.offsets, beyond), offsets}, values);
  first_ = select_rows(values, series.offsets.slice(0, 0, -1));
}

void Signal::make_windows(const SharedOptions& config, const RaggedSeries& series, Missing missing) {
  const auto& c = std::get<LogSignatures>(config.control.path);
  const RaggedSeries filled = missing == Missing::None ? series : fill_missing(series);
  const WindowedLogSignature found = series.values.device().is_cpu()
                                         ? logsignature_windows(series, c.windows, {.depth = c.depth})
                                         : device_logsignature_windows(filled, c.windows, {.depth = c.depth});
  const Tensor counts = sample_lengths(found.offsets);
  for (int64_t b = 0; b < series.samples(); ++b) {
    FW_CHECK(counts[b].item<int64_t>() > 0, "[control] sample ", b, " has too few points for a window of ",
             std::get<PointWindows>(c.windows).increments, " increments");
  }
  const Tensor ends = found.end.index_select(0, found.offsets.slice(0, 1) - 1);
  const Tensor offsets = found.offsets + at::arange(found.offsets.size(0), at::kLong);
  const Tensor borders = with_end(found.begin, found.offsets, ends);
  const Tensor count = counts.to(at::kDouble);
  if (c.clock == WindowClock::Windows) {
    const Tensor knots = positions(offsets).to(at::kDouble);
    control_ = Control::piecewise_constant({knots, offsets}, found.values);
    map_clock_ = true;
    map_ = {borders, knots, offsets};
    begin_ = at::zeros_like(count);
  } else {
    const Tensor duration = on_device(((found.end - found.begin) / time_unit_).to(found.values.scalar_type()),
                                      found.values.device());
    control_ =
        Control::piecewise_constant({borders / time_unit_, offsets}, found.values / duration.unsqueeze(1));
    begin_ = control_.begin();
  }
  end_ = control_.end();
  if (c.last_window == LastWindow::Twice) {
    const Tensor last = control_.knots().index_select(0, offsets.slice(0, 1) - 2);
    end_ = end_ + (end_ - last);
  }
  first_ = select_rows(filled.values, series.offsets.slice(0, 0, -1));
}

bool Signal::jumps() const { return !is<NaturalCubic>() && !is<HermiteCubic>(); }

bool Signal::piecewise_constant() const { return is<LogSignatures>() || is<Hold>(); }

bool Signal::piecewise_linear() const { return piecewise_constant() || is<Linear>() || is<Rectilinear>(); }

Samples Signal::at(const Time& time) const {
  if (is<LogSignatures>()) {
    const Tensor value = control_.at(just_after(time)).value;
    return {value, value};
  }
  if (is<Hold>()) return {control_.at(just_after(time)).value, {}};
  return control_.at(time);
}

Samples Signal::inside(const RaggedTimes& times) const {
  const RaggedTimes there = {on_device(times.times, device()), times.offsets};
  if (is<LogSignatures>()) {
    const Tensor value = control_.sample(just_after_each(there)).value;
    return {value, value};
  }
  if (is<Hold>()) return {control_.sample(just_after_each(there)).value, {}};
  return control_.sample(there);
}

Samples Signal::sample(const RaggedTimes& times) const {
  if (is<LogSignatures>()) {
    const Tensor value = control_.sample(times).value;
    return {value, value};
  }
  if (is<Hold>()) return {control_.sample(just_after_each({times.times.detach(), times.offsets})).value, {}};
  return control_.sample(times);
}

Tensor Signal::clock(const RaggedTimes& times) const {
  if (!map_clock_) {
    const Tensor clock = times.times / time_unit_;
    if (!is<LogSignatures>()) return clock;
    // after the last window time stands still
    const Tensor last = control_.end().repeat_interleave(sample_lengths(times.offsets));
    return at::minimum(clock, last);
  }
  Tensor result = at::empty_like(times.times);
  const Tensor requested = times.times.contiguous(), from = map_.series.contiguous(),
               to = map_.clock.contiguous();
  const int64_t *q = times.offsets.data_ptr<int64_t>(), *o = map_.offsets.data_ptr<int64_t>();
  const double *t = requested.data_ptr<double>(), *x = from.data_ptr<double>(), *y = to.data_ptr<double>();
  for (int64_t b = 0; b + 1 < map_.offsets.size(0); ++b) {
    for (int64_t i = q[b]; i < q[b + 1]; ++i) {
      // the last border at or before t; after the last border time stands still
      const int64_t left = std::max<int64_t>(std::upper_bound(x + o[b], x + o[b + 1], t[i]) - x - 1, o[b]);
      double now = y[left];
      if (left + 1 < o[b + 1]) {
        // between two observations a rectilinear path has moved in time alone, which is half of its way
        const double way = is<Rectilinear>() ? 1 : y[left + 1] - y[left];
        now += way * std::max(0.0, t[i] - x[left]) / (x[left + 1] - x[left]);
      }
      result.data_ptr<double>()[i] = now;
    }
  }
  return result;
}

}  // namespace fastweights
