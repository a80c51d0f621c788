# Writes text files as strings into a C++ source:
#   cmake -DOUTPUT=page_text.cpp "-DFILES=page.html,page.css" -DFOLDER=src/report -P embed.cmake
# The function page_text(name) of report/page_text.h finds them there.
set(entries "")
string(REPLACE "," ";" names "${FILES}")
foreach(name IN LISTS names)
  file(READ "${FOLDER}/${name}" text)
  string(FIND "${text}" ")embedded\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${name} has the mark that ends a string")
  endif()
  string(APPEND entries "  if (name == \"${name}\") return R\"embedded(${text})embedded\";\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"report/page_text.h\"

#include <stdexcept>

namespace fastweights {

std::string_view page_text(std::string_view name) {
${entries}  throw std::logic_error(\"there is no embedded file \" + std::string(name));
}

}  // namespace fastweights
")
