#include "train/calibration_json.h"

#include <algorithm>
#include <cmath>

namespace fastweights {

Json calibration_json(const Calibration& c) {
  Json json = {{"scale", c.scale}};
  // names that earlier versions do not know stand only where they say something
  if (c.power != 0) json.update({{"power", c.power}, {"typical", c.typical}});
  json["bias"] = c.bias;
  return json;
}

Calibration calibration_from(const Json& json) {
  Calibration c = {.scale = json.at("scale").get<double>(),
                   .bias = json.at("bias").get<std::vector<double>>()};
  if (json.contains("power")) {
    c.power = json.at("power").get<double>();
    c.typical = json.at("typical").get<double>();
  }
  return c;
}

bool fits_outputs(const Calibration& c, int64_t outputs) {
  const auto finite = [](double x) { return std::isfinite(x); };
  return c.scale > 0 && c.power > -1 && c.typical > 0 && finite(c.scale) && finite(c.power) &&
         finite(c.typical) && (c.bias.empty() || c.bias.size() == static_cast<size_t>(outputs)) &&
         std::all_of(c.bias.begin(), c.bias.end(), finite);
}

}  // namespace fastweights
