#include <cmath>
#include <regex>

#include "fastweights/error.h"
#include "fields.h"
#include "golden.h"
#include "tensor/autograd.h"

namespace fastweights::golden {
namespace {

// dy0 = a*y1*y2 + 0.3 sin(2t); dy1 = b*y0*y2 - 0.2 y1; dy2 = c*y0*y1 - 0.1 y2^3 + 0.1 cos(t)
CountedField rigid_field(GoldenFile& file) {
  CountedField result;
  result.field = [calls = result.calls, abc = file.tensor("in.abc")](const Time& t, const Tensor& y) {
    ++*calls;
    const Tensor time = t.tensor();
    return at::stack({abc[0] * y[1] * y[2] + 0.3 * (2 * time).sin(), abc[1] * y[0] * y[2] - 0.2 * y[1],
                      abc[2] * y[0] * y[1] - 0.1 * y[2].pow(3) + 0.1 * time.cos()},
                     0);
  };
  return result;
}

CountedField jump_field(GoldenFile& file) {
  CountedField result;
  const double jump = file.tensor("in.tj").item<double>();
  result.field = [calls = result.calls, jump](const Time& t, const Tensor& y) {
    ++*calls;
    return -y + (t.value() < jump ? 1.0 : -2.0);
  };
  return result;
}

CountedField system_field(GoldenFile& file) {
  const std::string system = file.text("system");
  if (system == "mlp") return mlp_field(file);
  if (system == "rigid") return rigid_field(file);
  throw std::runtime_error("not understood: system '" + system + "'");
}

// the number behind a word of a variant's description, or NaN
double number_after(const std::string& text, const std::string& word) {
  std::smatch match;
  const std::regex pattern(word + R"([ =]([0-9.]+(?:e[+-]?[0-9]+)?))");
  return std::regex_search(text, match, pattern) ? std::stod(match[1]) : NAN;
}

struct Variant {
  SolveOptions options;
  bool reversed = false;
};

// "loose: rtol 1e-3 atol 1e-5; first_step: rtol 1e-4 atol 1e-6 with initial step 0.2; reverse: t flipped,
// ..."
std::map<std::string, Variant> parse_variants(const GoldenFile& file, const Method& method) {
  const Tableau* tableau = std::get_if<Tableau>(&method);
  const bool adaptive = tableau && tableau->adaptive();
  std::map<std::string, Variant> variants;
  Variant before;
  std::stringstream parts(file.text("variants"));
  for (std::string part; std::getline(parts, part, ';');) {
    const size_t start = part.find_first_not_of(' '), colon = part.find(':');
    if (start == std::string::npos || colon == std::string::npos) continue;
    const std::string name = part.substr(start, colon - start), text = part.substr(colon);
    const bool like_before = text.find("the same") != std::string::npos;
    Variant variant = like_before ? before : Variant{};
    variant.options.method = method;
    variant.options.keep_step_log = true;
    variant.reversed = text.find("flipped") != std::string::npos;
    if (text.find("interp=cubic") != std::string::npos)
      variant.options.interpolation = OutputInterpolation::Cubic;
    const double size = number_after(text, "step_size"), first = number_after(text, "initial step");
    if (adaptive) {
      AdaptiveSteps steps = {.rtol = number_after(text, "rtol"), .atol = number_after(text, "atol")};
      steps.control = ErrorControl::Joint;
      if (!std::isnan(first)) steps.first_step = first;
      variant.options.steps = steps;
    } else if (!std::isnan(size)) {
      variant.options.steps = FixedSteps{size};
    } else if (!like_before) {
      if (text.find("no step_size") == std::string::npos)
        throw std::runtime_error("not understood: variant" + text);
      variant.options.steps = FixedSteps{};
    }
    variants[name] = before = variant;
  }
  return variants;
}

// how far two versions of torchdiffeq, which differ in the order of sums alone, are apart
double version_difference(const GoldenFile& file) {
  if (!file.has_text("difference_between_torchdiffeq_versions")) return 0;
  const std::string text = file.text("difference_between_torchdiffeq_versions");
  const size_t colon = text.rfind(':');
  return colon == std::string::npos ? 0 : std::stod(text.substr(colon + 1));
}

Tensor steps_of(const Solution& solution, bool accepted) {
  std::vector<double> numbers;
  for (const StepRecord& step : solution.step_log) {
    if (step.accepted == accepted) numbers.insert(numbers.end(), {step.t0, step.dt});
  }
  return at::tensor(numbers, at::kDouble).reshape({-1, 2});
}

void check_solution(GoldenFile& file, const std::string& name, const CountedField& field,
                    const Solution& solution, const Method& method, double tolerance) {
  const Tableau* tableau = std::get_if<Tableau>(&method);
  const int order = tableau ? tableau->order : 0;
  if (!solution.status) return file.fail(name + ": " + solution.status.message());
  file.compare(name + ".y", solution.ys, tolerance);
  file.compare_count(name + ".nfe", solution.evaluations);
  if (*field.calls != solution.evaluations) file.fail(name + ": the count of evaluations is wrong");
  *field.calls = 0;
  if (!file.has(name + ".accepted_t0_dt")) return;
  // step sizes come from an error estimate, a sum that nearly cancels: of a loose tolerance's 1e-6 relative
  // to the terms about ten digits remain, but the estimate of a method of order 8 is near rounding level
  // itself
  const double step_tolerance = order >= 8 ? 1e-3 : 1e-6;
  file.compare(name + ".accepted_t0_dt", steps_of(solution, true), step_tolerance);
  file.compare(name + ".rejected_t0_dt", steps_of(solution, false), step_tolerance);
}

void check_jump(GoldenFile& file) {
  CountedField field = jump_field(file);
  const Tensor y0 = file.tensor("in.y0"), ts = file.tensor("in.t"), jump = file.tensor("in.tj").reshape({1});
  for (const std::string& name : file.names("")) {
    if (!name.ends_with(".y")) continue;
    const std::string variant = name.substr(0, name.size() - 2);
    const size_t cut = variant.rfind('_');
    const std::string how = variant.substr(cut + 1);
    SolveOptions options = {.method = torchdiffeq_method(variant.substr(0, cut), file),
                            .keep_step_log = true};
    if (how == "perturb" || how == "noperturb") {
      const std::string grid = "in." + variant.substr(0, cut) + "_grid";
      options.steps = GivenSteps{file.tensor(grid), how == "perturb" ? StageEdges::Inside : StageEdges::AsIs};
    } else {
      AdaptiveSteps steps = {
          .rtol = file.number("rtol"), .atol = file.number("atol"), .control = ErrorControl::Joint};
      if (how == "jump") steps.jump_times = jump;
      if (how == "step") steps.stop_times = jump;
      if (how != "jump" && how != "step" && how != "plain")
        throw std::runtime_error("not understood: " + variant);
      options.steps = steps;
    }
    // a step across a jump that nobody named turns the noise of step sizes into noise of the solution
    const double tolerance = how == "plain" ? 1e-9 : kRounding;
    check_solution(file, variant, field, solve(field.field, y0, ts, options), options.method, tolerance);
  }
}

}  // namespace

void check_solvers(GoldenFile& file) {
  const at::NoGradGuard no_grad;
  if (file.has("in.tj")) return check_jump(file);
  CountedField field = system_field(file);
  const Tensor y0 = file.tensor("in.y0"), ts = file.tensor("in.t");
  const Method method = torchdiffeq_method(file.text("method"), file);
  const double tolerance = std::max(noise_of_solutions(method), 10 * version_difference(file));
  for (const auto& [name, variant] : parse_variants(file, method)) {
    if (!file.has(name + ".y")) continue;  // described, but too slow for this method
    const Tensor times = variant.reversed ? ts.flip(0) : ts;
    check_solution(file, name, field, solve(field.field, y0, times, variant.options), method, tolerance);
  }
}

}  // namespace fastweights::golden
