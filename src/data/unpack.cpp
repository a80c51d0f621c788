#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "data/download.h"

#ifdef FASTWEIGHTS_LIBARCHIVE
#include <archive.h>
#include <archive_entry.h>
#endif

namespace fastweights::data {

#ifdef FASTWEIGHTS_LIBARCHIVE

namespace {

namespace fs = std::filesystem;

using Archive = std::unique_ptr<struct archive, int (*)(struct archive*)>;

[[noreturn]] void refuse(const std::string& file, struct archive* archive) {
  const char* text = archive_error_string(archive);
  throw std::runtime_error(file + ": cannot be unpacked: " + (text ? text : "unknown error"));
}

Archive opened(const std::string& file) {
  Archive reading(archive_read_new(), &archive_read_free);
  archive_read_support_filter_all(reading.get());
  archive_read_support_format_all(reading.get());
  if (archive_read_open_filename(reading.get(), file.c_str(), 1 << 16) != ARCHIVE_OK)
    refuse(file, reading.get());
  return reading;
}

void write_entry(const std::string& file, struct archive* archive, const fs::path& to) {
  fs::create_directories(to.parent_path());
  std::ofstream out(to, std::ios::binary);
  const void* piece = nullptr;
  size_t size = 0;
  la_int64_t offset = 0;
  int status = ARCHIVE_OK;
  while ((status = archive_read_data_block(archive, &piece, &size, &offset)) == ARCHIVE_OK) {
    out.seekp(offset);
    out.write(static_cast<const char*>(piece), static_cast<std::streamsize>(size));
  }
  if (status != ARCHIVE_EOF) refuse(file, archive);
  if (!out.flush()) throw std::runtime_error(to.string() + ": cannot be written");
}

}  // namespace

void check_archive(const std::string& archive) {
  const Archive reading = opened(archive);
  struct archive_entry* entry = nullptr;
  int status = ARCHIVE_OK;
  while ((status = archive_read_next_header(reading.get(), &entry)) == ARCHIVE_OK) {
    const void* piece = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    // skipping would not compare checksums
    while ((status = archive_read_data_block(reading.get(), &piece, &size, &offset)) == ARCHIVE_OK) continue;
    if (status != ARCHIVE_EOF) break;
  }
  if (status != ARCHIVE_EOF) refuse(archive, reading.get());
}

void unpack(const std::string& archive, const std::string& folder) {
  const Archive reading = opened(archive);
  fs::create_directories(folder);
  struct archive_entry* entry = nullptr;
  int status = ARCHIVE_OK;
  while ((status = archive_read_next_header(reading.get(), &entry)) == ARCHIVE_OK) {
    const char* text = archive_entry_pathname(entry);
    if (!text) refuse(archive, reading.get());
    const fs::path name(text);
    if (name.is_absolute() || std::find(name.begin(), name.end(), "..") != name.end())
      throw std::runtime_error(archive + ": '" + name.string() + "' would be written outside the folder");
    // links and devices are skipped
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry)) continue;
    write_entry(archive, reading.get(), fs::path(folder) / name);
  }
  if (status != ARCHIVE_EOF) refuse(archive, reading.get());
}

#else

void check_archive(const std::string&) {}

void unpack(const std::string& archive, const std::string&) {
  throw std::runtime_error(archive +
                           ": this build of fastweights cannot unpack; install libarchive (Debian: "
                           "libarchive-dev) and build again");
}

#endif

}  // namespace fastweights::data
