#include <gtest/gtest.h>

#include <cstdlib>
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

// lines of the table under a header in a document, without the header
std::vector<std::string> rows_under(const std::string& text, const std::string& header) {
  std::vector<std::string> rows;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line) && line != header) continue;
  while (std::getline(lines, line) && !line.empty()) rows.push_back(line);
  return rows;
}

// Compares a table with the one that the code gives; FASTWEIGHTS_WRITE_TABLES=1 writes it into the document.
void expect_table(const char* document, const std::string& header, const std::vector<std::string>& rows) {
  const std::string text = text_of(kDocuments / document);
  const std::vector<std::string> written = rows_under(text, header);
  ASSERT_FALSE(written.empty()) << document << " has no table " << header;
  std::string old_table = header + "\n", table = header + "\n";
  for (const std::string& row : written) old_table += row + "\n";
  for (const std::string& row : rows) table += row + "\n";
  if (const char* write = std::getenv("FASTWEIGHTS_WRITE_TABLES"); write && std::string(write) == "1") {
    std::string changed = text;
    changed.replace(text.find(old_table), old_table.size(), table);
    std::ofstream(kDocuments / document) << changed;
    return;
  }
  EXPECT_EQ(old_table, table) << document << ": FASTWEIGHTS_WRITE_TABLES=1 ctest -R unit_Documents writes it";
}

std::string in_a_cell(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return value.is_string() && !text.empty() ? "`" + text + "`" : value.dump();
}

// keys in the order of the document, defaults of the code, meanings of the document
void expect_table_of_keys(const char* document, std::map<std::string, Json> defaults) {
  const std::string header = "| key | default | meaning |";
  const std::regex row(R"(^\| `([a-z_.0-9]+)` \| [^|]+ \| (.+) \|$)");
  std::vector<std::string> rows = {"|---|---|---|"};
  const auto add = [&](const std::string& key, const std::string& meaning) {
    rows.push_back("| `" + key + "` | " + in_a_cell(defaults.at(key)) + " | " + meaning + " |");
    defaults.erase(key);
  };
  for (const std::string& line : rows_under(text_of(kDocuments / document), header)) {
    std::smatch match;
    if (std::regex_match(line, match, row) && defaults.contains(match[1])) add(match[1], match[2]);
  }
  while (!defaults.empty()) {
    ADD_FAILURE() << document << " says nothing about " << defaults.begin()->first;
    add(std::string(defaults.begin()->first), "?");
  }
  expect_table(document, header, rows);
}

TEST(Documents, HaveTheTableOfModels) {
  std::vector<std::string> rows = {"|---|---|---|"};
  for (const NamedModel& model : named_models()) {
    rows.push_back("| `" + model.name + "` | " + model.sentence + " | " + model.reference + " |");
  }
  expect_table("docs/models.md", "| `--model` | description | reference |", rows);
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
  expect_table_of_keys("docs/models.md", defaults);
}

TEST(Documents, HaveEveryKeyOfARunWithItsDefault) {
  Json config = Json::parse(to_json(RunConfig()));
  // those are in the other table
  config.erase("model");
  expect_table_of_keys("docs/options.md", flattened(config));
}

TEST(Documents, ShowAConfigurationThatIsOne) {
  const std::vector<std::string> examples = blocks(text_of(kDocuments / "docs/models.md"), "json");
  ASSERT_EQ(examples.size(), 1u);
  check_config(config_from_json(examples[0]));
}

}  // namespace
}  // namespace fastweights
