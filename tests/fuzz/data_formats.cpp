#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/json_fields.h"
#include "data/gzip.h"
#include "data/npz.h"
#include "data/parsers.h"
#include "data/text.h"
#include "data/writers.h"
#include "formats.h"
#include "tensor/safetensors_header.h"

/// Formats whose readers need neither LibTorch nor other libraries.

namespace fuzz {
namespace {

using namespace fastweights;

void check_set(const DataSet& data) {
  require(data.unused.size() == data.times.size() * data.head.unused.size());
  require(data.dates.empty() || data.dates.size() == data.times.size());
  // every row has a time, and a text column at most one value
  for (int64_t row = 0; row < data.rows(); ++row) require(!time_text(data, row).empty());
  const size_t rows = data.times.size(), samples = data.ids.size();
  require(data.offsets.size() == samples + 1 && data.rows() == static_cast<int64_t>(rows));
  require(data.values.size() == rows * data.head.channels.size());
  require(data.labels.empty() || data.labels.size() == samples);
  require(data.step_labels.empty() || data.step_labels.size() == rows);
  for (const int64_t label : data.labels) require(label >= -1 && label < data.classes());
}

// a set is consistent, and reads back from an .npz file with the same values
void check(DataSet data) {
  check_set(data);
  require(!data.ids.empty());
  // names that are not UTF-8 may become equal
  data.head.classes = data::numbered_channels(data.head.classes.size());
  const data::Packing packing = data.times.size() % 8 == 1 ? data::Packing::Deflated : data::Packing::Stored;
  const DataSet back = data::parse_npz(data::npz_of(data, packing), "g");
  require(back.offsets == data.offsets && back.times == data.times &&
          back.values.size() == data.values.size());
  for (size_t i = 0; i < data.values.size(); ++i)
    require(back.values[i] == data.values[i] || (std::isnan(back.values[i]) && std::isnan(data.values[i])));
}

// less than the fuzzer allows a single allocation to take
constexpr size_t kLimit = size_t{64} << 20;

std::string text_of(std::string_view bytes) { return data::decoded_file(std::string(bytes)).text; }

void read_ts(std::string_view bytes) {
  check(data::finished(data::parse_ts(text_of(bytes), "f", kLimit), {}));
}
void read_arff(std::string_view bytes) {
  check(data::finished(data::parse_arff(text_of(bytes), "f", kLimit), {}));
}
void read_npz(std::string_view bytes) { check(data::parse_npz(bytes, "f", kLimit)); }
void read_npy(std::string_view bytes) {
  const data::NpyArray array = data::parse_npy(bytes, "f");
  require(data::parse_npy(data::npy_bytes(array), "g").shape == array.shape);
}

// the first byte selects the columns with a meaning of their own, and how the rows are read
ReadOptions some_options(std::string_view& bytes) {
  const char first = bytes.empty() ? '0' : bytes[0];
  bytes.remove_prefix(std::min<size_t>(1, bytes.size()));
  ReadOptions options;
  TableColumns& columns = options.columns;
  if (first & 1) columns.group = "g";
  if (first & 2) columns.statics = {"s"};
  if (first & 4) columns.targets = {"y"};
  if (first & 8) columns.label_columns = LabelColumns::Optional;
  if (first & 64) {
    options.table = {.missing = {"-9", "none here"},
                     .order = UnsortedRows::Sort,
                     .duplicates = first & 1 ? Duplicates::First : Duplicates::Mean};
    columns.texts = {"x"};
    columns.ignored = {"z"};
    if (first & 2) columns.channels = {"x", "y"};
    if (first & 4) columns.channel_columns = LabelColumns::Optional;
    if (first & 8) options.table.decimal = DecimalMark::Comma;
  }
  return options;
}

void read_csv(std::string_view bytes) {
  const ReadOptions options = some_options(bytes);
  check(data::finished(data::parse_csv(text_of(bytes), "f", options, kLimit), options));
}

void read_gzip(std::string_view bytes) { require(data::gunzip(bytes, "f", kLimit).size() <= kLimit); }

void read_csv_folder(std::string_view bytes) {
  ReadOptions options = some_options(bytes);
  const auto files = parts(bytes, 3);
  write_scratch("csv/labels.csv", files[0]);
  write_scratch("csv/a.csv", files[1]);
  const std::string b = write_scratch("csv/b.csv", files[2]);
  if (files[2].empty()) std::filesystem::remove(b);
  options.skip_bad = bytes.size() % 2 == 1;
  check(read_data((scratch_folder() / "csv").string(), options));
}

// arrays one after another, each after a byte for its name: in an archive any change would break the checksum
void read_arrays(std::string_view arrays) {
  static const std::vector<std::string> kNames = {
      "values",       "times",  "offsets",     "labels",    "channels",    "classes",
      "ids",          "parts",  "statics",     "targets",   "time_unit",   "lengths",
      "target_names", "groups", "step_labels", "time_zero", "static_names"};
  constexpr std::string_view kMagic = "\x93NUMPY";
  std::vector<std::pair<std::string, std::string>> members;
  for (size_t at = arrays.find(kMagic, 1); at != std::string_view::npos;) {
    const size_t next = arrays.find(kMagic, at + kMagic.size() + 1);
    const size_t end = next == std::string_view::npos ? arrays.size() : next - 1;
    const size_t name = static_cast<unsigned char>(arrays[at - 1]) % kNames.size();
    members.emplace_back(kNames[name] + ".npy", arrays.substr(at, end - at));
    at = next;
  }
  read_npz(data::zip(members, data::Packing::Stored));
}

void read_zip(std::string_view bytes) {
  size_t size = 0;
  for (const auto& [name, member] : data::unzip(bytes, "f")) size += member.size();
  // no more than deflate can have packed
  require(size <= 1032 * bytes.size());
}

// a member whose packed bytes are the input; its checksum is wrong, which is found after unpacking
void read_deflate(std::string_view bytes) {
  static const std::string kArchive = data::zip({{"m", std::string(64, 'x')}}, data::Packing::Stored);
  const std::string name = "m", packed(bytes.substr(0, 65535));
  std::string archive = kArchive.substr(0, 30) + name + packed,
              directory = kArchive.substr(30 + name.size() + 64);
  const auto put = [](std::string& to, size_t at, size_t value, size_t count) {
    for (size_t i = 0; i < count; ++i) to[at + i] = static_cast<char>(value >> (8 * i) & 0xff);
  };
  put(directory, 10, 8, 2);
  put(directory, 20, packed.size(), 4);
  put(directory, 24, bytes.size() % 2 == 1 ? packed.size() : 64, 4);
  put(directory, directory.size() - 6, archive.size(), 4);
  read_zip(archive + directory);
}

void read_physionet2012(std::string_view bytes) {
  const auto files = parts(bytes, 3);
  write_scratch("2012/Outcomes-a.txt", files[0]);
  write_scratch("2012/set-a/132539.txt", files[1]);
  const std::string second = write_scratch("2012/set-a/132540.txt", files[2]);
  if (files[2].empty()) std::filesystem::remove(second);
  check(read_data((scratch_folder() / "2012").string(), {.skip_bad = bytes.size() % 2 == 1}));
}

void read_physionet2019(std::string_view bytes) {
  const auto files = parts(bytes, 2);
  write_scratch("2019/p000001.psv", files[0]);
  const std::string second = write_scratch("2019/p000002.psv", files[1]);
  if (files[1].empty()) std::filesystem::remove(second);
  check(read_data((scratch_folder() / "2019").string(), {.skip_bad = bytes.size() % 2 == 1}));
}

// a file whose name says nothing; after "folder:" a folder, with a file per byte, or without files
void read_any(std::string_view bytes) {
  static const std::vector<std::string> kNames = {
      "any_TRAIN.ts", "any_TEST.arff", "labels.csv",           "set-a/1.txt", "Outcomes-a.txt",
      "p1.psv",       "notes.txt",     "training_setA/p1.psv", "yes/1.wav",   "one.csv"};
  constexpr std::string_view kFolder = "folder:";
  if (!bytes.starts_with(kFolder)) return check(read_data(write_scratch("file", bytes)));
  const std::filesystem::path folder = scratch_folder() / "any";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  bytes.remove_prefix(kFolder.size());
  const std::string_view names = bytes.substr(0, std::min(bytes.find('\n'), size_t{16}));
  for (const char name : names)
    write_scratch("any/" + kNames[static_cast<unsigned char>(name) % kNames.size()], bytes);
  check(read_data(folder.string()));
}

// times of a set: all numbers, or all dates
void read_times(std::string_view bytes) {
  data::TimeAxis axis;
  DataHead head;
  std::vector<Series> series(1);
  data::Lines lines(bytes);
  const char* units[] = {"", "second", "minute", "hour", "day"};
  const ReadOptions options = {.time_unit = units[bytes.size() % 5]};
  while (lines.next()) {
    series[0].times.push_back(axis.read(lines.line(), {"f", lines.row(), 1}));
    const std::optional<double> date = data::parse_date(lines.line());
    // a date that is written reads as the same moment, where a double is exact
    if (date && std::abs(*date) < 9e15) require(data::parse_date(data::date_text(*date)) == date);
  }
  axis.finish(head, series, options);
}

// a structure with a field of each kind
enum class Kind { Plain, Fancy };
const Names<Kind>& names_of(Kind) {
  static const Names<Kind> kNames = {{Kind::Plain, "plain"}, {Kind::Fancy, "fancy"}};
  return kNames;
}
struct Round {
  double radius = 1;
};
struct Square {
  double side = 1;
  bool filled = false;
};
using Shape = std::variant<Round, Square>;
const Alternatives<Shape>& alternatives_of(const Shape&) {
  static const Alternatives<Shape> kShapes = {{"round", Round{}}, {"square", Square{}}};
  return kShapes;
}
void visit_fields(Round& o, Fields& field) { field("radius", o.radius); }
void visit_fields(Square& o, Fields& field) {
  field("side", o.side);
  field("filled", o.filled);
}
struct Inner {
  int64_t count = 1;
  std::vector<std::string> names = {};
};
void visit_fields(Inner& o, Fields& field) {
  field("count", o.count);
  field("names", o.names);
}
struct Outer {
  std::string name = {};
  Kind kind = Kind::Plain;
  Shape shape = Round{};
  Inner inner = {};
};
void visit_fields(Outer& o, Fields& field) {
  field("name", o.name);
  field("kind", o.kind);
  field("shape", o.shape);
  field("inner", o.inner);
}

void read_json(std::string_view bytes) {
  const std::string text(bytes);
  const size_t equals = text.find('=');
  const Json json = text.starts_with('{') || equals == std::string::npos
                        ? parse_json(text)
                        : json_setting(text.substr(0, equals), text.substr(equals + 1));
  const Json out = json_of(read_fields(json, Outer{}));
  require(json_of(read_fields(out, Outer{})) == out);
}

// the first byte selects a rule, the others are the file of indices or ids
void read_split(std::string_view bytes) {
  DataSet set;
  set.head = {.name = "f", .classes = {"u", "v"}};
  set.ids = {"a", "b", "c", "d"};
  set.offsets = {0, 1, 2, 3, 4};
  set.times = {0, 0, 0, 0};
  set.labels = {0, 1, 0, 1};
  set.groups = {"g", "h", "g", ""};
  set.parts = {Part::Train, Part::Train, Part::Test, Part::Train};
  if (bytes.empty()) return;
  const auto rule = static_cast<SplitRule>(static_cast<unsigned char>(bytes[0]) % 7);
  const std::string file = write_scratch("split.json", bytes.substr(1));
  const Split split = split_data(set, {.rule = rule, .folds = 2, .indices = file});
  for (const auto* part : {&split.train, &split.validation, &split.test}) {
    for (const int64_t sample : *part) require(sample >= 0 && sample < 4);
  }
}

void read_safetensors(std::string_view bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  unsigned char first[8] = {};
  for (size_t i = 0; i < 8 && i < bytes.size(); ++i) first[i] = static_cast<unsigned char>(bytes[i]);
  const int64_t length = safetensors_header_length(first, size);
  const SafetensorsHeader header =
      parse_safetensors_header(bytes.substr(8, static_cast<size_t>(length)), size);
  for (const auto& [name, entry] : header.entries)
    require(entry.begin >= 0 && entry.begin <= entry.end && header.data_begin + entry.end <= size);
  const std::string again = write_safetensors_header(header);
  const SafetensorsHeader back = parse_safetensors_header(
      std::string_view(again).substr(8), static_cast<int64_t>(again.size()) + size - header.data_begin);
  require(back.metadata == header.metadata && back.entries.size() == header.entries.size());
}

}  // namespace

const std::vector<Format>& data_formats() {
  static const std::vector<Format> kFormats = {{"ts", read_ts},
                                               {"arff", read_arff},
                                               {"csv", read_csv},
                                               {"csv-folder", read_csv_folder},
                                               {"npz", read_npz},
                                               {"arrays", read_arrays},
                                               {"npy", read_npy},
                                               {"zip", read_zip},
                                               {"deflate", read_deflate},
                                               {"gzip", read_gzip},
                                               {"physionet2012", read_physionet2012},
                                               {"physionet2019", read_physionet2019},
                                               {"any", read_any},
                                               {"times", read_times},
                                               {"json", read_json},
                                               {"split", read_split},
                                               {"safetensors", read_safetensors}};
  return kFormats;
}

}  // namespace fuzz
