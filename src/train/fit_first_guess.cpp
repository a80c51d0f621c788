#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

#include "architectures/season.h"
#include "base/error.h"
#include "tensor/parallel.h"
#include "train/first_guess.h"

namespace fastweights {
namespace {

// the known and the held out values of one channel of one series
struct Question {
  Observed known, held_out;
};

// of each channel; times count from the beginning of each series
using Questions = std::vector<std::vector<Question>>;

// evenly spread over the set, with about this many rows
std::vector<int64_t> some_samples(const PreparedData& data) {
  constexpr int64_t kMostSeries = 256, kMostRows = 20000;
  const int64_t all = data.samples(), rows = std::max<int64_t>(data.times.size(0), 1);
  const int64_t count = std::clamp<int64_t>(kMostRows * all / rows, 1, kMostSeries);
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < std::min(count, all); ++i) samples.push_back(i * all / std::min(count, all));
  return samples;
}

Questions questions_of(const TaskRows& input, int64_t channels) {
  const Tensor all = at::full_like(input.values, NAN);
  all.index_copy_(0, input.outputs->index, input.held_out);
  const Tensor known = input.values.to(at::kDouble), held_out = all.to(at::kDouble);
  const double* t = input.times.data_ptr<double>();
  Questions questions(static_cast<size_t>(channels));
  for (size_t b = 0; b + 1 < input.rows.offsets.size(); ++b) {
    const int64_t first = input.rows.offsets[b], last = input.rows.offsets[b + 1];
    std::vector<double> clock(t + first, t + last);
    for (double& time : clock) time -= t[first];
    const auto values = [&](const Tensor& table, int64_t c) {
      return observed(table.data_ptr<double>() + first * channels, channels, c, clock);
    };
    for (int64_t c = 0; c < channels; ++c)
      questions[static_cast<size_t>(c)].push_back({values(known, c), values(held_out, c)});
  }
  return questions;
}

template <typename Use>
void for_channels(const Questions& questions, const Use& use) {
  parallel_for(static_cast<int64_t>(questions.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) use(static_cast<size_t>(c));
  });
}

// of the held-out values of each series; of a single series, of each value
std::vector<double> squared_errors(const std::vector<Question>& channel, const ChannelGuess& form,
                                   double season) {
  std::vector<double> sums;
  for (const Question& question : channel) {
    const SeriesGuess guess(form, season, question.known);
    std::vector<double> errors;
    for (size_t i = 0; i < question.held_out.at.size(); ++i)
      errors.push_back(std::pow(guess(question.held_out.at[i]) - question.held_out.values[i], 2));
    if (channel.size() == 1) return errors;
    sums.push_back(std::accumulate(errors.begin(), errors.end(), 0.0));
  }
  return sums;
}

// by two percent, and by two standard errors of the difference over series or values
bool is_clear_gain(const std::vector<double>& before, const std::vector<double>& after) {
  const auto n = static_cast<double>(before.size());
  double sum = 0, squares = 0, whole = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const double gain = before[i] - after[i];
    sum += gain;
    squares += gain * gain;
    whole += before[i];
  }
  const double error = n > 1 ? std::sqrt((squares - sum * sum / n) * n / (n - 1)) : 0;
  return sum > 0.02 * whole && sum > 2 * error;
}

// an estimate within a gap, refined by the fit of a wave and its half to all channels
double refined_season(const Questions& questions, double estimate, double gap, double duration) {
  const auto squares = [&](double season) {
    std::vector<double> sums(questions.size());
    for_channels(questions, [&](size_t c) {
      for (const Question& question : questions[c])
        sums[c] += SeriesGuess({2, false}, season, question.known).squares();
    });
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  };
  // so fine that the last season of a series is off by a tenth at most
  constexpr int kMostSteps = 300;
  const int steps = std::clamp(static_cast<int>(20 * gap * duration / (estimate * estimate)), 4, kMostSteps);
  double best = estimate, least = squares(estimate);
  const auto search = [&](double reach, int count) {
    const double middle = best;
    for (int i = -count; i <= count; ++i) {
      const double season = middle + reach * i / count, sum = squares(season);
      if (i == 0 || sum >= least) continue;
      least = sum;
      best = season;
    }
  };
  search(gap, steps);
  search(gap / steps, 5);
  search(gap / steps / 5, 5);
  return best;
}

// the simplest one, unless another is a clear gain
ChannelGuess best_guess(const std::vector<Question>& channel, double season) {
  ChannelGuess best;
  std::vector<double> least = squared_errors(channel, best, season);
  for (const int64_t harmonics : {0, 1, 2, 3, 4, 6, 8}) {
    if (harmonics > 0 && season == 0) break;
    for (const bool line : {false, true}) {
      const ChannelGuess form = {harmonics, line};
      std::vector<double> errors = squared_errors(channel, form, season);
      if (!is_clear_gain(least, errors)) continue;
      least = std::move(errors);
      best = form;
    }
  }
  return best;
}

std::string form_text(const ChannelGuess& guess) {
  if (guess == ChannelGuess{}) return "none";
  const int64_t waves = guess.harmonics;
  std::string text = "the mean of the series";
  if (waves > 0) text += message(" and ", waves, waves == 1 ? " wave" : " waves", " of the season");
  return guess.line ? text + ", and lines between the residuals" : text;
}

}  // namespace

void fit_first_guess(Preparation& preparation, const PreparedData& train, const TaskConfig& task) {
  const auto channels = static_cast<int64_t>(preparation.channels.size());
  const TaskRows input = task_rows(train, task, some_samples(train), /*seed=*/1, Targets::HeldOut);
  const Questions questions = questions_of(input, channels);
  const int64_t lag = estimated_season({train.values, train.times, train.offsets}, 0, preparation.median_gap);
  double season = 0;
  if (lag > 0) {
    const double duration = preparation.median_gap * static_cast<double>(train.times.size(0)) /
                            static_cast<double>(train.samples());
    season = refined_season(questions, static_cast<double>(lag) * preparation.median_gap,
                            preparation.median_gap, duration);
  }
  std::vector<ChannelGuess> guesses(questions.size());
  for_channels(questions, [&](size_t c) { guesses[c] = best_guess(questions[c], season); });
  const auto uses = [&](const auto& property) {
    return std::any_of(guesses.begin(), guesses.end(), property);
  };
  if (!uses([](const ChannelGuess& guess) { return guess != ChannelGuess{}; })) return;
  preparation.guesses = guesses;
  preparation.season = uses([](const ChannelGuess& guess) { return guess.harmonics > 0; }) ? season : 0;
}

std::string guess_note(const Preparation& preparation) {
  if (preparation.guesses.empty()) return "";
  std::map<std::string, int64_t> counts;
  for (const ChannelGuess& guess : preparation.guesses) ++counts[form_text(guess)];
  std::string text = "the model corrects a first guess: ";
  for (const auto& [form, count] : counts)
    text += message(form == counts.begin()->first ? "" : "; ", form,
                    counts.size() == 1 ? "" : message(" (", count, count == 1 ? " channel)" : " channels)"));
  if (preparation.season == 0) return text;
  char season[32];
  std::snprintf(season, sizeof season, "%.4g", preparation.season / preparation.median_gap);
  return message(text, "; the season is ", season, " median gaps");
}

}  // namespace fastweights
