#pragma once

#include <string>
#include <variant>
#include <vector>

#include "fastweights/tensor.h"

/// Control paths: continuous signals x(t) and x'(t) through irregular, ragged, partly missing observations.
///
/// | path         | through the data as         | x(t) and x'(t) depend on                                  |
/// |--------------|-----------------------------|-----------------------------------------------------------|
/// | NaturalCubic | smoothest interpolant       | all observations, also later ones                         |
/// | HermiteCubic | slopes from the left        | up to the first observation at or after t: one gap ahead  |
/// | Linear       | straight lines              | up to the first observation at or after t: one gap ahead  |
/// | Rectilinear  | time first, then the values | observations at or before t: **no lookahead**             |
///
/// "One gap" is the time from t to the next observation of the same channel; a missing value widens the gap.
/// After the last observation of a channel its path is constant (but see EndFilling). Before its first
/// observation every path, also a rectilinear one, has the value of that observation; where this matters,
/// start a series with an observation of all channels. Derivatives of linear and rectilinear paths jump at
/// knots.

namespace fastweights {

/// Natural cubic splines before the first and after the last observation of a channel: repeat that
/// observation over the whole gap, or only at the end point of the series, as the published code of the paper
/// does (the spline may then overshoot in between).
enum class EndFilling { WholeGap, EndPoint };

struct NaturalCubic {
  EndFilling end_filling = EndFilling::WholeGap;
};

struct HermiteCubic {};

struct Linear {};

/// The parameter of the path is 0, 1, ..., 2 (L - 1) instead of the times of the series.
struct Rectilinear {
  int64_t time_channel = 0;  ///< the channel that holds time, which moves before the others
};

using Interpolation = std::variant<NaturalCubic, HermiteCubic, Linear, Rectilinear>;

/// A channel without any observation in a series: a path of zeros, or an error.
enum class NeverObserved { Zero, Reject };

struct ControlOptions {
  Interpolation interpolation = HermiteCubic{};
  NeverObserved never_observed = NeverObserved::Zero;
};

struct Samples {
  Tensor value;       // [..., C]
  Tensor derivative;  // [..., C]
};

/// Whether the path at t depends on no observation after the next one: false for NaturalCubic only. Only
/// Rectilinear depends on none after t.
bool is_causal(const Interpolation& interpolation);

/// One path per sample. Differentiable with respect to the values of the series (not to its times) and the
/// times at which it is sampled. Outside a series' range its first or last piece is extrapolated; a knot
/// belongs to the piece on its left.
class Control {
 public:
  explicit Control(const RaggedSeries& series, const ControlOptions& options = {});
  /// Constant between knots, with a derivative of zero. Sample b has knots offsets[b] .. offsets[b + 1] - 1
  /// and one value fewer; values [N - B, C]. Differentiable with respect to the values, unless those are on a
  /// GPU.
  static Control piecewise_constant(const RaggedTimes& knots, const Tensor& values);
  /// For values on a GPU, in float32: the path is computed and sampled on the device, without gradients.
  /// Values are not checked: first exclude infinite values and channels that are never observed.
  static Control on_device(const RaggedSeries& series, const ControlOptions& options = {});

  /// Times [Q] for every sample or [B, Q] for each: value and derivative [B, Q, C].
  Samples sample(const Tensor& times) const;
  /// Any number of times per sample: value and derivative [N, C] in the order of the times.
  Samples sample(const RaggedTimes& times) const;
  /// One time for each sample, as in a solver's field: value and derivative [B, C].
  Samples at(const Time& time) const;

  int64_t samples() const { return offsets_.size(0) - 1; }
  int64_t channels() const { return coefficients_.size(2); }
  /// Knots of all samples, [N], and the offset of each sample's first, [B + 1].
  const Tensor& knots() const { return knots_; }
  const Tensor& offsets() const { return offsets_; }
  /// First and last knot of each sample, [B].
  Tensor begin() const;
  Tensor end() const;
  /// [N - B, K, C]: per piece a, b and for cubic paths two_c, three_d, where with s = t - t_i
  /// x = a + (b + (two_c / 2 + three_d s / 3) s) s.
  const Tensor& coefficients() const { return coefficients_; }

 private:
  Control() = default;
  void make_path(const RaggedSeries& series, const ControlOptions& options);
  void set_knots(const Tensor& knots, const Tensor& offsets, const at::Device& device);
  Samples sample_ragged(const Tensor& times, const Tensor& offsets) const;

  Tensor knots_;         // [N] float64
  Tensor offsets_;       // [B + 1] int64
  Tensor coefficients_;  // [N - B, K, C]
  Tensor one_each_;      // [B + 1] int64: offsets of one time per sample
  // knots and offsets where the coefficients are
  Tensor device_knots_, device_offsets_;
};

/// The series with missing values filled by linear interpolation, and its ends filled with the nearest
/// observation; a channel that is never observed becomes 0. Differentiable.
RaggedSeries fill_missing(const RaggedSeries& series);

// Signatures and log-signatures of the piecewise linear path through each series, and of windows of it.

/// Words: the coefficient of the tensor logarithm at each Lyndon word. Brackets: coefficients in the Lyndon
/// basis of the free Lie algebra. Expanded: the whole tensor logarithm, level by level.
enum class LogSignatureBasis { Words, Brackets, Expanded };

struct LogSignatureOptions {
  int64_t depth = 2;  ///< 1 to 5
  LogSignatureBasis basis = LogSignatureBasis::Words;
};

/// Treatment of points after the last complete window.
enum class WindowTail { Drop, Keep };

/// Windows of `increments` increments, i.e. increments + 1 points; neighbours share a point.
struct PointWindows {
  int64_t increments = 4;
  WindowTail tail = WindowTail::Keep;
};

/// Windows of a duration, from each series' first time. A border between two observation times is
/// interpolated linearly; the last window ends with the series.
struct DurationWindows {
  double duration = 1;
};

using Windows = std::variant<PointWindows, DurationWindows>;

/// Log-signatures of windows, ragged: sample b owns the rows offsets[b] .. offsets[b + 1] - 1.
struct WindowedLogSignature {
  Tensor values;   // [W, D]
  Tensor begin;    // [W] float64, time at which the window begins
  Tensor end;      // [W] float64
  Tensor offsets;  // [B + 1] int64
};

/// Number of coefficients D for this many channels.
int64_t logsignature_size(int64_t channels, const LogSignatureOptions& options = {});

/// The basis, one name per coefficient: words as letters separated by commas, brackets as [0, [0, 1]].
std::vector<std::string> logsignature_basis(int64_t channels, const LogSignatureOptions& options = {});

/// Lyndon words over the letters 0 .. channels - 1 up to this length, by length and then in alphabetical
/// order.
std::vector<std::vector<int64_t>> lyndon_words(int64_t channels, int64_t depth);

/// Log-signature of each whole series: [B, D]. Missing values are interpolated linearly. Differentiable
/// with respect to the values of the series.
Tensor logsignature(const RaggedSeries& series, const LogSignatureOptions& options = {});

/// Log-signatures of windows. They are not divided by the window's duration.
WindowedLogSignature logsignature_windows(const RaggedSeries& series, const Windows& windows,
                                          const LogSignatureOptions& options = {});

/// Signature of each whole series, level by level without the leading 1: [B, C + C^2 + ... + C^depth].
Tensor signature(const RaggedSeries& series, int64_t depth);

}  // namespace fastweights
