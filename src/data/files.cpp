#include "data/files.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <thread>

#include "base/error.h"

namespace fastweights::data {
namespace {

namespace fs = std::filesystem;

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
  reading.report(files.size());
  return found;
}

}  // namespace fastweights::data
