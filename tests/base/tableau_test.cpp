#include "fastweights/tableau.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace fastweights {
namespace {

// sum_i weights_i c_i^power
double moment(const std::vector<double>& weights, const std::vector<double>& c, int power) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) sum += weights[i] * std::pow(c[i], power);
  return sum;
}

TEST(Tableau, RowsAddUpToTheirTimes) {
  for (const Tableau& t : all_tableaux()) {
    for (int i = 0; i < t.stages(); ++i) {
      double sum = 0;
      for (double a : t.a[i]) sum += a;
      EXPECT_NEAR(sum, t.c[i], 1e-13) << t.name << " stage " << i;
      EXPECT_EQ(t.a[i].size(), static_cast<size_t>(i)) << t.name;
    }
  }
}

TEST(Tableau, WeightsIntegratePowersUpToTheOrder) {
  for (const Tableau& t : all_tableaux()) {
    for (int power = 0; power < t.order; ++power) {
      EXPECT_NEAR(moment(t.b, t.c, power), 1.0 / (power + 1), 1e-13) << t.name << " power " << power;
    }
  }
}

TEST(Tableau, ErrorWeightsVanishOnConstants) {
  for (const Tableau& t : all_tableaux()) {
    if (t.adaptive()) {
      EXPECT_NEAR(moment(t.b_error, t.c, 0), 0, 1e-13) << t.name;
    }
  }
}

TEST(Tableau, MiddleWeightsReachTheMiddle) {
  for (const Tableau& t : all_tableaux()) {
    if (!t.mid.empty()) {
      EXPECT_NEAR(moment(t.mid, t.c, 0), 0.5, 1e-12) << t.name;
    }
  }
}

TEST(Tableau, UnknownNameListsTheKnownOnes) {
  try {
    tableau("rk5");
    FAIL() << "no error";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("'rk5'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("dopri5"), std::string::npos);
  }
}

// the coefficients of torchdiffeq, as its own files have them
TEST(Tableau, AgreesWithTorchdiffeq) {
  std::ifstream in(std::string(FASTWEIGHTS_GOLDEN_DEFAULT) + "/tableaux.json");
  ASSERT_TRUE(in) << "tests/golden/tableaux.json is missing";
  const nlohmann::json golden = nlohmann::json::parse(in);
  const auto same = [](const std::vector<double>& ours, const std::vector<double>& theirs,
                       const std::string& what) {
    ASSERT_EQ(ours.size(), theirs.size()) << what;
    for (size_t i = 0; i < ours.size(); ++i)
      EXPECT_NEAR(ours[i], theirs[i], 2e-15 * std::max(1.0, std::abs(theirs[i]))) << what;
  };
  for (const char* name : {"dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun", "tsit5"}) {
    const Tableau& ours = tableau(std::string(name) == "tsit5" ? "tsit5_torchdiffeq" : name);
    const nlohmann::json& theirs = golden[name];
    EXPECT_EQ(ours.controller_order, theirs["order"].get<int>()) << name;
    same({ours.c.begin() + 1, ours.c.end()}, theirs["c"], std::string(name) + " c");
    same(ours.b, theirs["b"], std::string(name) + " b");
    same(ours.b_error, theirs["b_error"], std::string(name) + " b_error");
    same(ours.mid, theirs["mid"], std::string(name) + " mid");
    for (int i = 1; i < ours.stages(); ++i) same(ours.a[i], theirs["a"][i - 1], std::string(name) + " a");
  }
  for (int order = 1; order <= 12; ++order) {
    const std::vector<double> bashforth = golden["adams"]["bashforth_divisor"][order];
    const std::vector<double> moulton = golden["adams"]["moulton_divisor"][order];
    same(adams_bashforth(order), bashforth, "Bashforth " + std::to_string(order));
    // torchdiffeq's entry of order 1 has a wrong divisor, which it never uses
    if (order > 1) same(adams_moulton(order), moulton, "Moulton " + std::to_string(order));
  }
}

}  // namespace
}  // namespace fastweights
