#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fastweights {

/// An explicit Runge-Kutta method as data. With slopes k_i = f(t + c_i dt, y + dt sum_j a_ij k_j),
/// one step is y + dt sum_i b_i k_i.
struct Tableau {
  std::string name;
  int order;              ///< of the solution that is advanced
  int controller_order;   ///< exponent 1/order of the step size controller; 0 without an error estimate
  std::vector<double> c;  ///< [stages], c[0] = 0
  std::vector<std::vector<double>> a;  ///< [stages][i], strictly lower triangular
  std::vector<double> b;               ///< [stages]
  std::vector<double> b_error;         ///< [stages], weights of the error estimate, or empty
  std::vector<double> mid;  ///< [stages], weights of the solution in the middle of the step, or empty

  int stages() const { return static_cast<int>(b.size()); }
  bool adaptive() const { return !b_error.empty(); }
  /// First same as last: the last stage is evaluated at the new solution, so its slope is the first slope of
  /// the next step.
  bool reuses_last_slope() const;
  bool operator==(const Tableau&) const = default;
};

Tableau euler();
Tableau midpoint();
Tableau heun2();
Tableau heun3();
Tableau rk4();          ///< Kutta's 3/8 rule, called rk4 as in torchdiffeq
Tableau rk4_classic();  ///< the textbook method with two stages in the middle
Tableau bosh3();
Tableau dopri5();
Tableau tsit5();              ///< advances the solution of order 5, as in Tsitouras (2011)
Tableau tsit5_torchdiffeq();  ///< torchdiffeq's form, which advances the embedded solution of order 4
Tableau dopri8();
Tableau fehlberg2();
Tableau adaptive_heun();

/// Every tableau above, in that order.
const std::vector<Tableau>& all_tableaux();

/// The tableau with this name; an unknown name is an error that lists the known ones.
const Tableau& tableau(std::string_view name);

/// Adams-Bashforth weights b_j of the newest to the oldest slope: y_1 = y_0 + dt sum_j b_j f_(-j).
std::vector<double> adams_bashforth(int order);

/// Adams-Moulton weights, the first one for the slope at the end of the step.
std::vector<double> adams_moulton(int order);

}  // namespace fastweights
