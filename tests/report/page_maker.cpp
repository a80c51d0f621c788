#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>

#include "report/report.h"

/// report_page_maker REPORT.json PAGE.html: what a browser shall open.
int main(int count, char** arguments) {
  if (count != 3) {
    std::cerr << "usage: report_page_maker REPORT.json PAGE.html\n";
    return 2;
  }
  try {
    std::ifstream in(arguments[1]);
    if (!in) throw std::runtime_error(std::string("cannot read ") + arguments[1]);
    std::ostringstream json;
    json << in.rdbuf();
    std::ofstream out(arguments[2]);
    out << fastweights::report_page(json.str());
    out.close();
    if (!out) throw std::runtime_error(std::string("cannot write ") + arguments[2]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
