#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fastweights {

/// CRC-32C (Castagnoli), as in RFC 3720.
uint32_t crc32c(std::string_view bytes);

/// Scalars over steps, in the file format that TensorBoard reads: records with lengths and checksums, each an
/// Event of event.proto. A file that is opened again keeps its complete records up to a step; what follows is
/// cut off, so that epochs after a checkpoint do not come twice.
class EventFile {
 public:
  using Scalars = std::vector<std::pair<std::string, double>>;

  /// Keeps scalars up to `last_step`; creates the file if it is missing or not one of ours.
  EventFile(std::string path, int64_t last_step);

  /// The last step in the file; 0: there is none.
  int64_t last_step() const { return last_step_; }
  /// `time` in seconds since 1970. Values that are not finite are left out.
  void append(int64_t step, double time, const Scalars& scalars);

 private:
  std::string path_;
  int64_t last_step_ = 0;
};

}  // namespace fastweights
