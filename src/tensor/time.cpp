#include "fastweights/tensor.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace fastweights {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Time next_towards(const Time& t, double target) {
  if (!t.has_tensor()) return std::nextafter(t.value(), target);
  const Tensor now = t.tensor().detach();
  return Time(t.tensor() + (at::nextafter(now, at::full_like(now, target)) - now));
}

}  // namespace

Time::Time(Tensor tensor) : tensor_(std::move(tensor)) {
  FW_CHECK(tensor_.defined() && tensor_.dim() <= 1 && tensor_.scalar_type() == at::kDouble,
           "[Time] a time must be a float64 tensor [] or [B]");
  if (tensor_.dim() == 0) value_ = tensor_.item<double>();
}

double Time::value() const {
  FW_CHECK(shared(), "[Time] each of the ", tensor_.size(0),
           " samples has its own time here; use tensor() or like() instead of value()");
  return value_;
}

Tensor Time::tensor() const { return tensor_.defined() ? tensor_ : at::scalar_tensor(value_, at::kDouble); }

Tensor Time::like(const Tensor& y) const {
  const Tensor t = tensor().to(y.options());
  if (t.dim() == 0) return t;
  FW_CHECK(y.dim() >= 1 && y.size(0) == t.size(0), "[Time] there are ", t.size(0), " times for a batch of ",
           y.sizes());
  std::vector<int64_t> shape(y.dim(), 1);
  shape[0] = t.size(0);
  return t.view(shape);
}

Time operator+(const Time& a, const Time& b) {
  if (!a.has_tensor() && !b.has_tensor()) return a.value() + b.value();
  return Time(a.tensor() + b.tensor());
}

Time operator-(const Time& a, const Time& b) {
  if (!a.has_tensor() && !b.has_tensor()) return a.value() - b.value();
  return Time(a.tensor() - b.tensor());
}

Time operator*(double factor, const Time& t) {
  if (!t.has_tensor()) return factor * t.value();
  return Time(factor * t.tensor());
}

Time just_after(const Time& t) { return next_towards(t, kInfinity); }

Time just_before(const Time& t) { return next_towards(t, -kInfinity); }

}  // namespace fastweights
