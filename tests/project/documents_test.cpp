#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "fastweights/model_config.h"
#include "fastweights/run.h"
#include "model/config_names.h"

/// What the documents say about the code, compared with the code.

namespace fastweights {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const fs::path kDocuments = FASTWEIGHTS_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> documents() {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(kDocuments)) found.push_back(entry.path());
  for (const char* folder : {"docs", "src", "tests", "bench", "examples"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kDocuments / folder)) {
      found.push_back(entry.path());
    }
  }
  std::erase_if(found, [](const fs::path& path) { return path.extension() != ".md"; });
  return found;
}

// blocks of a language between fences
std::vector<std::string> blocks(const std::string& text, const std::string& language) {
  const std::string fence = "\n```", begin = fence + language + "\n";
  std::vector<std::string> found;
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    const size_t from = at + begin.size(), to = text.find(fence, from);
    found.push_back(text.substr(from, to - from));
  }
  return found;
}

// what follows # in a link to a heading
std::set<std::string> anchors(const std::string& text) {
  std::set<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("#", 0) != 0) continue;
    std::string anchor;
    for (char c : line.substr(line.find(' ') + 1)) {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-') {
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      } else if (c == ' ') {
        anchor += '-';
      }
    }
    found.insert(anchor);
  }
  return found;
}

TEST(Documents, LinksLeadSomewhere) {
  const std::regex link(R"(\]\(([^)#\s]*)(#[^)\s]*)?\))");
  int count = 0;
  for (const fs::path& path : documents()) {
    const std::string text = text_of(path);
    for (std::sregex_iterator match(text.begin(), text.end(), link), end; match != end; ++match) {
      const std::string target = (*match)[1], anchor = (*match)[2];
      if (target.find("://") != std::string::npos) continue;
      ++count;
      const fs::path file = target.empty() ? path : path.parent_path() / target;
      EXPECT_TRUE(fs::exists(file)) << path << ": " << target;
      if (!anchor.empty()) {
        EXPECT_TRUE(anchors(text_of(file)).contains(anchor.substr(1))) << path << ": " << target << anchor;
      }
    }
  }
  EXPECT_GT(count, 20);
}

TEST(Documents, QuoteTheExampleAsItIs) {
  const std::string example = text_of(kDocuments / "examples/own_rule.cpp");
  const std::vector<std::string> quotes = blocks(text_of(kDocuments / "docs/adding_a_rule.md"), "cpp");
  EXPECT_EQ(quotes.size(), 2u);
  for (const std::string& quote : quotes) EXPECT_NE(example.find(quote), std::string::npos) << quote;
}

// keys with dots, as on the command line
std::map<std::string, Json> flattened(const Json& json) {
  std::map<std::string, Json> result;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_object()) {
      result[key] = value;
      continue;
    }
    for (const auto& [inner, entry] : value.items()) result[key + "." + inner] = entry;
  }
  return result;
}

// rows of the first table of keys in a document
std::map<std::string, Json> documented_defaults(const char* document) {
  std::map<std::string, Json> documented;
  std::istringstream lines(text_of(kDocuments / document));
  std::string line;
  while (std::getline(lines, line) && line != "| key | default | meaning |") continue;
  const std::regex row(R"(^\| `([a-z_.]+)` \| (`([a-z_0-9]+)`|[^|]+) \| .+ \|$)");
  std::getline(lines, line);
  while (std::getline(lines, line) && !line.empty()) {
    std::smatch match;
    EXPECT_TRUE(std::regex_match(line, match, row)) << line;
    if (!match.empty())
      documented[match[1]] = match[3].matched ? Json(match[3].str()) : Json::parse(match[2].str());
  }
  return documented;
}

// of fast weight programmers, and what other architectures and alternatives have besides
TEST(Documents, HaveEveryConfigurationKeyWithItsDefault) {
  std::map<std::string, Json> defaults = flattened(Json::parse(to_json(ModelConfig())));
  for (const ArchitectureType* type : all_architectures()) {
    for (const std::string& name : type->names) {
      const ModelConfig config = {.architecture = type->defaults(name)};
      for (const auto& [key, value] : flattened(Json::parse(to_json(config)))) defaults.insert({key, value});
    }
  }
  const auto add = [&](const FastWeights& options) {
    const ModelConfig config = {.architecture = options};
    for (const auto& [key, value] : flattened(Json::parse(to_json(config)))) defaults.insert({key, value});
  };
  for (const auto& [name, path] : alternatives_of(ControlPath())) add({.control = {.path = path}});
  for (const auto& [name, steps] : alternatives_of(ModelSteps())) add({.solver = {.steps = steps}});
  EXPECT_EQ(Json(documented_defaults("docs/models.md")), Json(defaults));
}

TEST(Documents, HaveEveryKeyOfARunWithItsDefault) {
  Json config = Json::parse(to_json(RunConfig()));
  // those are in the other table
  config.erase("model");
  EXPECT_EQ(Json(documented_defaults("docs/options.md")), Json(flattened(config)));
}

TEST(Documents, ShowAConfigurationThatIsOne) {
  const std::vector<std::string> examples = blocks(text_of(kDocuments / "docs/models.md"), "json");
  ASSERT_EQ(examples.size(), 1u);
  check_config(config_from_json(examples[0]));
}

}  // namespace
}  // namespace fastweights
