#include "data/files.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <new>
#include <stdexcept>
#include <thread>

#include "base/available_memory.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/files.h"
#include "data/gzip.h"
#include "data/text.h"

namespace fastweights::data {
namespace {

namespace fs = std::filesystem;

// pipes of a shell, which have a writer; a named pipe may wait for one for ever
bool is_open_pipe(const std::string& path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/");
}

void require_file(const std::string& path, const struct stat& status) {
  const auto refuse_kind = [&](const char* kind) {
    throw std::runtime_error(path + ": expected a file or a folder, got " + kind +
                             "; copy its content into a file, or pipe it to /dev/stdin");
  };
  if (S_ISFIFO(status.st_mode) && !is_open_pipe(path)) refuse_kind("a named pipe");
  if (S_ISSOCK(status.st_mode) && !is_open_pipe(path)) refuse_kind("a socket");
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) refuse_kind("a device");
}

// several threads take files in order; each result has its own slot, so that no lock is needed
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
      } catch (const std::bad_alloc&) {
        errors[i] = files_[i] + ": reading it needs more memory than there is";
        if (!options_.skip_bad) stop_ = true;
      } catch (const std::exception& error) {
        errors[i] = error.what();
        // files before this one are already being read: the first error in order is among those found
        if (!options_.skip_bad) stop_ = true;
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

size_t read_limit(const ReadOptions& options) {
  FW_CHECK(options.read_limit >= 0, "[read_data] read_limit must not be negative, got ", options.read_limit);
  if (options.read_limit > 0) return static_cast<size_t>(options.read_limit);
  const int64_t total = total_memory();
  return total == kUnknownMemory ? std::numeric_limits<size_t>::max() : static_cast<size_t>(total) / 2;
}

size_t unpack_limit(const ReadOptions& options, size_t packed) {
  constexpr size_t kLeast = 512'000'000, kRatio = 64;
  const size_t limit = read_limit(options);
  if (options.read_limit > 0) return limit;
  return std::min(limit, std::max(kLeast, checked_product({packed, kRatio}).value_or(limit)));
}

void require_memory(std::optional<size_t> bytes, size_t limit, std::string_view file, std::string_view what) {
  if (bytes && *bytes <= limit) return;
  const auto shown = [](size_t size) { return shown_bytes(static_cast<double>(size)); };
  throw std::runtime_error(message(file, ": ", what, " would take ", bytes ? shown(*bytes) : "too many bytes",
                                   ", more than the limit of ", shown(limit),
                                   " for reading; set another one with --read-limit"));
}

void require_parts(size_t count, size_t bytes, size_t limit, std::string_view file, std::string_view what) {
  require_memory(checked_product({count, bytes}), limit, file, what);
}

std::string read_bytes(const std::string& path, const ReadOptions& options) {
  constexpr const char* kWhat = "its content";
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0) require_file(path, status);
  const bool pipe = S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
  const size_t limit = read_limit(options);
  if (!pipe) require_memory(static_cast<size_t>(status.st_size), limit, path, kWhat);
  if (!pipe) return read_file(path);
  // its length is unknown
  std::string bytes;
  std::ifstream in(path, std::ios::binary);
  for (std::string piece(1 << 16, '\0'); in.read(piece.data(), 1 << 16) || in.gcount() > 0;) {
    bytes.append(piece, 0, static_cast<size_t>(in.gcount()));
    require_memory(bytes.size(), limit, path, kWhat);
  }
  return bytes;
}

TextFile read_text(const std::string& path, const ReadOptions& options) {
  std::string bytes = read_bytes(path, options);
  if (is_gzip(bytes)) bytes = gunzip(bytes, path, unpack_limit(options, bytes.size()));
  DecodedText decoding = decoded_file(std::move(bytes));
  TextFile result = {.text = std::move(decoding.text)};
  if (!decoding.encoding.empty()) result.note = message(path, ": not UTF-8; read as ", decoding.encoding);
  return result;
}

std::vector<std::string> files_below(const std::string& folder, std::string_view ending) {
  if (!fs::is_directory(folder)) throw std::runtime_error(folder + ": no such folder");
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
  const size_t workers = std::min<size_t>(std::thread::hardware_concurrency(), files.size() / 16);
  for (size_t i = 1; i < workers; ++i)
    threads.emplace_back([&reading] { reading.work(Reading::Reports::Nothing); });
  // if progress throws, the threads must end first
  std::exception_ptr error;
  try {
    reading.work(Reading::Reports::Progress);
  } catch (const std::exception&) {
    error = std::current_exception();
  }
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);

  FolderSeries found;
  std::map<std::string, int64_t> reasons;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!reading.errors[i].empty()) {
      if (!options.skip_bad) throw std::runtime_error(reading.errors[i]);
      found.skipped.push_back(reading.errors[i]);
    } else if (!reading.results[i].left_out.empty()) {
      ++reasons[reading.results[i].left_out];
    } else {
      found.series.push_back(std::move(reading.results[i].series));
    }
  }
  for (const auto& [reason, count] : reasons)
    found.skipped.push_back(message(count, count == 1 ? " file: " : " files: ", reason));
  if (found.series.empty() && !files.empty())
    throw std::runtime_error(message(fs::path(files[0]).parent_path().string(), ": all files were left out: ",
                                     found.skipped[0], found.skipped.size() > 1 ? "; ..." : ""));
  reading.report(files.size());
  return found;
}

}  // namespace fastweights::data
