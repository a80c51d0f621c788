#include "terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/utf8.h"

namespace fastweights::cli {
namespace {

constexpr size_t kUsualWidth = 80;
constexpr size_t kShortestBar = 6, kLongestBar = 24;
constexpr size_t kGap = 2;

// the beginning of a text, whole characters
std::string beginning(const std::string& text, size_t width) {
  size_t bytes = 0;
  for (size_t i = 0; i < width && bytes < text.size(); ++i)
    bytes += std::max<size_t>(utf8_length(std::string_view(text).substr(bytes)), 1);
  return text.substr(0, bytes);
}

// number of bytes of a text for a line of at most `most`: up to two spaces, as between pairs of name and
// value; otherwise up to a space, unless the first word is longer than a line
size_t line_end(const std::string& text, size_t most) {
  const size_t first = text.find_first_not_of(' ');
  for (const char* gap : {"  ", " "}) {
    const size_t end = text.rfind(gap, most), word = text.find_last_not_of(' ', end);
    if (end != std::string::npos && word != std::string::npos && first < end) return word + 1;
  }
  return most;
}

std::string bar(double done, size_t width) {
  const size_t inside = width - 2;
  const auto filled = static_cast<size_t>(std::clamp(done, 0.0, 1.0) * static_cast<double>(inside));
  return "[" + std::string(filled, '#') + std::string(inside - filled, '.') + "]";
}

}  // namespace

size_t terminal_width() {
  if (!isatty(STDOUT_FILENO)) return 0;
  winsize size = {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualWidth;
}

size_t text_width(const std::string& text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++count)
    i += std::max<size_t>(utf8_length(std::string_view(text).substr(i)), 1);
  return count;
}

std::string wrapped(const std::string& text, size_t width, size_t indent) {
  if (width == 0 || text_width(text) <= width) return text;
  indent = std::min(indent, width / 2);
  std::string out, line, rest = text;
  while (!rest.empty()) {
    const size_t room = width - text_width(line);
    if (text_width(rest) <= room) return out + line + rest;
    const size_t end = line_end(rest, beginning(rest, room).size());
    const std::string piece = rest.substr(0, end);
    rest.erase(0, rest.find_first_not_of(' ', end));
    out += line + piece + "\n";
    line = std::string(indent, ' ');
  }
  return out;
}

std::string progress_line(const std::vector<LinePart>& parts, double done, size_t width) {
  std::vector<size_t> order(parts.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return parts[a].rank < parts[b].rank; });
  std::vector<bool> kept(parts.size(), false);
  size_t used = 0;
  for (const size_t i : order) {
    const size_t more = text_width(parts[i].text) + (used > 0 ? kGap : 0);
    if (parts[i].text.empty() || used + more > width) continue;
    kept[i] = true;
    used += more;
  }
  std::string line;
  const size_t room = width > used + kGap ? width - used - kGap : 0;
  if (room >= kShortestBar) line = bar(done, std::min(room, kLongestBar));
  for (size_t i = 0; i < parts.size(); ++i) {
    if (kept[i]) line += (line.empty() ? "" : std::string(kGap, ' ')) + parts[i].text;
  }
  return beginning(line, width);
}

}  // namespace fastweights::cli
