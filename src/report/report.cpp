#include "report/report.h"

#include <stdexcept>

#include "report/escape.h"
#include "report/page_text.h"

namespace fastweights::report {
namespace {

// JSON that can neither end its element nor open a comment; these characters occur in strings only
std::string inside_script(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (char c : json) {
    switch (c) {
      case '<':
        safe += "\\u003c";
        break;
      case '>':
        safe += "\\u003e";
        break;
      case '&':
        safe += "\\u0026";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

struct Contents {
  const std::string &title, &json;
  std::vector<const char*> scripts;
  std::string policy;  // beyond that of a page which loads nothing
};

std::string scripts_of(const Contents& contents) {
  std::string text;
  for (const char* name : contents.scripts) text += page_text(name);
  return text;
}

// one pass: what is filled in may itself contain marks
std::string filled(std::string_view page, const Contents& contents) {
  std::string text;
  for (;;) {
    const size_t from = page.find("{{"), to = page.find("}}", from);
    text += page.substr(0, from);
    if (to == std::string_view::npos) return text;
    const std::string_view mark = page.substr(from + 2, to - from - 2);
    if (mark == "title") {
      text += escaped(contents.title);
    } else if (mark == "policy") {
      text += contents.policy;
    } else if (mark == "style") {
      text += page_text("page.css");
    } else if (mark == "script") {
      text += scripts_of(contents);
    } else if (mark == "data") {
      text += inside_script(contents.json);
    } else {
      throw std::logic_error("page.html has the unknown mark " + std::string(mark));
    }
    page.remove_prefix(to + 2);
  }
}

}  // namespace

std::string page(const std::string& title, const std::string& json) {
  const Contents contents = {
      title, json, {"basics.js", "charts.js", "importance.js", "fast_weights.js", "page.js"}, ""};
  return filled(page_text("page.html"), contents);
}

std::string board_page(const std::string& title, const std::string& json, BoardPage kind) {
  const Contents contents = {title,
                             json,
                             {"basics.js", "charts.js", "board.js"},
                             kind == BoardPage::Live ? "; connect-src 'self'" : ""};
  return filled(page_text("page.html"), contents);
}

}  // namespace fastweights::report
