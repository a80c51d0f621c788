#include "data/download.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "data/files.h"
#include "data/sha256.h"
#include "data/text.h"
#include "fastweights/data.h"

#ifdef FASTWEIGHTS_CURL
#include <curl/curl.h>
#endif

namespace fastweights::data {
namespace {

namespace fs = std::filesystem;

#ifdef FASTWEIGHTS_CURL

// the state of a transfer, for the callbacks of libcurl
struct Arrival {
  std::string part, tag_file;  // the bytes so far, and the ETag of the version they belong to
  DownloadProgress progress = {};
  int64_t begin = 0, total = 0;
  long status = 0;
  std::string tag = {};
  std::string range = {};     // Content-Range of the response
  bool length_known = false;  // the server says how many bytes it sends, or marks their end
  std::optional<GrowingFile> out = {};
  std::exception_ptr error = {};
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

size_t on_header(const char* bytes, size_t, size_t size, void* user) {
  auto& arrival = *static_cast<Arrival*>(user);
  std::string line(bytes, size);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
  // each response of a chain of redirections starts over
  if (line.rfind("HTTP/", 0) == 0) {
    arrival.status = std::atol(line.c_str() + std::min(line.find(' '), line.size()));
    arrival.tag.clear();
    arrival.range.clear();
    // HTTP/2 and later mark the end
    arrival.length_known = line.rfind("HTTP/1", 0) != 0;
  }
  const size_t colon = line.find(": ");
  const std::string name = lower(line.substr(0, colon));
  const bool weak = colon != std::string::npos && line.compare(colon + 2, 2, "W/") == 0;
  if (name == "etag" && !weak) arrival.tag = line.substr(colon + 2);
  if (name == "content-range") arrival.range = line.substr(colon + 2);
  if (name == "content-length" || name == "transfer-encoding") arrival.length_known = true;
  if (name == "last-modified" && arrival.tag.empty()) arrival.tag = line.substr(colon + 2);
  return size;
}

// of "bytes 1000-1999/5000"; -1: there is none
int64_t range_begin(const std::string& range) {
  int64_t begin = -1;
  if (range.rfind("bytes ", 0) != 0) return begin;
  std::from_chars(range.data() + 6, range.data() + range.size(), begin);
  return begin;
}

// the size of the whole file after the slash; 0: unknown
int64_t range_total(const std::string& range) {
  int64_t total = 0;
  const size_t slash = range.rfind('/');
  if (slash != std::string::npos)
    std::from_chars(range.data() + slash + 1, range.data() + range.size(), total);
  return total;
}

size_t on_bytes(const char* bytes, size_t, size_t size, void* user) {
  auto& arrival = *static_cast<Arrival*>(user);
  try {
    if (!arrival.out) {
      // 206: the rest of a partial file; otherwise the server sends the whole file
      const bool rest = arrival.status == 206;
      if (rest && range_begin(arrival.range) != arrival.begin) return 0;
      if (!rest) arrival.begin = 0;
      if (!rest) replace_file(arrival.tag_file, arrival.tag);
      arrival.out.emplace(arrival.part, rest ? GrowingFile::Start::AtTheEnd : GrowingFile::Start::Empty);
    }
    arrival.out->append({bytes, size});
    return size;
  } catch (const std::exception&) {
    // an exception must not pass through libcurl, which is C: the caller rethrows it
    arrival.error = std::current_exception();
    return 0;
  }
}

int on_progress(void* user, curl_off_t total, curl_off_t now, curl_off_t, curl_off_t) {
  auto& arrival = *static_cast<Arrival*>(user);
  if (!arrival.progress || !arrival.out) return 0;
  try {
    const int64_t all = arrival.total > 0 ? arrival.total : total > 0 ? arrival.begin + total : 0;
    arrival.progress(arrival.begin + now, all);
    return 0;
  } catch (const std::exception&) {
    arrival.error = std::current_exception();
    return 1;
  }
}

// resumes only a part whose version is known, so that two versions are never mixed
std::string resumable_tag(Arrival& arrival) {
  if (!fs::exists(arrival.part) || !fs::exists(arrival.tag_file)) return {};
  const std::string tag = read_file(arrival.tag_file);
  if (!tag.empty()) arrival.begin = static_cast<int64_t>(fs::file_size(arrival.part));
  return tag;
}

// the rest of a file must continue its part and complete it; otherwise the next attempt starts over
void check_range(const std::string& address, const Arrival& arrival) {
  if (arrival.status != 206 && arrival.status != 416) return;
  const int64_t total = range_total(arrival.range);
  const auto size = fs::exists(arrival.part) ? static_cast<int64_t>(fs::file_size(arrival.part)) : 0;
  const bool continues = arrival.status == 416 || range_begin(arrival.range) == arrival.begin;
  if (continues && (total == 0 || size <= total) && (arrival.status == 206 || total == 0 || size == total))
    return;
  fs::remove(arrival.part);
  fs::remove(arrival.tag_file);
  throw std::runtime_error(message(address, ": expected the bytes from ", arrival.begin,
                                   " on, got the range '", printable(arrival.range).substr(0, 80),
                                   "'; the next attempt starts over"));
}

void transfer(const std::string& address, Arrival& arrival) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), &curl_easy_cleanup);
  std::array<char, CURL_ERROR_SIZE> text = {};
  curl_easy_setopt(curl.get(), CURLOPT_URL, address.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, text.data());
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  // never redirect from https to http
  curl_easy_setopt(curl.get(), CURLOPT_REDIR_PROTOCOLS_STR,
                   address.rfind("https", 0) == 0 ? "https" : "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, 30L);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_TIME, 60L);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, &on_header);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &arrival);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &on_bytes);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &arrival);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, &on_progress);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, &arrival);
  const std::string tag = resumable_tag(arrival);
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(
      tag.empty() ? nullptr : curl_slist_append(nullptr, ("If-Range: " + tag).c_str()), &curl_slist_free_all);
  const std::string range = std::to_string(arrival.begin) + "-";
  if (!tag.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl.get(), CURLOPT_RANGE, range.c_str());
  }
  const CURLcode code = curl_easy_perform(curl.get());
  if (arrival.error) std::rethrow_exception(arrival.error);
  if (arrival.out) arrival.out->close();
  check_range(address, arrival);
  const int64_t total = arrival.status == 206 ? range_total(arrival.range) : 0;
  const bool short_range = code == CURLE_OK && static_cast<int64_t>(fs::file_size(arrival.part)) < total;
  // 416: the file was already complete
  if ((code == CURLE_OK && !short_range) || (!tag.empty() && arrival.status == 416)) return;
  const bool continues = fs::exists(arrival.part) && fs::exists(arrival.tag_file);
  throw std::runtime_error(message(address, ": ",
                                   short_range ? "the server ended early"
                                   : text[0]   ? text.data()
                                               : curl_easy_strerror(code),
                                   continues ? "; the next attempt resumes the download" : ""));
}

#else

struct Arrival {
  std::string part, tag_file;
  DownloadProgress progress = {};
  int64_t begin = 0, total = 0;
  bool length_known = false;
};

void transfer(const std::string& address, Arrival&) {
  throw std::runtime_error(address +
                           ": this build of fastweights cannot download; install libcurl (Debian: "
                           "libcurl4-openssl-dev) and build again, or copy the file there by other means");
}

#endif

// from the catalogue, or from an earlier download
std::string expected_sum(const KnownFile& file, const std::string& record) {
  if (!file.sha256.empty()) return file.sha256;
  return fs::exists(record) ? read_file(record).substr(0, 64) : "";
}

// these names must be the same in the next attempt, so somebody could wait there
void require_no_link(const std::string& path) {
  if (fs::is_symlink(path)) throw std::runtime_error(path + ": expected a file, got a link; remove it");
}

std::string name_of(const std::string& address) {
  const std::string path = address.substr(0, address.find_first_of("?#"));
  const std::string name = path.substr(path.rfind('/') + 1);
  FW_CHECK(!name.empty() && name != "." && name != "..", "[download] '", address, "' does not name a file");
  return name;
}

bool is_packed(const std::string& name) {
  const std::vector<std::string> endings = {".zip", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar"};
  return std::any_of(endings.begin(), endings.end(),
                     [&](const std::string& end) { return name.ends_with(end); });
}

// whether the end of a download without a checksum is certain
enum class End { Known, Unknown };

void check_download(const KnownFile& file, const std::string& path, const std::string& record, End end,
                    const DownloadNote& note) {
  const auto size = static_cast<int64_t>(fs::file_size(path));
  if (file.size > 0 && size != file.size)
    throw std::runtime_error(message(file.address, ": expected ", file.size, " bytes, got ", size));
  const std::string sum = sha256_of_file(path), expected = expected_sum(file, record);
  if (!expected.empty() && sum != expected)
    throw std::runtime_error(file.address + ": expected the SHA-256 " + expected +
                             (file.sha256.empty() ? " of the first download (" + record + ")" : "") +
                             ", got " + sum);
  if (!expected.empty()) return;
  const std::string name = name_of(file.address);
  if (is_packed(name)) check_archive(path);
  // a file that may be incomplete is not what later downloads must match
  const bool whole = end == End::Known || is_packed(name) || file.size > 0;
  if (whole) replace_file(record, sum + "  " + name + "\n");
  if (note)
    note(message(file.address, ": first download, not verified: no checksum is known; SHA-256 ", sum,
                 whole ? "" : ", not remembered, since the server did not send the length"));
}

}  // namespace

std::string download(const KnownFile& file, const std::string& folder, const DownloadProgress& progress,
                     const DownloadNote& note) {
  const std::string path = (fs::path(folder) / name_of(file.address)).string(), record = path + ".sha256";
  fs::create_directories(folder);
  for (const char* end : {".part", ".part.tag", ".sha256"}) require_no_link(path + end);
  if (fs::exists(path)) {
    check_download(file, path, record, End::Known, note);
    return path;
  }
  Arrival arrival = {
      .part = path + ".part", .tag_file = path + ".part.tag", .progress = progress, .total = file.size};
  transfer(file.address, arrival);
  try {
    check_download(file, arrival.part, record, arrival.length_known ? End::Known : End::Unknown, note);
  } catch (const std::exception&) {
    // a damaged part must not be resumed
    fs::remove(arrival.part);
    fs::remove(arrival.tag_file);
    throw;
  }
  fs::rename(arrival.part, path);
  fs::remove(arrival.tag_file);
  return path;
}

std::string fetch(const KnownSet& set, const std::string& data_dir, const DownloadProgress& progress,
                  const DownloadNote& note) {
  const fs::path folder = fs::path(data_dir) / set.name,
                 incomplete = fs::path(data_dir) / (set.name + ".part"),
                 downloads = fs::path(data_dir) / "downloads" / set.name;
  if (fs::is_directory(folder)) return folder.string();
  fs::remove_all(incomplete);
  std::vector<std::string> files;
  for (const KnownFile& file : set.files) files.push_back(download(file, downloads.string(), progress, note));
  fs::create_directories(incomplete);
  for (const std::string& file : files) {
    if (is_packed(file)) {
      unpack(file, incomplete.string());
    } else {
      fs::copy_file(file, incomplete / file_name(file));
    }
  }
  fs::rename(incomplete, folder);
  // the checksums are kept
  for (const std::string& file : files) fs::remove(file);
  return folder.string();
}

}  // namespace fastweights::data

namespace fastweights {

std::string fetch_data(const std::string& name, const std::string& data_dir,
                       const std::function<void(int64_t, int64_t)>& progress,
                       const std::function<void(const std::string&)>& note) {
  return data::fetch(data::known_set(name), data_dir, progress, note);
}

}  // namespace fastweights
