#include "errors.h"

#include <new>

#include "base/printable.h"

namespace fastweights::cli {

std::string error_text(const std::exception& error) {
  constexpr size_t kMost = 2000, kBegin = 1200, kEnd = 700;
  std::string text = error.what();
  // errors of LibTorch have a stack trace after the sentence
  for (const char* trace : {"\nException raised from", "\nframe #"}) text = text.substr(0, text.find(trace));
  if (text.size() > kMost) text = text.substr(0, kBegin) + " ... " + text.substr(text.size() - kEnd);
  return printable(text);
}

bool is_out_of_memory(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) || dynamic_cast<const std::length_error*>(&error) ||
         std::string(error.what()).find("can't allocate memory") != std::string::npos;
}

}  // namespace fastweights::cli
