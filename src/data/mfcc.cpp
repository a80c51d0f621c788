#include "data/mfcc.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace fastweights::data {
namespace {

constexpr double kPi = std::numbers::pi;

size_t index(int64_t i) { return static_cast<size_t>(i); }

double mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double hertz(double mel) { return 700 * (std::pow(10.0, mel / 2595) - 1); }

}  // namespace

Mfcc::Mfcc(double sample_rate)
    : window_(kWindow),
      cosines_(kRows * kBins),
      sines_(kRows * kBins),
      bands_(kBands),
      dct_(kCoefficients * kBands) {
  for (int64_t n = 0; n < kWindow; ++n) window_[index(n)] = 0.5 - 0.5 * std::cos(2 * kPi * n / kWindow);
  for (int64_t n = 0; n <= kHalf; ++n) {
    for (int64_t k = 0; k < kBins; ++k) {
      // whole turns are subtracted before rounding
      const double angle = 2 * kPi * ((n * k) % kWindow) / kWindow;
      cosines_[index(n * kBins + k)] = std::cos(angle);
      sines_[index(n * kBins + k)] = std::sin(angle);
    }
  }
  // band b rises from edge b to edge b + 1 and falls to edge b + 2
  std::array<double, kBands + 2> edges = {};
  for (int64_t b = 0; b < kBands + 2; ++b) edges[index(b)] = hertz(mel(sample_rate / 2) * b / (kBands + 1));
  for (int64_t b = 0; b < kBands; ++b) {
    const double low = edges[index(b)], middle = edges[index(b + 1)], high = edges[index(b + 2)];
    Band& band = bands_[index(b)];
    for (int64_t k = 0; k < kBins; ++k) {
      const double frequency = sample_rate / 2 * k / (kBins - 1);
      const double weight =
          std::min((frequency - low) / (middle - low), (high - frequency) / (high - middle));
      if (weight <= 0) continue;
      if (band.weights.empty()) band.first = k;
      band.weights.push_back(weight);
    }
  }
  for (int64_t c = 0; c < kCoefficients; ++c) {
    const double scale = std::sqrt((c == 0 ? 1.0 : 2.0) / kBands);
    for (int64_t b = 0; b < kBands; ++b)
      dct_[index(c * kBands + b)] = scale * std::cos(kPi / kBands * (b + 0.5) * c);
  }
}

// four rows at a time, so that the sums are loaded and stored less often
Mfcc::Spectrum Mfcc::product(const Folded& folded, const std::vector<double>& matrix) {
  Spectrum result = {};
  for (size_t n = 0; n < kRows; n += 4) {
    const double x0 = folded[n], x1 = folded[n + 1], x2 = folded[n + 2], x3 = folded[n + 3];
    const double* row = matrix.data() + n * kBins;
    for (size_t k = 0; k < kBins; ++k)
      result[k] += x0 * row[k] + x1 * row[k + kBins] + x2 * row[k + 2 * kBins] + x3 * row[k + 3 * kBins];
  }
  return result;
}

std::vector<double> Mfcc::operator()(const std::vector<double>& wave) const {
  const auto samples = static_cast<int64_t>(wave.size());
  FW_CHECK(samples > kHalf, "[mfcc] expected more than ", kHalf, " samples, got ", samples);
  std::vector<double> coefficients(index(frames(samples) * kCoefficients));
  std::array<double, kWindow> frame = {};
  Folded sums = {}, differences = {};
  Spectrum power = {};
  for (int64_t f = 0; f < frames(samples); ++f) {
    for (int64_t n = 0; n < kWindow; ++n) {
      int64_t at = std::abs(f * kHop + n - kHalf);
      if (at >= samples) at = 2 * (samples - 1) - at;
      frame[index(n)] = window_[index(n)] * wave[index(at)];
    }
    for (int64_t n = 0; n <= kHalf; ++n) {
      const bool alone = n == 0 || n == kHalf;
      const double other = alone ? 0 : frame[index(kWindow - n)];
      sums[index(n)] = frame[index(n)] + other;
      differences[index(n)] = alone ? 0 : frame[index(n)] - other;
    }
    const Spectrum real = product(sums, cosines_), imaginary = product(differences, sines_);
    for (size_t k = 0; k < kBins; ++k) power[k] = real[k] * real[k] + imaginary[k] * imaginary[k];
    double* out = coefficients.data() + f * kCoefficients;
    for (int64_t b = 0; b < kBands; ++b) {
      double energy = 0;
      const Band& band = bands_[index(b)];
      for (size_t k = 0; k < band.weights.size(); ++k)
        energy += band.weights[k] * power[index(band.first) + k];
      const double level = std::log(energy + 1e-6);
      for (int64_t c = 0; c < kCoefficients; ++c) out[c] += dct_[index(c * kBands + b)] * level;
    }
  }
  return coefficients;
}

}  // namespace fastweights::data
