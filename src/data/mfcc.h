#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace fastweights::data {

/// Mel-frequency cepstral coefficients as in the published experiments: frames of 200 samples every 100 under
/// a periodic Hann window, centred with reflection at the ends; power spectrum; 64 triangular bands on the
/// HTK mel scale from 0 Hz to half the sample rate; log(band + 1e-6); orthonormal DCT-II.
class Mfcc {
 public:
  static constexpr int64_t kWindow = 200, kHop = 100, kBins = kWindow / 2 + 1, kBands = 64,
                           kCoefficients = 20;

  explicit Mfcc(double sample_rate);

  static int64_t frames(int64_t samples) { return samples / kHop + 1; }
  /// From more than kWindow / 2 samples.
  std::vector<double> operator()(const std::vector<double>& wave) const;  // [frames, kCoefficients]

 private:
  struct Band {
    int64_t first = 0;                 // bin
    std::vector<double> weights = {};  // of the bins from `first` on
  };
  // a frame is folded to sums and differences of samples at the same distance from its middle: the real part
  // of its spectrum needs only the sums, the imaginary part only the differences
  static constexpr int64_t kHalf = kWindow / 2, kRows = (kHalf + 1 + 3) / 4 * 4;
  using Folded = std::array<double, kRows>;  // padded with zeros
  using Spectrum = std::array<double, kBins>;
  static Spectrum product(const Folded& folded, const std::vector<double>& matrix);

  std::vector<double> window_;   // [kWindow]
  std::vector<double> cosines_;  // [kRows, kBins]
  std::vector<double> sines_;    // [kRows, kBins]
  std::vector<Band> bands_;      // [kBands]
  std::vector<double> dct_;      // [kCoefficients, kBands]
};

}  // namespace fastweights::data
