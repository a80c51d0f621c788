#include "train/event_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/files.h"
#include "data/data_support.h"
#include "fastweights/run.h"
#include "support/support.h"
#include "train/train_cases.h"

namespace fastweights {
namespace {

// bit by bit, from the definition of the polynomial
uint32_t plain_crc32c(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = crc & 1 ? crc / 2 ^ 0x82f63b78 : crc / 2;
  }
  return crc ^ 0xffffffff;
}

// a reader of records and protobufs that knows nothing of the writer
class Decoder {
 public:
  explicit Decoder(std::string bytes) : bytes_(std::move(bytes)) {}
  bool done() const { return at_ >= bytes_.size(); }
  std::string take(size_t count) {
    if (count > bytes_.size() - at_) throw std::runtime_error("cut off");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  template <typename Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<uint64_t>(byte % 128) << shift;
      if (byte < 128) return value;
    }
  }
  std::string text() { return take(varint()); }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

struct DecodedEvent {
  double time = 0;
  int64_t step = 0;
  std::string version;
  std::map<std::string, float> scalars;
};

std::pair<std::string, float> decoded_value(Decoder value) {
  std::pair<std::string, float> out;
  while (!value.done()) {
    const uint64_t key = value.varint();
    if (key == (1 << 3 | 2)) {
      out.first = value.text();
    } else if (key == (2 << 3 | 5)) {
      out.second = value.number<float>();
    } else {
      throw std::runtime_error("unknown field of a value");
    }
  }
  return out;
}

DecodedEvent decoded_event(Decoder event) {
  DecodedEvent out;
  while (!event.done()) {
    const uint64_t key = event.varint();
    if (key == (1 << 3 | 1)) {
      out.time = event.number<double>();
    } else if (key == (2 << 3 | 0)) {
      out.step = static_cast<int64_t>(event.varint());
    } else if (key == (3 << 3 | 2)) {
      out.version = event.text();
    } else if (key == (5 << 3 | 2)) {
      Decoder summary(event.text());
      while (!summary.done()) {
        EXPECT_EQ(summary.varint(), uint64_t{1 << 3 | 2});
        out.scalars.insert(decoded_value(Decoder(summary.text())));
      }
    } else {
      throw std::runtime_error("unknown field of an event");
    }
  }
  return out;
}

std::vector<DecodedEvent> decoded(const std::string& path) {
  const auto unmasked = [](uint32_t masked) {
    const uint32_t rotated = masked - 0xa282ead8;
    return rotated >> 17 | rotated << 15;
  };
  Decoder file(read_file(path));
  std::vector<DecodedEvent> events;
  while (!file.done()) {
    const std::string length = file.take(8);
    EXPECT_EQ(unmasked(file.number<uint32_t>()), plain_crc32c(length));
    uint64_t count = 0;
    std::memcpy(&count, length.data(), sizeof count);
    const std::string data = file.take(count);
    EXPECT_EQ(unmasked(file.number<uint32_t>()), plain_crc32c(data));
    events.push_back(decoded_event(Decoder(data)));
  }
  return events;
}

TEST(EventFile, ChecksumsAreThoseOfTheStandard) {
  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) {
    rising += static_cast<char>(i);
    falling += static_cast<char>(31 - i);
  }
  EXPECT_EQ(crc32c(rising), 0x46dd794eU);
  EXPECT_EQ(crc32c(falling), 0x113fdb5cU);
}

TEST(EventFile, AnotherReaderFindsWhatWasWritten) {
  const TestFolder folder;
  const std::string path = folder.path("events.out.tfevents");
  EventFile file(path, 0);
  file.append(1, 1.5e9, {{"loss/train", 0.25}, {"validation/accuracy", NAN}});
  file.append(300, 1.5e9 + 1, {{std::string(200, 'n'), -3e10}});
  const std::vector<DecodedEvent> events = decoded(path);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[1].step, 1);
  EXPECT_EQ(events[1].time, 1.5e9);
  EXPECT_EQ(events[1].scalars, (std::map<std::string, float>{{"loss/train", 0.25F}}));
  EXPECT_EQ(events[2].step, 300);
  EXPECT_EQ(events[2].scalars.at(std::string(200, 'n')), -3e10F);
}

TEST(EventFile, OpenedAgainItKeepsWholeRecordsUpToAStep) {
  const TestFolder folder;
  const std::string path = folder.path("events.out.tfevents");
  EventFile first(path, 0);
  for (int64_t step = 1; step <= 5; ++step) first.append(step, 1, {{"a", 1.0 * static_cast<double>(step)}});
  const std::string whole = read_file(path);
  for (size_t cut = 0; cut <= whole.size(); cut += 3) {
    replace_file(path, whole.substr(0, cut));
    EventFile again(path, 3);
    again.append(4, 2, {{"a", 9}});
    const std::vector<DecodedEvent> events = decoded(path);
    ASSERT_EQ(events.size(), 2 + static_cast<size_t>(std::min<int64_t>(3, events[events.size() - 2].step)));
    EXPECT_EQ(events.front().version, "brain.Event:2");
    EXPECT_EQ(events.back().scalars.at("a"), 9);
  }
  replace_file(path, "not one of ours");
  EXPECT_EQ(EventFile(path, 3).last_step(), 0);
  EXPECT_EQ(decoded(path).size(), 1u);
}

TEST(EventFile, ARunThatIsStoppedAndResumedHasEachEpochOnce) {
  const TestFolder folder;
  const DataSet data = two_classes(24);
  const auto run = make_run({.settings = {{"model.hidden_size", "8"},
                                          {"model.heads", "2"},
                                          {"model.feed_forward_size", "8"},
                                          {"training.epochs", "6"},
                                          {"training.batch_size", "8"}}},
                            data);
  RunOptions options = {.folder = folder.path("run"), .tensorboard = true};
  options.events.stop = [&] {
    return std::filesystem::exists(options.folder + "/metrics.jsonl") &&
           std::filesystem::file_size(options.folder + "/metrics.jsonl") > 600;
  };
  EXPECT_EQ(train_run(run, options).end, RunEnd::Stopped);
  const size_t before = decoded(options.folder + "/events.out.tfevents").size();
  EXPECT_GT(before, 1u);
  EXPECT_LT(before, 7u);
  // the file of the run is continued without being asked for
  const RunResult result = train_run(run, {.folder = options.folder, .start = RunStart::Resume});
  const std::vector<DecodedEvent> events = decoded(options.folder + "/events.out.tfevents");
  ASSERT_EQ(events.size(), 7u);
  for (size_t i = 1; i < events.size(); ++i) {
    const TrainEpoch& epoch = result.epochs[i - 1];
    EXPECT_EQ(events[i].step, epoch.epoch);
    EXPECT_EQ(events[i].scalars.at("loss/train"), static_cast<float>(epoch.loss));
    EXPECT_EQ(events[i].scalars.at("learning_rate"), static_cast<float>(epoch.learning_rate));
    EXPECT_EQ(events[i].scalars.at("validation/auroc"),
              static_cast<float>(metric(epoch.validation, "auroc")));
  }
}

}  // namespace
}  // namespace fastweights
