#include "progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/printable.h"
#include "terminal.h"

namespace fastweights::cli {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string number(double x) {
  if (std::isnan(x)) return "unknown";
  char text[32];
  std::snprintf(text, sizeof text, std::abs(x) >= 1e-3 && std::abs(x) < 1e4 ? "%.4f" : "%.3g", x);
  return text;
}

}  // namespace

void print_wrapped(const std::string& line, size_t indent) {
  std::printf("%s\n", wrapped(printable(line), terminal_width(), indent).c_str());
  std::fflush(stdout);
}

Style style_for_stdout() { return isatty(STDOUT_FILENO) ? Style::Bar : Style::Lines; }

std::string duration(double seconds) {
  const auto whole = std::llround(seconds);
  if (seconds < 10) {
    char text[16];
    std::snprintf(text, sizeof text, seconds < 1 ? "%.2f s" : "%.1f s", seconds);
    return text;
  }
  if (whole < 60) return message(whole, " s");
  if (whole < 3600) return message(whole / 60, " min ", whole % 60, " s");
  return message(whole / 3600, " h ", whole % 3600 / 60, " min");
}

std::string shown(const Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) text += (text.empty() ? "" : "  ") + name + " " + number(value);
  return text;
}

std::string shown(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string text;
  for (const auto& [name, value] : pairs) text += (text.empty() ? "" : "  ") + name + " " + value;
  return text;
}

void Progress::step(const Trainer& trainer, const TrainStep& step) {
  ++steps_;
  samples_ += step.samples;
  if (style_ == Style::Bar) bar(trainer, step);
  if (step.epoch_record) epoch(trainer, *step.epoch_record);
  if (trainer.finished()) end();
  // an estimate after the first step
  if (steps_ == 1 && trainer.config().epochs > 1 && style_ != Style::Json && style_ != Style::Quiet) {
    const double all =
        since(start_) * static_cast<double>((trainer.config().epochs - step.epoch + 1) * step.steps);
    note(message(trainer.config().epochs, " epochs of ", step.steps, " steps, about ",
                 duration(since(start_) * static_cast<double>(step.steps)), " per epoch, at most ",
                 duration(all), " in total"));
  }
}

void Progress::bar(const Trainer& trainer, const TrainStep& step) {
  const bool last = step.epoch_record.has_value();
  if (!last && since(shown_) < 0.1) return;
  shown_ = Clock::now();
  const double total = static_cast<double>(trainer.config().epochs * step.steps),
               done = static_cast<double>(trainer.steps_done());
  const double left = since(start_) / static_cast<double>(steps_) * (total - done);
  const auto rate = static_cast<int64_t>(static_cast<double>(samples_) / std::max(since(start_), 1e-9));
  const std::vector<LinePart> parts = {{message("epoch ", step.epoch, "/", trainer.config().epochs), 0},
                                       {duration(left) + " left", 1},
                                       {message(rate, " series/s"), 4},
                                       {"loss " + number(step.loss), 3},
                                       {last_, 2}};
  // the last column stays free, where a terminal would begin another line; asked for each time, since windows
  // are resized
  const size_t width = std::max<size_t>(terminal_width(), 2) - 1;
  std::printf("\r\033[K%s", progress_line(parts, done / total, width).c_str());
  std::fflush(stdout);
  bar_open_ = true;
}

void Progress::epoch(const Trainer& trainer, const TrainEpoch& record) {
  const std::string& name = trainer.config().metric;
  last_ = message(name, " ", number(metric(record.validation, name)));
  if (style_ == Style::Json) {
    std::printf("{\"epoch\": %lld, \"epochs\": %lld, \"steps\": %lld, \"replayed_steps\": %lld",
                static_cast<long long>(record.epoch), static_cast<long long>(trainer.config().epochs),
                static_cast<long long>(record.steps), static_cast<long long>(record.replayed_steps));
    std::printf(", \"loss\": %.6g, \"seconds\": %.3f, \"best\": %s", record.loss, record.seconds,
                record.best ? "true" : "false");
    for (const auto& [known, number] : record.validation) {
      if (std::isfinite(number)) std::printf(", \"validation_%s\": %.6g", known.c_str(), number);
    }
    std::printf("}\n");
    std::fflush(stdout);
    return;
  }
  if (style_ != Style::Lines) return;
  // about fifty lines at most
  const int64_t every = std::max<int64_t>(1, trainer.config().epochs / 50);
  if (record.epoch % every != 0 && record.epoch != 1 && !trainer.finished()) return;
  std::printf("epoch %lld/%lld  %s  loss %s  validation %s%s\n", static_cast<long long>(record.epoch),
              static_cast<long long>(trainer.config().epochs), duration(record.seconds).c_str(),
              number(record.loss).c_str(), last_.c_str(), record.best ? "  best" : "");
  std::fflush(stdout);
}

void Progress::note(const std::string& line) {
  if (style_ == Style::Json || style_ == Style::Quiet) return;
  // the next step draws it again
  if (bar_open_) std::printf("\r\033[K");
  bar_open_ = false;
  print_wrapped(line);
}

void Progress::end() {
  if (bar_open_) std::printf("\n");
  bar_open_ = false;
}

}  // namespace fastweights::cli
