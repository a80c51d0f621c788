#include "golden.h"

#include <cmath>

#include "base/error.h"

namespace fastweights::golden {

GoldenFile::GoldenFile(const std::string& path, const Target& target)
    : contents_(load_safetensors(path)), target_(target) {}

Tensor GoldenFile::tensor(const std::string& name) {
  const auto found = contents_.tensors.find(name);
  if (found == contents_.tensors.end()) throw std::runtime_error("the file has no tensor " + name);
  used_.insert(name);
  return found->second;
}

std::string GoldenFile::text(const std::string& key) const {
  const auto found = contents_.metadata.find(key);
  if (found == contents_.metadata.end()) throw std::runtime_error("the file has no metadata " + key);
  return found->second;
}

double GoldenFile::number(const std::string& key) const { return std::stod(text(key)); }

nlohmann::json GoldenFile::json(const std::string& key) const { return nlohmann::json::parse(text(key)); }

std::vector<std::string> GoldenFile::names(const std::string& prefix) const {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : contents_.tensors) {
    if (name.rfind(prefix, 0) == 0) result.push_back(name);
  }
  return result;
}

std::vector<std::string> GoldenFile::unused() const {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : contents_.tensors) {
    if (!used_.contains(name)) result.push_back(name);
  }
  return result;
}

void GoldenFile::compare(const std::string& expected, const Tensor& got, double tolerance) {
  compare_value(expected, got, tensor(expected), tolerance);
}

void GoldenFile::compare_value(const std::string& what, const Tensor& got, const Tensor& expected,
                               double tolerance) {
  if (got.sizes() != expected.sizes()) {
    return fail(message(what, " has shape ", got.sizes(), " instead of ", expected.sizes()));
  }
  if (expected.numel() == 0) return;
  // relative to the largest number of the tensor; a tensor of zeros is compared absolutely
  const double largest = expected.abs().max().item<double>();
  const double error = (got.detach().cpu().to(expected.scalar_type()) - expected).abs().max().item<double>() /
                       (largest > 0 ? largest : 1);
  if (tolerance > 0 && error / tolerance > closest_.relation)
    closest_ = {what, error, tolerance, error / tolerance};
  if (error <= tolerance) return;
  if (std::isnan(error) || error / tolerance > worst_) {
    worst_ = std::isnan(error) ? INFINITY : error / tolerance;
    failure_ = message(what, " is off by relative ", error, ", allowed ", tolerance);
  }
}

void GoldenFile::compare_count(const std::string& expected, int64_t got) {
  const int64_t count = tensor(expected).item<int64_t>();
  if (got != count) fail(message(expected, " is ", got, " instead of ", count));
}

void GoldenFile::fail(const std::string& what) {
  worst_ = INFINITY;
  failure_ = what;
}

}  // namespace fastweights::golden
