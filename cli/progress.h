#pragma once

#include <chrono>
#include <string>

#include "fastweights/train.h"

/// Progress of a run: a bar on a terminal, a line per epoch elsewhere, JSON for programs.

namespace fastweights::cli {

enum class Style { Bar, Lines, Json, Quiet };

/// Bar on a terminal, lines elsewhere.
Style style_for_stdout();

class Progress {
 public:
  explicit Progress(Style style) : style_(style) {}

  void step(const Trainer& trainer, const TrainStep& step);
  /// A line in the place of the bar.
  void note(const std::string& line);
  /// Leaves the bar's line.
  void end();

 private:
  void bar(const Trainer& trainer, const TrainStep& step);
  void epoch(const Trainer& trainer, const TrainEpoch& record);

  Style style_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), shown_ = {};
  int64_t steps_ = 0, samples_ = 0;  // since the start of this process
  double seconds_ = 0;
  std::string last_;  // metrics of the last epoch
  bool bar_open_ = false;
};

/// A line on stdout, in several if a terminal is narrower; those after the first begin with `indent` spaces.
void print_wrapped(const std::string& line, size_t indent = 0);

/// 73 -> "1 min 13 s".
std::string duration(double seconds);

/// accuracy 0.973  log_loss 0.12 ...
std::string shown(const Metrics& metrics);
/// rule delta_pre  heads 4 ...
std::string shown(const std::vector<std::pair<std::string, std::string>>& pairs);

}  // namespace fastweights::cli
