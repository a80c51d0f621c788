#include "data/gzip.h"

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

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string without_gz(const std::string& path) {
  return lowercase(path).ends_with(".gz") ? path.substr(0, path.size() - 3) : path;
}

#ifdef FASTWEIGHTS_ZLIB
namespace {

// a stream that ends with its scope
class GzipStream {
 public:
  explicit GzipStream(const std::string& file) {
    constexpr int kGzipHeader = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipHeader) != Z_OK)
      throw std::runtime_error(file + ": zlib failed to start");
  }
  ~GzipStream() { inflateEnd(&stream_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  z_stream* operator->() { return &stream_; }
  z_stream* get() { return &stream_; }

 private:
  z_stream stream_ = {};
};

}  // namespace

std::string gunzip(std::string_view bytes, const std::string& file, size_t limit) {
  constexpr size_t kMostInput = 1 << 30;
  std::array<char, 1 << 16> piece = {};
  std::string content;
  while (!bytes.empty()) {
    GzipStream stream(file);
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream->avail_in = static_cast<uInt>(std::min(bytes.size(), kMostInput));
      stream->next_out = reinterpret_cast<Bytef*>(piece.data());
      stream->avail_out = static_cast<uInt>(piece.size());
      const uInt given = stream->avail_in;
      status = inflate(stream.get(), Z_NO_FLUSH);
      const size_t found = piece.size() - stream->avail_out;
      if (status == Z_BUF_ERROR || (status == Z_OK && bytes.empty() && found == 0))
        throw std::runtime_error(file + ": the compressed data end too early; the file was cut");
      if (status != Z_OK && status != Z_STREAM_END)
        throw std::runtime_error(file + ": the compressed data are damaged");
      require_memory(content.size() + found, limit, file, "its uncompressed content");
      content.append(piece.data(), found);
      bytes.remove_prefix(given - stream->avail_in);
    }
    // padding, as tapes have it
    bytes.remove_prefix(std::min(bytes.find_first_not_of('\0'), bytes.size()));
  }
  return content;
}
#else
std::string gunzip(std::string_view, const std::string& file, size_t) {
  throw std::runtime_error(file +
                           ": the file is compressed, but this build has no zlib; unpack it with gunzip");
}
#endif

}  // namespace fastweights::data
