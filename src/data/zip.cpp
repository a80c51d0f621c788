#include "data/zip.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/error.h"
#include "data/files.h"
#include "data/text.h"

#ifdef FASTWEIGHTS_ZLIB
#include <zlib.h>
#endif

namespace fastweights::data {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22;
constexpr uint32_t kLarge = 0xffffffff;  // the value is in the zip64 extension
constexpr uint16_t kStored = 0, kDeflated = 8;

template <typename... Parts>
[[noreturn]] void refuse_zip(const std::string& file, const Parts&... parts) {
  throw std::runtime_error(message(file, ": ", parts...));
}

uint32_t number(std::string_view bytes, size_t at, size_t count) {
  uint32_t x = 0;
  for (size_t i = 0; i < count; ++i)
    x |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return x;
}

void put(std::string& bytes, uint64_t x, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(x >> (8 * i) & 0xff);
}

uint32_t checksum(std::string_view bytes) {
  static const std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table = {};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t x = i;
      for (int bit = 0; bit < 8; ++bit) x = x & 1 ? 0xedb88320 ^ (x >> 1) : x >> 1;
      table[i] = x;
    }
    return table;
  }();
  uint32_t sum = 0xffffffff;
  for (const char c : bytes) sum = kTable[(sum ^ static_cast<unsigned char>(c)) & 0xff] ^ (sum >> 8);
  return ~sum;
}

#ifdef FASTWEIGHTS_ZLIB
constexpr int kNoHeader = -MAX_WBITS;

// `size` is that of the directory; any other is an error
std::string inflated(std::string_view bytes, size_t size, const std::string& member) {
  // deflate compresses at most 1032 to one: do not allocate memory for an impossible size
  if (size / 1032 > bytes.size() + 16)
    throw std::runtime_error(member + ": the uncompressed size in the archive is wrong");
  std::string out(size, '\0');
  z_stream stream = {};
  if (inflateInit2(&stream, kNoHeader) != Z_OK) throw std::runtime_error(member + ": zlib failed to start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  // zlib needs an output pointer even for no output
  char nothing = 0;
  stream.next_out = reinterpret_cast<Bytef*>(out.empty() ? &nothing : out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&stream, Z_FINISH);
  const bool whole = status == Z_STREAM_END && stream.total_out == size;
  inflateEnd(&stream);
  if (!whole) throw std::runtime_error(member + ": the compressed data are damaged");
  return out;
}

std::string deflated(std::string_view bytes) {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kNoHeader, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib failed to start");
  std::string out(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw std::runtime_error("zlib failed to compress the data");
  return out;
}
#else
std::string inflated(std::string_view, size_t, const std::string& member) {
  throw std::runtime_error(member +
                           ": the member is compressed, but this build has no zlib; write the file with "
                           "numpy.savez instead of savez_compressed, or build with zlib");
}

std::string deflated(std::string_view) {
  throw std::runtime_error("this build has no zlib and cannot compress; write the archive uncompressed");
}
#endif

// offset of the end record; a comment may follow it
size_t end_record(std::string_view bytes, const std::string& file) {
  constexpr size_t kLongestComment = 65535;
  if (bytes.size() >= kEndSize) {
    const size_t last = bytes.size() - kEndSize;
    for (size_t back = 0; back <= std::min(last, kLongestComment); ++back) {
      if (number(bytes, last - back, 4) == kEnd) return last - back;
    }
  }
  refuse_zip(file, "not a complete zip archive; the .npz file may be truncated");
}

std::string member_data(std::string_view bytes, size_t entry, const std::string& member) {
  const uint32_t flags = number(bytes, entry + 8, 2), method = number(bytes, entry + 10, 2);
  const uint32_t sum = number(bytes, entry + 16, 4);
  const size_t packed = number(bytes, entry + 20, 4), size = number(bytes, entry + 24, 4),
               local = number(bytes, entry + 42, 4);
  if (packed == kLarge || size == kLarge || local == kLarge)
    refuse_zip(member, "members of 4 GB or more are not supported; split the set");
  if (flags & 1) refuse_zip(member, "encrypted members are not supported");
  if (local + kLocalSize > bytes.size() || number(bytes, local, 4) != kLocal)
    refuse_zip(member, "no member at the offset that the directory gives");
  const size_t begin = local + kLocalSize + number(bytes, local + 26, 2) + number(bytes, local + 28, 2);
  if (begin > bytes.size() || packed > bytes.size() - begin)
    refuse_zip(member, "the file ends inside the data; expected ", packed, " bytes");
  if (method != kStored && method != kDeflated)
    refuse_zip(member, "expected the compression method stored or deflated, got ", method);
  if (method == kStored && size != packed) refuse_zip(member, "the two sizes of stored data differ");
  const std::string_view data = bytes.substr(begin, packed);
  std::string out = method == kStored ? std::string(data) : inflated(data, size, member);
  if (checksum(out) != sum) refuse_zip(member, "checksum mismatch: the file is damaged");
  return out;
}

}  // namespace

bool can_deflate() {
#ifdef FASTWEIGHTS_ZLIB
  return true;
#else
  return false;
#endif
}

std::vector<std::pair<std::string, std::string>> unzip(std::string_view bytes, const std::string& file,
                                                       size_t limit) {
  const size_t end = end_record(bytes, file);
  const size_t count = number(bytes, end + 10, 2);
  size_t at = number(bytes, end + 16, 4);
  if (at == kLarge) refuse_zip(file, "archives of 4 GB or more are not supported; split the set");
  std::vector<std::pair<std::string, std::string>> members;
  size_t packed = 0, total = 0;
  for (size_t i = 0; i < count; ++i) {
    if (at + kCentralSize > end || number(bytes, at, 4) != kCentral)
      refuse_zip(file, "malformed directory; expected ", count, " members");
    const size_t name = number(bytes, at + 28, 2), extra = number(bytes, at + 30, 2),
                 comment = number(bytes, at + 32, 2);
    if (at + kCentralSize + name > end) refuse_zip(file, "malformed directory; expected a name");
    std::string member(bytes.substr(at + kCentralSize, name));
    // members that share bytes could require any amount of memory
    packed += number(bytes, at + 20, 4);
    if (packed > bytes.size()) refuse_zip(file, "the directory claims more data than the file has");
    total += number(bytes, at + 24, 4);
    require_memory(total, limit, file, "its uncompressed content");
    std::string data = member_data(bytes, at, file + ": " + shown_name(member));
    members.emplace_back(std::move(member), std::move(data));
    at += kCentralSize + name + extra + comment;
  }
  return members;
}

std::string zip(const std::vector<std::pair<std::string, std::string>>& members, Packing packing) {
  std::string bytes, directory;
  for (const auto& [name, data] : members) {
    const std::string packed = packing == Packing::Deflated ? deflated(data) : data;
    if (std::max(data.size(), packed.size()) >= kLarge || bytes.size() >= kLarge)
      throw std::runtime_error(name + ": an archive of 4 GB or more cannot be written; split the set");
    // version, flags, method, time, date (1980-01-01, so that the same data are the same bytes)
    std::string common;
    put(common, 20, 2);
    put(common, 0, 2);
    put(common, packing == Packing::Deflated ? kDeflated : kStored, 2);
    put(common, 0, 2);
    put(common, 0x21, 2);
    put(common, checksum(data), 4);
    put(common, packed.size(), 4);
    put(common, data.size(), 4);
    put(common, name.size(), 2);
    put(common, 0, 2);
    put(directory, kCentral, 4);
    put(directory, 20, 2);
    directory += common;
    // comment, disk, internal and external attributes, offset
    put(directory, 0, 2 + 2 + 2);
    put(directory, 0, 4);
    put(directory, bytes.size(), 4);
    directory += name;
    put(bytes, kLocal, 4);
    bytes += common + name + packed;
  }
  if (bytes.size() + directory.size() >= kLarge)
    throw std::runtime_error("an archive of 4 GB or more cannot be written; split the set");
  const size_t begin = bytes.size();
  bytes += directory;
  put(bytes, kEnd, 4);
  put(bytes, 0, 4);
  put(bytes, members.size(), 2);
  put(bytes, members.size(), 2);
  put(bytes, directory.size(), 4);
  put(bytes, begin, 4);
  put(bytes, 0, 2);
  return bytes;
}

}  // namespace fastweights::data
