#include "base/nearest.h"

#include <gtest/gtest.h>

namespace fastweights {
namespace {

TEST(Nearest, AWordItselfIsNearest) { EXPECT_EQ(nearest("oja", {"hebb", "oja_softmax", "oja"}), "oja"); }

TEST(Nearest, InsertedDeletedReplacedAndSwappedLettersAreFound) {
  const std::vector<std::string> words = {"natural_cubic", "hermite_cubic", "linear", "hold"};
  EXPECT_EQ(nearest("linnear", words), "linear");
  EXPECT_EQ(nearest("linar", words), "linear");
  EXPECT_EQ(nearest("linaer", words), "linear");
  EXPECT_EQ(nearest("natural cubic", words), "natural_cubic");
  EXPECT_EQ(nearest("hermitecubic", words), "hermite_cubic");
  EXPECT_EQ(nearest("cold", words), "hold");
}

// of five letters one may change
TEST(Nearest, SwappedNeighboursAreOneChange) {
  EXPECT_EQ(nearest("trian", {"bench", "train"}), "train");
  EXPECT_EQ(nearest("inof", {"list", "info"}), "info");
  EXPECT_EQ(nearest("niart", {"bench", "train"}), "");
}

// one letter off, not the same beginning
TEST(Nearest, TheNumberOfChangesDecides) { EXPECT_EQ(nearest("abcd", {"abxyz", "xbcd"}), "xbcd"); }

TEST(Nearest, TheFirstOfSeveralIsTaken) {
  EXPECT_EQ(nearest("b", {"a", "c"}), "a");
  EXPECT_EQ(nearest("b", {"c", "a"}), "c");
}

TEST(Nearest, NothingComesFromNothing) {
  EXPECT_EQ(nearest("oja", {}), "");
  EXPECT_EQ(nearest("", {"long", "ab"}), "");
  EXPECT_EQ(nearest("oja", {""}), "");
}

TEST(Nearest, WordsThatAreFarAreNotSuggested) {
  EXPECT_EQ(nearest("id", {"time", "hand_l_x", "hand_l_y"}), "");
  EXPECT_EQ(nearest("rocket", {"ncde", "gru", "delta-cde"}), "");
  EXPECT_EQ(nearest("outcome", {"time", "label"}), "");
}

TEST(Nearest, APartOfAWordIsNear) {
  EXPECT_EQ(nearest("rocket", {"ncde", "minirocket"}), "minirocket");
  EXPECT_EQ(nearest("decaying_hebb", {"oja", "hebb"}), "hebb");
  // two letters are in many words
  EXPECT_EQ(nearest("id", {"hidden_size"}), "");
}

TEST(Nearest, CapitalLettersAreLetters) { EXPECT_EQ(nearest("id", {"time", "ID"}), "ID"); }

TEST(Nearest, ASuggestionOrAListEndsAnError) {
  EXPECT_EQ(suggestion("linar", {"linear", "hold"}), "; the nearest is 'linear'");
  EXPECT_EQ(suggestion("zzzz", {"linear", "hold"}), "; expected one of 'linear', 'hold'");
  EXPECT_EQ(suggestion("zzzz", std::vector<std::string>(11, "linear")), "");
}

}  // namespace
}  // namespace fastweights
