#include "fastweights/tableau.h"

#include <algorithm>

#include "base/error.h"

namespace fastweights {
namespace {

// the stages without error estimate and middle, from which the methods below start
Tableau explicit_method(std::string name, int order, std::vector<double> c,
                        std::vector<std::vector<double>> a, std::vector<double> b) {
  return {.name = std::move(name),
          .order = order,
          .controller_order = 0,
          .c = std::move(c),
          .a = std::move(a),
          .b = std::move(b),
          .b_error = {},
          .mid = {}};
}

// the shared stages of both forms of Tsitouras' method
Tableau tsitouras_stages(std::string name, int order, std::vector<double> b) {
  Tableau t = explicit_method(
      std::move(name), order, {0, 0.161, 0.327, 0.9, 0.9800255409045097, 1, 1},
      {{},
       {0.161},
       {-0.008480655492356989, 0.335480655492357},
       {2.8971530571054935, -6.359448489975075, 4.3622954328695815},
       {5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525},
       {5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383},
       {0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081,
        2.324710524099774}},
      std::move(b));
  t.controller_order = 5;
  t.b_error = {-0.0017800110522257714, -0.0008164344596567469, 0.007880878010261995, -0.1447110071732629,
               0.5823571654525552,     -0.45808210592918697,   0.015151515151515152};
  t.mid = {0.10741235230100377, 0.01135625,          0.39560903056045305, -0.34475214352593553,
           1.3161853649581645,  -1.0170608542936508, 0.031249999999999993};
  return t;
}

// integral over [0, 1] of the Lagrange polynomials that are 1 at one node and 0 at the others;
// the products of whole numbers are exact in double up to order 12
std::vector<double> lagrange_integrals(const std::vector<int>& nodes) {
  std::vector<double> weights;
  for (int node : nodes) {
    std::vector<double> polynomial = {1};  // coefficients by rising power of s
    double denominator = 1;
    for (int other : nodes) {
      if (other == node) continue;
      denominator *= node - other;
      std::vector<double> product(polynomial.size() + 1, 0.0);
      for (size_t i = 0; i < polynomial.size(); ++i) {
        product[i + 1] += polynomial[i];
        product[i] -= other * polynomial[i];
      }
      polynomial = std::move(product);
    }
    double integral = 0;
    for (size_t i = 0; i < polynomial.size(); ++i) integral += polynomial[i] / static_cast<double>(i + 1);
    weights.push_back(integral / denominator);
  }
  return weights;
}

std::vector<int> falling_nodes(int first, int count) {
  std::vector<int> nodes(count);
  for (int i = 0; i < count; ++i) nodes[i] = first - i;
  return nodes;
}

}  // namespace

bool Tableau::reuses_last_slope() const {
  const std::vector<double>& last = a.back();
  return c.back() == 1 && b.back() == 0 && stages() > 1 && std::equal(last.begin(), last.end(), b.begin());
}

Tableau euler() { return explicit_method("euler", 1, {0}, {{}}, {1}); }

Tableau midpoint() { return explicit_method("midpoint", 2, {0, 0.5}, {{}, {0.5}}, {0, 1}); }

Tableau heun2() { return explicit_method("heun2", 2, {0, 1}, {{}, {1}}, {0.5, 0.5}); }

Tableau heun3() {
  return explicit_method("heun3", 3, {0, 1.0 / 3, 2.0 / 3}, {{}, {1.0 / 3}, {0, 2.0 / 3}}, {0.25, 0, 0.75});
}

Tableau rk4() {
  return explicit_method("rk4", 4, {0, 1.0 / 3, 2.0 / 3, 1}, {{}, {1.0 / 3}, {-1.0 / 3, 1}, {1, -1, 1}},
                         {0.125, 0.375, 0.375, 0.125});
}

Tableau rk4_classic() {
  return explicit_method("rk4_classic", 4, {0, 0.5, 0.5, 1}, {{}, {0.5}, {0, 0.5}, {0, 0, 1}},
                         {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6});
}

Tableau bosh3() {
  Tableau t =
      explicit_method("bosh3", 3, {0, 0.5, 0.75, 1}, {{}, {0.5}, {0, 0.75}, {2.0 / 9, 1.0 / 3, 4.0 / 9}},
                      {2.0 / 9, 1.0 / 3, 4.0 / 9, 0});
  t.controller_order = 3;
  t.b_error = {2.0 / 9 - 7.0 / 24, 1.0 / 3 - 1.0 / 4, 4.0 / 9 - 1.0 / 3, -1.0 / 8};
  t.mid = {0, 0.5, 0, 0};
  return t;
}

Tableau dopri5() {
  Tableau t = explicit_method("dopri5", 5, {0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1},
                              {{},
                               {1.0 / 5},
                               {3.0 / 40, 9.0 / 40},
                               {44.0 / 45, -56.0 / 15, 32.0 / 9},
                               {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
                               {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
                               {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}},
                              {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84, 0});
  t.controller_order = 5;
  t.b_error = {35.0 / 384 - 1951.0 / 21600,
               0,
               500.0 / 1113 - 22642.0 / 50085,
               125.0 / 192 - 451.0 / 720,
               -2187.0 / 6784 + 12231.0 / 42400,
               11.0 / 84 - 649.0 / 6300,
               -1.0 / 60};
  // middle of the step after Shampine (1986)
  t.mid = {0.10013431883002395, 0,
           0.3918321794184259,  -0.02982460176594817,
           0.05893268337240795, -0.04497888809104361,
           0.023904308236133973};
  return t;
}

Tableau tsit5() {
  Tableau t = tsitouras_stages("tsit5", 5, {});
  t.b = t.a.back();
  t.b.push_back(0);
  return t;
}

Tableau tsit5_torchdiffeq() {
  return tsitouras_stages("tsit5_torchdiffeq", 4,
                          {0.09468075576583945, 0.009183565540343254, 0.4877705284247616, 1.234297566930479,
                           -2.7077123499835256, 1.866628418170587, 0.015151515151515152});
}

Tableau dopri8() {
  // the 13-stage pair of Prince and Dormand (1981) with one more stage at the new solution
  Tableau t = explicit_method(
      "dopri8", 8,
      {0, 1.0 / 18, 1.0 / 12, 0.125, 0.3125, 0.375, 0.1475, 0.465, 0.5648654513822595, 0.65,
       0.9246562776405044, 1, 1, 1},
      {{},
       {1.0 / 18},
       {1.0 / 48, 0.0625},
       {0.03125, 0, 0.09375},
       {0.3125, 0, -1.171875, 1.171875},
       {0.0375, 0, 0, 0.1875, 0.15},
       {0.04791013711111111, 0, 0, 0.11224871277777777, -0.02550567377777778, 0.012846823888888888},
       {0.01691798978729228, 0, 0, 0.3878482784860432, 0.03597736985150033, 0.19697021421566607,
        -0.17271385234050185},
       {0.0690957533591923, 0, 0, -0.6342479767288541, -0.16119757522460407, 0.13865030945882525,
        0.9409286140357562, 0.21163632648194397},
       {0.1835569968390454, 0, 0, -2.4687680843155926, -0.29128688781630047, -0.026473020233117376,
        2.8478387641928005, 0.2813873314698498, 0.12374489986331466},
       {-1.2154248173958881, 0, 0, 16.672608665945774, 0.915741828416818, -6.056605804357471,
        -16.00357359415618, 14.849303086297663, -13.371575735289849, 5.134182648179638},
       {0.25886091643826425, 0, 0, -4.774485785489205, -0.4350930137770325, -3.0494833320722416,
        5.5779200399360995, 6.15583158986104, -5.062104586736939, 2.193926173180679, 0.13462799865933495},
       {0.8224275996265075, 0, 0, -11.658673257277664, -0.7576221166909362, 0.7139735881595816,
        12.075774986890057, -2.127659113920403, 1.9901662070489554, -0.23428647154404028, 0.17589857770794226,
        0},
       {0.041747491141530244, 0, 0, 0, 0, -0.05545232861123931, 0.2393128072011801, 0.703510669403443,
        -0.7597596138144609, 0.6605630309222863, 0.15818748251012332, -0.2381095387528628, 0.25}},
      {});
  t.b = t.a.back();
  t.b.push_back(0);
  t.controller_order = 8;
  t.b_error = {0.012194277465176744,
               0,
               0,
               0,
               0,
               0.7731539478765578,
               -0.07192809284993823,
               -1.763834521196444,
               1.787182038027448,
               -0.7829855527544889,
               0.07877188662899604,
               -0.28255398319730723,
               0.25,
               0};
  t.mid = {0.04103130360739393,
           0,
           0,
           0,
           0,
           0.05100562801991382,
           0.2388930677412202,
           0.3096870143996103,
           -0.2172325471755352,
           0.07833405679331928,
           -0.0018614369715579948,
           0.007072844202678841,
           0.00690847373200576,
           -0.013838404349047373};
  return t;
}

Tableau fehlberg2() {
  Tableau t = explicit_method("fehlberg2", 2, {0, 0.5, 1}, {{}, {0.5}, {1.0 / 256, 255.0 / 256}},
                              {1.0 / 512, 255.0 / 256, 1.0 / 512});
  t.controller_order = 2;
  t.b_error = {-1.0 / 512, 0, 1.0 / 512};
  t.mid = {0, 0.5, 0};
  return t;
}

Tableau adaptive_heun() {
  Tableau t = explicit_method("adaptive_heun", 2, {0, 1}, {{}, {1}}, {0.5, 0.5});
  t.controller_order = 2;
  t.b_error = {0.5, -0.5};
  t.mid = {0.5, 0};
  return t;
}

const std::vector<Tableau>& all_tableaux() {
  static const std::vector<Tableau> kTableaux = {
      euler(), midpoint(),          heun2(),  heun3(),     rk4(),          rk4_classic(), bosh3(), dopri5(),
      tsit5(), tsit5_torchdiffeq(), dopri8(), fehlberg2(), adaptive_heun()};
  return kTableaux;
}

const Tableau& tableau(std::string_view name) {
  std::string known;
  for (const Tableau& t : all_tableaux()) {
    if (t.name == name) return t;
    known += (known.empty() ? "" : ", ") + t.name;
  }
  throw std::invalid_argument(message("[tableau] unknown method '", name, "'; expected one of ", known));
}

std::vector<double> adams_bashforth(int order) {
  FW_CHECK(order >= 1 && order <= 12, "[adams_bashforth] order must be 1 to 12, got ", order);
  return lagrange_integrals(falling_nodes(0, order));
}

std::vector<double> adams_moulton(int order) {
  FW_CHECK(order >= 1 && order <= 12, "[adams_moulton] order must be 1 to 12, got ", order);
  return lagrange_integrals(falling_nodes(1, order));
}

}  // namespace fastweights
