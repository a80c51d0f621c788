#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "data/parsers.h"
#include "data/writers.h"

/// libFuzzer: the first byte selects the format, the others are the file. It is rejected with an error, or it
/// is a data set that reads back from an .npz file with the same values.

namespace {

using fastweights::DataSet;

void require(bool condition) {
  if (!condition) std::abort();
}

const std::vector<std::string> kNames = {"values",    "times",   "offsets",      "labels",  "channels",
                                         "classes",   "ids",     "parts",        "statics", "targets",
                                         "time_unit", "lengths", "target_names", "groups",  "step_labels"};
constexpr std::string_view kMagic = "\x93NUMPY";

// arrays one after another, each after a byte for its name: in an archive any change would break the checksum
std::string archive_of(std::string_view arrays) {
  std::vector<std::pair<std::string, std::string>> members;
  for (size_t at = arrays.find(kMagic, 1); at != std::string_view::npos;) {
    const size_t next = arrays.find(kMagic, at + kMagic.size() + 1);
    const size_t end = next == std::string_view::npos ? arrays.size() : next - 1;
    const size_t name = static_cast<unsigned char>(arrays[at - 1]) % kNames.size();
    members.emplace_back(kNames[name] + ".npy", arrays.substr(at, end - at));
    at = next;
  }
  return fastweights::data::zip(members, fastweights::data::Packing::Stored);
}

DataSet parsed(uint8_t format, std::string_view text) {
  if (format % 5 == 0) return fastweights::data::finished(fastweights::data::parse_ts(text, "f"), {});
  if (format % 5 == 1) return fastweights::data::finished(fastweights::data::parse_arff(text, "f"), {});
  if (format % 5 == 2) return fastweights::data::finished(fastweights::data::parse_csv(text, "f", {}), {});
  return fastweights::data::parse_npz(format % 5 == 3 ? std::string(text) : archive_of(text), "f");
}

void check(const DataSet& data) {
  const size_t rows = data.times.size(), samples = data.ids.size();
  require(samples > 0 && data.offsets.size() == samples + 1 && data.rows() == static_cast<int64_t>(rows));
  require(data.values.size() == rows * data.head.channels.size());
  require(data.labels.empty() || data.labels.size() == samples);
  require(data.step_labels.empty() || data.step_labels.size() == rows);
  for (const int64_t label : data.labels) require(label >= -1 && label < data.classes());
}

void check_again(DataSet data) {
  // names that are not UTF-8 may become equal
  data.head.classes = fastweights::data::numbered_channels(data.head.classes.size());
  const DataSet back =
      fastweights::data::parse_npz(fastweights::data::npz_of(data, fastweights::data::Packing::Stored), "g");
  require(back.offsets == data.offsets && back.times == data.times &&
          back.values.size() == data.values.size());
  for (size_t i = 0; i < data.values.size(); ++i)
    require(back.values[i] == data.values[i] || (std::isnan(back.values[i]) && std::isnan(data.values[i])));
}

}  // namespace

// writes seeds for the fuzzer into this folder, if it is set
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* folder = std::getenv("FASTWEIGHTS_SEEDS");
  if (!folder) return 0;
  const std::string table = "id,time,x,label,part\na,0,1.5,u,train\nb,0,,v,test\na,1,2,u,train\n";
  const std::string bytes = fastweights::data::npz_of(parsed(2, table), fastweights::data::Packing::Stored);
  std::string arrays;
  for (const auto& [member, array] : fastweights::data::unzip(bytes, "seed")) {
    const auto name = std::find(kNames.begin(), kNames.end(), member.substr(0, member.size() - 4));
    if (name != kNames.end()) arrays += static_cast<char>(name - kNames.begin()) + array;
  }
  std::ofstream(std::string(folder) + "/npz") << '3' << bytes;
  std::ofstream(std::string(folder) + "/arrays") << '4' << arrays;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  DataSet data;
  try {
    data = parsed(static_cast<uint8_t>(bytes[0] - '0'), {reinterpret_cast<const char*>(bytes) + 1, size - 1});
  } catch (const std::runtime_error&) {
    return 0;  // rejected, as it should be
  }
  check(data);
  check_again(data);
  return 0;
}
