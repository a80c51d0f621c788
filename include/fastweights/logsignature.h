#pragma once

#include <string>
#include <variant>
#include <vector>

#include "fastweights/series.h"
#include "fastweights/tensor.h"

/// Signatures and log-signatures of the piecewise linear path through each series, and of windows of it.

namespace fastweights {

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
