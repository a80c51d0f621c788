#include "data/files.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>

#include "fastweights/error.h"

namespace fastweights {
namespace {

namespace fs = std::filesystem;

// several threads take files in order; each result has its own place, so that nothing is locked
class Reading {
 public:
  Reading(const std::vector<std::string>& files, const ReadOptions& options,
          const std::function<FileSeries(const std::string&)>& read)
      : results(files.size()), errors(files.size()), files_(files), options_(options), read_(read) {}

  std::vector<FileSeries> results;
  std::vector<std::string> errors;

  enum class Reports { Progress, Nothing };
  void work(Reports reports) {
    const size_t step = std::max<size_t>(1, files_.size() / 100);
    for (size_t i = next_++; i < files_.size() && !stop_; i = next_++) {
      try {
        results[i] = read_(files_[i]);
      } catch (const std::exception& error) {
        errors[i] = error.what();
        // files before this one are in work already: the first error in order is among those found
        if (options_.bad_files == BadFiles::Stop) stop_ = true;
      }
      const size_t done = ++done_;
      if (reports == Reports::Progress && options_.progress && done >= reported_ + step) report(done);
    }
  }

  void report(size_t done) {
    reported_ = done;
    if (options_.progress) options_.progress(static_cast<int64_t>(done), static_cast<int64_t>(files_.size()));
  }

 private:
  const std::vector<std::string>& files_;
  const ReadOptions& options_;
  const std::function<FileSeries(const std::string&)>& read_;
  std::atomic<size_t> next_ = 0, done_ = 0;
  std::atomic<bool> stop_ = false;
  size_t reported_ = 0;
};

}  // namespace

std::string file_bytes(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  std::string bytes;
  // most files of such folders fit into one read, for which no buffer is wanted
  std::setvbuf(file.get(), nullptr, _IONBF, 0);
  size_t size = 0;
  for (size_t room = 1 << 15; true; room *= 2) {
    bytes.resize(size + room);
    const size_t got = std::fread(bytes.data() + size, 1, room, file.get());
    size += got;
    if (got < room) break;
  }
  if (std::ferror(file.get())) throw std::runtime_error(path + ": cannot be read");
  bytes.resize(size);
  return bytes;
}

std::vector<std::string> files_below(const std::string& folder, std::string_view ending) {
  if (!fs::is_directory(folder)) throw std::runtime_error(folder + ": there is no such folder");
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const std::string& path = entry.path().native();
    if (path.ends_with(ending) && entry.is_regular_file()) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string file_name(const std::string& path) {
  const fs::path clean = fs::path(path).lexically_normal();
  return (clean.has_filename() ? clean : clean.parent_path()).filename().string();
}

std::string stem(const std::string& path) { return fs::path(path).stem().string(); }

FolderSeries read_files(const std::vector<std::string>& files, const ReadOptions& options,
                        const std::function<FileSeries(const std::string&)>& read) {
  Reading reading(files, options, read);
  std::vector<std::thread> threads;
  const size_t wanted = std::min<size_t>(std::thread::hardware_concurrency(), files.size() / 16);
  for (size_t i = 1; i < wanted; ++i)
    threads.emplace_back([&reading] { reading.work(Reading::Reports::Nothing); });
  // progress belongs to the caller: if it throws, the threads must come home first
  std::exception_ptr trouble;
  try {
    reading.work(Reading::Reports::Progress);
  } catch (const std::exception&) {
    trouble = std::current_exception();
  }
  for (std::thread& thread : threads) thread.join();
  if (trouble) std::rethrow_exception(trouble);

  FolderSeries found;
  std::map<std::string, int64_t> reasons;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!reading.errors[i].empty()) {
      if (options.bad_files == BadFiles::Stop) throw std::runtime_error(reading.errors[i]);
      found.skipped.push_back(reading.errors[i]);
    } else if (!reading.results[i].left_out.empty()) {
      ++reasons[reading.results[i].left_out];
    } else {
      found.series.push_back(std::move(reading.results[i].series));
    }
  }
  for (const auto& [reason, count] : reasons)
    found.skipped.push_back(message(count, count == 1 ? " file: " : " files: ", reason));
  reading.report(files.size());
  return found;
}

bool FileLines::next() {
  if (rest_.find_first_not_of("\r\n") == std::string_view::npos) return false;
  const size_t end = std::min(rest_.find('\n'), rest_.size());
  line_ = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  ++number_;
  return true;
}

std::vector<std::string_view> fields(std::string_view line, char separator) {
  std::vector<std::string_view> found;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(separator, begin), line.size());
    found.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return found;
}

void refuse_field(const FieldPlace& place, std::string_view found, std::string_view expected) {
  throw std::runtime_error(message(place.file, ": line ", place.line, ", column '", place.column,
                                   "': found '", found.substr(0, 40), "', expected ", expected));
}

double number_or_nan(std::string_view text, const FieldPlace& place) {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return field_number(text, place);
}

double field_number(std::string_view text, const FieldPlace& place) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    refuse_field(place, text, "a number");
  return value;
}

}  // namespace fastweights
