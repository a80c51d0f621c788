#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// Text that fits the terminal, in characters; a width of 0 is unlimited.

namespace fastweights::cli {

/// Columns of the terminal that stdout is now, which change when a window is resized; 80 if it does not say,
/// 0 if stdout is no terminal.
size_t terminal_width();

/// Characters of UTF-8 text.
size_t text_width(const std::string& text);

/// The text in lines of at most `width` characters, broken at two spaces, otherwise between words, or inside
/// of a word that is longer. Lines after the first begin with `indent` spaces.
std::string wrapped(const std::string& text, size_t width, size_t indent = 0);

/// A part of a line of progress. The line is in this order; those of the lowest rank are kept first.
struct LinePart {
  std::string text;
  int rank = 0;
};
/// As many parts as fit into the width, two spaces apart, after a bar of up to 24 characters if there is
/// room. `done` is a fraction from 0 to 1.
std::string progress_line(const std::vector<LinePart>& parts, double done, size_t width);

}  // namespace fastweights::cli
