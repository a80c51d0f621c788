#pragma once

#include <string>
#include <vector>

#include "architectures/filled.h"
#include "train/task_rows.h"

/// First guesses: simple predictions of channels from the observed values of a series, which a model
/// corrects.

namespace fastweights {

/// The first guess of one channel of one series.
class SeriesGuess {
 public:
  SeriesGuess(const ChannelGuess& form, double season, Observed known);
  double operator()(double t) const;
  /// Of the squared differences of the known values to the fit without the line.
  double squares() const;

 private:
  double seasonal(double t) const;

  double season_;
  std::vector<double> weights_;  // of the mean, sines and cosines; empty: zero
  Observed rest_;                // differences to them
  bool line_;
};

/// Of all channels at times of the data, in the order of the series: [M, C] float32 for times [M] and their
/// offsets [B + 1].
Tensor first_guess(const Preparation& preparation, const TaskRows& input, const Tensor& times,
                   const Tensor& offsets);

/// Sets season and guesses of the preparation: per channel the one with the least squared error of the values
/// that the task holds out of the training part, or none.
void fit_first_guess(Preparation& preparation, const PreparedData& train, const TaskConfig& task);

/// A sentence for the log; empty without a first guess.
std::string guess_note(const Preparation& preparation);

}  // namespace fastweights
