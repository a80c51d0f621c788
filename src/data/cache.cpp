#include "data/cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "data/files.h"
#include "data/sha256.h"
#include "data/text.h"
#include "data/text_channels.h"
#include "fastweights/tensor.h"
#include "tensor/safetensors_header.h"

namespace fastweights::data {
namespace {

namespace fs = std::filesystem;

// changes whenever a reader or this format changes: caches of other versions are rebuilt
constexpr const char* kFormat = "fastweights-data-5";

Tensor copied(const void* from, size_t count, at::ScalarType type) {
  Tensor tensor = at::empty({static_cast<int64_t>(count)}, type);
  if (count > 0) std::memcpy(tensor.data_ptr(), from, tensor.nbytes());
  return tensor;
}

Tensor packed(const std::vector<double>& values) { return copied(values.data(), values.size(), at::kDouble); }
Tensor packed(const std::vector<int64_t>& values) { return copied(values.data(), values.size(), at::kLong); }
Tensor packed(const std::vector<Part>& parts) {
  std::vector<int64_t> values;
  for (const Part part : parts) values.push_back(static_cast<int64_t>(part));
  return packed(values);
}
// texts one after another, each terminated by a zero
Tensor packed(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) bytes.append(text).push_back('\0');
  return copied(bytes.data(), bytes.size(), at::kByte);
}
Tensor packed(const std::string& text) { return packed(std::vector<std::string>{text}); }
Tensor packed(char mark) { return packed(std::string(1, mark)); }
Tensor packed(const std::vector<TextColumn>& columns) { return packed(flattened(columns)); }

template <typename T>
void copy_vector(std::vector<T>& to, const Tensor& tensor, at::ScalarType type) {
  if (tensor.scalar_type() != type || tensor.dim() != 1) throw std::runtime_error("unexpected type or shape");
  const T* first = static_cast<const T*>(tensor.data_ptr());
  to.assign(first, first + tensor.numel());
}

void unpack(std::vector<double>& to, const Tensor& tensor) { copy_vector(to, tensor, at::kDouble); }
void unpack(std::vector<int64_t>& to, const Tensor& tensor) { copy_vector(to, tensor, at::kLong); }
void unpack(std::vector<Part>& to, const Tensor& tensor) {
  std::vector<int64_t> values;
  unpack(values, tensor);
  for (const int64_t value : values) {
    if (value < 0 || value > static_cast<int64_t>(Part::Test)) throw std::runtime_error("unknown part");
    to.push_back(static_cast<Part>(value));
  }
}
void unpack(std::vector<std::string>& to, const Tensor& tensor) {
  std::vector<unsigned char> bytes;
  copy_vector(bytes, tensor, at::kByte);
  for (auto begin = bytes.begin(); begin != bytes.end();) {
    const auto end = std::find(begin, bytes.end(), 0);
    if (end == bytes.end()) throw std::runtime_error("unterminated text");
    to.emplace_back(begin, end);
    begin = end + 1;
  }
}
void unpack(std::string& to, const Tensor& tensor) {
  std::vector<std::string> texts;
  unpack(texts, tensor);
  if (texts.size() != 1) throw std::runtime_error("expected one text");
  to = texts.front();
}

void unpack(char& to, const Tensor& tensor) {
  std::string text;
  unpack(text, tensor);
  if (text.size() != 1) throw std::runtime_error("expected one character");
  to = text.front();
}

void unpack(std::vector<TextColumn>& to, const Tensor& tensor) {
  std::vector<std::string> flat;
  unpack(flat, tensor);
  to = text_columns(flat);
}

// all members by name, for both directions
template <typename Data, typename Visit>
void visit_members(Data& data, const Visit& visit) {
  visit("head.name", data.head.name);
  visit("head.origin", data.head.origin);
  visit("head.channels", data.head.channels);
  visit("head.statics", data.head.statics);
  visit("head.targets", data.head.targets);
  visit("head.classes", data.head.classes);
  visit("head.time_unit", data.head.time_unit);
  visit("head.time_zero", data.head.time_zero);
  visit("head.date_form", data.head.date_form);
  visit("head.source.id", data.head.source.id);
  visit("head.source.time", data.head.source.time);
  visit("head.source.label", data.head.source.label);
  visit("head.source.group", data.head.source.group);
  visit("head.source.separator", data.head.source.separator);
  visit("head.source.decimal", data.head.source.decimal);
  visit("head.channel_texts", data.head.channel_texts);
  visit("head.static_texts", data.head.static_texts);
  visit("head.unused", data.head.unused);
  visit("head.skipped", data.head.skipped);
  visit("head.notes", data.head.notes);
  visit("ids", data.ids);
  visit("groups", data.groups);
  visit("parts", data.parts);
  visit("offsets", data.offsets);
  visit("times", data.times);
  visit("values", data.values);
  visit("statics", data.statics);
  visit("labels", data.labels);
  visit("targets", data.targets);
  visit("step_labels", data.step_labels);
  visit("unused", data.unused);
  visit("dates", data.dates);
}

// only then it matters whether they are required
bool names_label_columns(const TableColumns& columns) {
  return columns.label != TableColumns().label || !columns.group.empty() || !columns.targets.empty();
}

// everything besides the files that the result of a reader depends on
std::string settings_text(const ReadOptions& options) {
  std::string text = message(
      kFormat, "\n", options.format, "\n", static_cast<int>(options.skip_bad), "\n", options.columns.id, "\n",
      options.columns.time, "\n", options.columns.label, "\n", options.columns.group, "\n", options.time_unit,
      "\n", static_cast<int>(options.speech), "\n",
      names_label_columns(options.columns) ? static_cast<int>(options.columns.label_columns) : 0, "\n");
  const TableColumns& columns = options.columns;
  const bool named = !columns.channels.empty() || !columns.ignored.empty() || !columns.texts.empty();
  text += message(named ? static_cast<int>(columns.channel_columns) : 0, "\n",
                  static_cast<int>(options.table.decimal), static_cast<int>(options.table.order),
                  static_cast<int>(options.table.duplicates), "\n");
  for (const auto* list : {&columns.statics, &columns.targets, &columns.channels, &columns.ignored,
                           &columns.texts, &options.table.missing}) {
    // lengths, since names may contain any character
    for (const std::string& name : *list) text += message(name.size(), ":", name, ",");
    text += "\n";
  }
  return text;
}

std::string contents_key(const std::string& path) {
  if (!fs::is_directory(path)) return sha256_of_file(path);
  Sha256 sum;
  for (const std::string& file : files_below(path, "")) {
    struct stat status = {};
    if (stat(file.c_str(), &status) != 0) throw std::runtime_error(file + ": " + std::strerror(errno));
    // an edit may keep the size and set the time of modification back, but not the time of change
    sum.add(message(fs::path(file).lexically_relative(path).string(), "\n", status.st_size, "\n",
                    status.st_ino, "\n", status.st_mtim.tv_sec, ".", status.st_mtim.tv_nsec, "\n",
                    status.st_ctim.tv_sec, ".", status.st_ctim.tv_nsec, "\n"));
  }
  return sum.digest();
}

}  // namespace

std::string cache_file(const std::string& path, const ReadOptions& options, const std::string& cache_dir) {
  // the same for a folder with and without a trailing slash
  const fs::path absolute = fs::weakly_canonical(path);
  const std::string whole = (absolute.has_filename() ? absolute : absolute.parent_path()).string();
  const std::string sum = sha256(settings_text(options) + whole);
  return (fs::path(cache_dir) / (file_name(whole) + "-" + sum.substr(0, 16) + ".safetensors")).string();
}

void save_prepared(const std::string& file, const DataSet& data, const std::string& key) {
  NamedTensors contents = {.tensors = {}, .metadata = {{"format", kFormat}, {"key", key}}};
  visit_members(data, [&](const char* name, const auto& member) { contents.tensors[name] = packed(member); });
  save_safetensors(file, contents);
}

std::optional<DataSet> load_prepared(const std::string& file, const std::string& key) {
  const auto text = [](const std::map<std::string, std::string>& metadata, const char* name) {
    const auto found = metadata.find(name);
    return found == metadata.end() ? std::string() : found->second;
  };
  // the header decides whether the whole is worth reading
  const auto metadata = SafetensorsFile(file).metadata();
  if (text(metadata, "format") != kFormat || text(metadata, "key") != key) return {};
  // without its checksum the file is not as it was written
  if (text(metadata, kSafetensorsChecksum).empty()) throw std::runtime_error(file + ": there is no checksum");
  const NamedTensors contents = load_safetensors(file);
  DataSet data;
  visit_members(data, [&](const char* name, auto& member) {
    const auto found = contents.tensors.find(name);
    if (found == contents.tensors.end()) throw std::runtime_error(file + ": there is no " + name);
    member = {};
    unpack(member, found->second);
  });
  return data;
}

DataSet read_cached(const std::string& path, const ReadOptions& options, const std::string& cache_dir,
                    const std::function<DataSet()>& read) {
  // built-in sets, and pipes, which can be read once
  std::error_code none;
  if (!fs::is_regular_file(path, none) && !fs::is_directory(path, none)) return read();
  const std::string file = cache_file(path, options, cache_dir), key = contents_key(path);
  if (fs::exists(file, none)) {
    try {
      if (std::optional<DataSet> data = load_prepared(file, key)) return std::move(*data);
    } catch (const std::exception&) {
      // a damaged cache is rebuilt below
    }
  }
  DataSet data = read();
  try {
    fs::create_directories(cache_dir);
    save_prepared(file, data, key);
  } catch (const std::exception& error) {
    data.head.notes.push_back(decoded(message("not cached: ", error.what())).text);
  }
  return data;
}

}  // namespace fastweights::data

namespace fastweights {

DataSet read_cached(const std::string& path, const ReadOptions& options, const std::string& cache_dir) {
  return data::read_cached(path, options, cache_dir, [&] { return read_data(path, options); });
}

}  // namespace fastweights
