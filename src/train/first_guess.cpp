#include "train/first_guess.h"

#include <cmath>
#include <complex>
#include <numbers>
#include <numeric>

#include "tensor/parallel.h"

namespace fastweights {
namespace {

// [1 + 2 K]: one, then sine and cosine of each multiple of the phase
void fill_waves(double t, double season, std::vector<double>& row) {
  row[0] = 1;
  if (row.size() == 1) return;
  const std::complex<double> first = std::polar(1.0, 2 * std::numbers::pi * std::fmod(t, season) / season);
  std::complex<double> wave = 1;
  for (size_t k = 1; k + 1 < row.size(); k += 2) {
    wave *= first;
    row[k] = wave.imag();
    row[k + 1] = wave.real();
  }
}

// x of A x = b for a symmetric positive definite A [n, n], by Cholesky's method
std::vector<double> solve_positive(std::vector<double> a, std::vector<double> x) {
  const size_t n = x.size();
  for (size_t i = 0; i < n; ++i) {
    double* row = a.data() + i * n;
    for (size_t j = 0; j <= i; ++j) {
      const double* other = a.data() + j * n;
      const double rest = row[j] - std::inner_product(row, row + j, other, 0.0);
      row[j] = i == j ? std::sqrt(rest) : rest / other[j];
    }
    x[i] = (x[i] - std::inner_product(row, row + i, x.begin(), 0.0)) / row[i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t j = i + 1; j < n; ++j) x[i] -= a[j * n + i] * x[j];
    x[i] /= a[i * n + i];
  }
  return x;
}

std::vector<double> ridge_weights(const Observed& known, double season, size_t count) {
  // as if one more observation of each wave were zero: a series with few values stays near the training mean
  constexpr double kPenalty = 1;
  std::vector<double> products(count * count), sums(count), row(count);
  for (size_t i = 0; i < known.at.size(); ++i) {
    fill_waves(known.at[i], season, row);
    for (size_t j = 0; j < count; ++j) {
      sums[j] += row[j] * known.values[i];
      for (size_t k = 0; k <= j; ++k) products[j * count + k] += row[j] * row[k];
    }
  }
  for (size_t j = 0; j < count; ++j) products[j * count + j] += kPenalty;
  return solve_positive(std::move(products), std::move(sums));
}

}  // namespace

SeriesGuess::SeriesGuess(const ChannelGuess& form, double season, Observed known)
    : season_(season), rest_(std::move(known)), line_(form.line) {
  if (form.harmonics >= 0)
    weights_ = ridge_weights(rest_, season, static_cast<size_t>(1 + 2 * form.harmonics));
  for (size_t i = 0; i < rest_.at.size(); ++i) rest_.values[i] -= seasonal(rest_.at[i]);
}

double SeriesGuess::seasonal(double t) const {
  if (weights_.empty()) return 0;
  std::vector<double> row(weights_.size());
  fill_waves(t, season_, row);
  return std::inner_product(row.begin(), row.end(), weights_.begin(), 0.0);
}

double SeriesGuess::operator()(double t) const { return seasonal(t) + (line_ ? rest_.line(t) : 0); }

double SeriesGuess::squares() const {
  return std::inner_product(rest_.values.begin(), rest_.values.end(), rest_.values.begin(), 0.0);
}

Tensor first_guess(const Preparation& preparation, const TaskRows& input, const Tensor& times,
                   const Tensor& offsets) {
  const auto channels = static_cast<int64_t>(preparation.guesses.size());
  const Tensor out = at::empty({times.size(0), channels}, at::kFloat), values = input.values.to(at::kDouble);
  const double *x = values.data_ptr<double>(), *t = input.times.data_ptr<double>(),
               *shown = times.data_ptr<double>();
  const int64_t* to = offsets.data_ptr<int64_t>();
  parallel_for(offsets.size(0) - 1, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = input.rows.offsets[static_cast<size_t>(b)],
                    last = input.rows.offsets[static_cast<size_t>(b) + 1];
      // phases count from the beginning of the series
      std::vector<double> clock(t + first, t + last);
      const double zero = clock.empty() ? 0 : clock.front();
      for (double& time : clock) time -= zero;
      for (int64_t c = 0; c < channels; ++c) {
        const SeriesGuess guess(preparation.guesses[static_cast<size_t>(c)], preparation.season,
                                observed(x + first * channels, channels, c, clock));
        for (int64_t m = to[b]; m < to[b + 1]; ++m)
          out.data_ptr<float>()[m * channels + c] = static_cast<float>(guess(shown[m] - zero));
      }
    }
  });
  return out;
}

}  // namespace fastweights
