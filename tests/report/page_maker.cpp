#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "report/report.h"

/// report_page_maker REPORT.json PAGE.html: a page for the browser test.
int main(int count, char** arguments) {
  if (count != 3) {
    std::cerr << "usage: report_page_maker REPORT.json PAGE.html\n";
    return 2;
  }
  try {
    std::ifstream in(arguments[1]);
    if (!in) throw std::runtime_error(std::string("cannot read ") + arguments[1]);
    const auto json = nlohmann::ordered_json::parse(in);
    std::ofstream out(arguments[2]);
    out << fastweights::report::page(json.at("title").get<std::string>(), json.dump());
    out.close();
    if (!out) throw std::runtime_error(std::string("cannot write ") + arguments[2]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
