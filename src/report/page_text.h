#pragma once

#include <string>
#include <string_view>

namespace fastweights {

/// A file of this folder, as it was when the library was built: "page.html", "page.css", "page.js" and so on.
std::string_view page_text(std::string_view name);

}  // namespace fastweights
