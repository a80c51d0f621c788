#include "base/checksum.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

namespace fastweights {
namespace {

constexpr uint64_t kPrime1 = 11400714785074694791ULL, kPrime2 = 14029467366897019727ULL,
                   kPrime3 = 1609587929392839161ULL, kPrime4 = 9650029242287828579ULL,
                   kPrime5 = 2870177450012600261ULL;

// little-endian on every machine
template <typename Word>
Word word_at(const char* bytes) {
  Word word = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&word, bytes, sizeof word);
  } else {
    for (size_t i = sizeof word; i-- > 0;) word = word << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return word;
}

uint64_t mixed(uint64_t state, uint64_t word) { return std::rotl(state + word * kPrime2, 31) * kPrime1; }

}  // namespace

void Checksum::block(const char* bytes) {
  for (size_t i = 0; i < 4; ++i) state_[i] = mixed(state_[i], word_at<uint64_t>(bytes + 8 * i));
}

Checksum& Checksum::add(std::string_view bytes) {
  const size_t filled = count_ % rest_.size();
  count_ += bytes.size();
  if (filled > 0) {
    const size_t part = std::min(rest_.size() - filled, bytes.size());
    std::copy_n(bytes.begin(), part, rest_.begin() + static_cast<std::ptrdiff_t>(filled));
    bytes.remove_prefix(part);
    if (filled + part < rest_.size()) return *this;
    block(rest_.data());
  }
  for (; bytes.size() >= rest_.size(); bytes.remove_prefix(rest_.size())) block(bytes.data());
  std::copy_n(bytes.begin(), bytes.size(), rest_.begin());
  return *this;
}

Checksum& Checksum::add(uint64_t number) {
  std::array<char, 8> bytes = {};
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(number >> (8 * i) & 0xff);
  return add(std::string_view(bytes.data(), bytes.size()));
}

uint64_t Checksum::value() const {
  uint64_t hash = state_[2] + kPrime5;
  if (count_ >= rest_.size()) {
    hash = std::rotl(state_[0], 1) + std::rotl(state_[1], 7) + std::rotl(state_[2], 12) +
           std::rotl(state_[3], 18);
    for (const uint64_t state : state_) hash = (hash ^ mixed(0, state)) * kPrime1 + kPrime4;
  }
  hash += count_;
  std::string_view left(rest_.data(), count_ % rest_.size());
  for (; left.size() >= 8; left.remove_prefix(8))
    hash = std::rotl(hash ^ mixed(0, word_at<uint64_t>(left.data())), 27) * kPrime1 + kPrime4;
  if (left.size() >= 4) {
    hash = std::rotl(hash ^ word_at<uint32_t>(left.data()) * kPrime1, 23) * kPrime2 + kPrime3;
    left.remove_prefix(4);
  }
  for (const char c : left) hash = std::rotl(hash ^ static_cast<unsigned char>(c) * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

std::string Checksum::text() const {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value()));
  return text;
}

}  // namespace fastweights
