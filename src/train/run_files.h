#pragma once

#include "base/json_fields.h"
#include "fastweights/run.h"

/// The files of a run's folder.

namespace fastweights {

class RunFolder {
 public:
  RunFolder(std::string path, RunEvents events) : path_(std::move(path)), events_(std::move(events)) {}

  std::string operator/(const char* name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  /// A line of log.txt. A log that cannot be written is an event, no error.
  void log(const std::string& line) const;
  /// A line of log.txt, which is also passed to the events.
  void note(const std::string& line) const;
  /// A line of log.txt alone: the seconds that a phase took.
  void clock(const std::string& phase, double seconds) const;
  void append_epoch(const TrainEpoch& epoch) const;

 private:
  std::string path_;
  RunEvents events_;
  mutable bool log_failed_ = false;  // said once
};

Json environment_json();

/// environment.json as the run has written it; earlier versions have fewer keys, and a damaged file has none.
Json environment_of(const std::string& folder);
/// A text of an object, anything else as JSON; "" if it is absent.
std::string text_at(const Json& json, const char* key);

/// An object; what is not finite becomes null.
Json metrics_json(const Metrics& metrics);
Json result_json(const PartResult& part);
/// { name: [low, high] }
Json intervals_json(const ConfidenceIntervals& intervals);

/// { kind: { name: metrics } }
Json groups_json(const std::vector<MetricsGroup>& groups);

/// Epochs of metrics.jsonl in their order. Damaged lines, and epochs that come again, are left out.
struct EpochsFile {
  std::vector<TrainEpoch> epochs = {};
  int64_t damaged = 0;  ///< lines that were left out, besides a last one that a kill has cut off
  /// A sentence about them; "" if there are none.
  std::string warning() const;
};
EpochsFile read_epochs(const std::string& folder);
/// Epochs up to that of the checkpoint; later ones are removed from the file and trained again.
EpochsFile keep_epochs(const std::string& folder, int64_t epochs);

/// Whether a run has written its last file and given up its lock. One that was killed in between is resumed,
/// which completes its files.
bool has_finished(const std::string& folder);

/// result.json: metrics without predictions, epochs and model.
RunResult read_result(const std::string& folder);

}  // namespace fastweights
