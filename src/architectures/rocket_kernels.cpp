#include "architectures/rocket_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "kernels/series_rows.h"
#include "tensor/parallel.h"

namespace fastweights {
namespace {

constexpr int64_t kWeights = 9, kHalf = 4;
constexpr double kGoldenRatio = 1.618033988749895;

// positions of the weights that are 2
std::vector<std::array<int64_t, 3>> rocket_kernels() {
  std::vector<std::array<int64_t, 3>> all;
  for (int64_t i = 0; i < kWeights; ++i) {
    for (int64_t j = i + 1; j < kWeights; ++j) {
      for (int64_t k = j + 1; k < kWeights; ++k) all.push_back({i, j, k});
    }
  }
  return all;
}

// the indices of the ones of each row
std::vector<std::vector<int64_t>> chosen_channels(const Tensor& channels) {
  const Tensor chosen = channels.gt(0.5).contiguous();
  const bool* on = chosen.data_ptr<bool>();
  std::vector<std::vector<int64_t>> lists(static_cast<size_t>(chosen.size(0)));
  for (size_t i = 0; i < lists.size(); ++i) {
    for (int64_t c = 0; c < chosen.size(1); ++c) {
      if (on[static_cast<int64_t>(i) * chosen.size(1) + c]) lists[i].push_back(c);
    }
  }
  return lists;
}

// the convolutions of one series with zeros around it
template <typename T>
class Convolutions {
 public:
  Convolutions(const FilledSeries& series, int64_t largest_dilation)
      : length_(series.length()),
        padding_(kHalf * largest_dilation),
        width_(length_ + 2 * padding_),
        padded_(static_cast<size_t>(series.channels() * width_), T(0)),
        sums_(static_cast<size_t>(series.channels() * length_)),
        out_(static_cast<size_t>(length_)) {
    for (int64_t c = 0; c < series.channels(); ++c)
      std::copy_n(series.channel(c), length_, padded_.begin() + c * width_ + padding_);
  }

  int64_t length() const { return length_; }

  // sums over all nine weights, which all kernels of a dilation share
  void set_dilation(int64_t dilation) {
    dilation_ = dilation;
    std::fill(sums_.begin(), sums_.end(), T(0));
    for (size_t c = 0; c * static_cast<size_t>(length_) < sums_.size(); ++c) {
      T* to = sums_.data() + static_cast<int64_t>(c) * length_;
      for (int64_t w = 0; w < kWeights; ++w)
        kernels::add_rows(shifted(static_cast<int64_t>(c), w), length_, to);
    }
  }

  // weights of 2 are -1 and 3 more
  const std::vector<T>& convolve(const std::array<int64_t, 3>& twos, const std::vector<int64_t>& channels) {
    std::fill(out_.begin(), out_.end(), T(0));
    for (const int64_t c : channels)
      kernels::add_convolution(shifted(c, twos[0]), shifted(c, twos[1]), shifted(c, twos[2]),
                               sums_.data() + c * length_, length_, out_.data());
    return out_;
  }

 private:
  const T* shifted(int64_t channel, int64_t weight) const {
    return padded_.data() + channel * width_ + padding_ + (weight - kHalf) * dilation_;
  }

  int64_t length_, padding_, width_, dilation_ = 1;
  std::vector<T> padded_, sums_, out_;
};

// by linear interpolation, as numpy
template <typename T>
double quantile_of(const std::vector<T>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1), below = std::floor(position);
  const auto i = static_cast<size_t>(below);
  const auto low = static_cast<double>(sorted[i]),
             high = static_cast<double>(sorted[std::min(i + 1, sorted.size() - 1)]);
  return low + (position - below) * (high - low);
}

template <typename T>
void biases_of(const RocketPlan& plan, const Tensor& channels, const std::vector<FilledSeries>& series,
               uint64_t seed, T* biases) {
  const auto kernels = rocket_kernels();
  const auto lists = chosen_channels(channels);
  Random random(seed);
  int64_t feature = 0;
  size_t convolution = 0;
  for (size_t d = 0; d < plan.dilations.size(); ++d) {
    for (const auto& kernel : kernels) {
      Convolutions<T> one(series[random.next() % series.size()], plan.dilations[d]);
      one.set_dilation(plan.dilations[d]);
      std::vector<T> values = one.convolve(kernel, lists[convolution++]);
      std::sort(values.begin(), values.end());
      for (int64_t f = 0; f < plan.features[d]; ++f) {
        ++feature;
        biases[feature - 1] =
            static_cast<T>(quantile_of(values, std::fmod(static_cast<double>(feature) * kGoldenRatio, 1.0)));
      }
    }
  }
}

template <typename T>
void features_of(const RocketPlan& plan, const std::vector<std::vector<int64_t>>& lists, const T* biases,
                 const FilledSeries& series, T* to) {
  static const auto kKernels = rocket_kernels();
  Convolutions<T> convolutions(series, plan.dilations.back());
  size_t convolution = 0;
  for (size_t d = 0; d < plan.dilations.size(); ++d) {
    convolutions.set_dilation(plan.dilations[d]);
    const int64_t padding = kHalf * plan.dilations[d];
    for (size_t k = 0; k < kKernels.size(); ++k) {
      const std::vector<T>& values = convolutions.convolve(kKernels[k], lists[convolution++]);
      const bool inside = plan.alternate && (d + k) % 2 == 1 && convolutions.length() > 2 * padding;
      const int64_t skipped = inside ? padding : 0, count = convolutions.length() - 2 * skipped;
      for (int64_t f = 0; f < plan.features[d]; ++f)
        *to++ = static_cast<T>(kernels::count_above(values.data() + skipped, count, *biases++)) /
                static_cast<T>(count);
    }
  }
}

template <typename T>
void all_features(const RocketPlan& plan, const Tensor& channels, const Tensor& biases,
                  const std::vector<FilledSeries>& series, const Tensor& out) {
  const auto lists = chosen_channels(channels);
  const T* b = biases.data_ptr<T>();
  T* to = out.data_ptr<T>();
  parallel_for(static_cast<int64_t>(series.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      features_of(plan, lists, b, series[static_cast<size_t>(i)], to + i * out.size(1));
  });
}

}  // namespace

int64_t RocketPlan::feature_count() const {
  return kRocketKernels * std::accumulate(features.begin(), features.end(), int64_t{0});
}

RocketPlan rocket_plan(int64_t length, int64_t features, int64_t most_dilations) {
  const int64_t per_kernel = std::max<int64_t>(features / kRocketKernels, 1);
  const int64_t points = std::min(per_kernel, most_dilations);
  // below nine rows no kernel fits, and the authors require them
  const double exponent =
      std::max(0.0, std::log2(static_cast<double>(length - 1) / static_cast<double>(kWeights - 1)));
  RocketPlan plan;
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < points; ++i) {
    const double step = points > 1 ? exponent * static_cast<double>(i) / static_cast<double>(points - 1) : 0;
    const auto dilation = static_cast<int64_t>(std::pow(2.0, step));
    if (plan.dilations.empty() || plan.dilations.back() != dilation) {
      plan.dilations.push_back(dilation);
      counts.push_back(0);
    }
    ++counts.back();
  }
  const double multiplier = static_cast<double>(per_kernel) / static_cast<double>(points);
  int64_t left = per_kernel;
  for (const int64_t count : counts) {
    plan.features.push_back(static_cast<int64_t>(static_cast<double>(count) * multiplier));
    left -= plan.features.back();
  }
  for (size_t i = 0; left > 0; --left, i = (i + 1) % plan.features.size()) ++plan.features[i];
  return plan;
}

Tensor rocket_channels(const RocketPlan& plan, int64_t channels, uint64_t seed) {
  Tensor out = at::zeros({plan.convolutions(), channels}, at::kFloat);
  Random random(seed);
  const double exponent = std::log2(static_cast<double>(std::min(channels, kWeights)) + 1);
  std::vector<int64_t> order(static_cast<size_t>(channels));
  for (int64_t i = 0; i < plan.convolutions(); ++i) {
    const auto count = static_cast<size_t>(std::pow(2.0, random.uniform(0, exponent)));
    std::iota(order.begin(), order.end(), int64_t{0});
    for (size_t k = 0; k < std::min(count, order.size()); ++k) {
      std::swap(order[k], order[k + random.next() % (order.size() - k)]);
      out.data_ptr<float>()[i * channels + order[k]] = 1;
    }
  }
  return out;
}

Tensor rocket_biases(const RocketPlan& plan, const Tensor& channels, const std::vector<FilledSeries>& series,
                     uint64_t seed, at::ScalarType type) {
  Tensor out = at::zeros({plan.feature_count()}, at::TensorOptions(type));
  if (type == at::kDouble) {
    biases_of(plan, channels, series, seed, out.data_ptr<double>());
  } else {
    biases_of(plan, channels, series, seed, out.data_ptr<float>());
  }
  return out;
}

Tensor rocket_features(const RocketPlan& plan, const Tensor& channels, const Tensor& biases,
                       const std::vector<FilledSeries>& series) {
  const Tensor out = at::zeros({static_cast<int64_t>(series.size()), plan.feature_count()}, biases.options());
  if (biases.scalar_type() == at::kDouble) {
    all_features<double>(plan, channels, biases, series, out);
  } else {
    all_features<float>(plan, channels, biases, series, out);
  }
  return out;
}

}  // namespace fastweights
