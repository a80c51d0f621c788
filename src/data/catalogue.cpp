#include "data/download.h"

#include <algorithm>
#include <stdexcept>

#include "base/nearest.h"
#include "fastweights/data.h"

namespace fastweights::data {
namespace {

KnownSet uea(const std::string& name, const std::string& sentence) {
  const std::string site = "https://www.timeseriesclassification.com/";
  return {.name = name,
          .sentence = sentence,
          .license = "unknown; see the page",
          .page = site + "description.php?Dataset=" + name,
          .files = {{.address = site + "aeon-toolkit/" + name + ".zip"}}};
}

std::vector<KnownSet> physionet() {
  const std::string older = "https://physionet.org/files/challenge-2012/1.0.0/";
  const std::string newer = "https://archive.physionet.org/users/shared/challenge-2019/";
  return {{.name = "physionet2012",
           .sentence = "intensive care, 37 parameters at irregular times; death in hospital",
           .license = "Open Data Commons Attribution License v1.0",
           .page = "https://physionet.org/content/challenge-2012/1.0.0/",
           .files = {{.address = older + "set-a.tar.gz"},
                     {.address = older + "set-b.tar.gz"},
                     {.address = older + "set-c.tar.gz"},
                     {.address = older + "Outcomes-a.txt"},
                     {.address = older + "Outcomes-b.txt"},
                     {.address = older + "Outcomes-c.txt"}}},
          {.name = "physionet2019",
           .sentence = "intensive care, 34 parameters every hour; sepsis",
           .license = "Creative Commons Attribution 4.0",
           .page = "https://physionet.org/content/challenge-2019/1.0.0/",
           .files = {{.address = newer + "training_setA.zip"}, {.address = newer + "training_setB.zip"}}}};
}

// checksums from the sources of torchaudio, sizes as reported by others
std::vector<KnownSet> speech() {
  const std::string folder = "https://storage.googleapis.com/download.tensorflow.org/data/";
  const KnownSet common = {.license = "Creative Commons Attribution 4.0",
                           .page = "https://arxiv.org/abs/1804.03209"};
  KnownSet first = common, second = common;
  first.name = "speech_commands_v0.01";
  first.sentence = "65,000 spoken words of one second, 30 different ones";
  first.files = {{.address = folder + "speech_commands_v0.01.tar.gz",
                  .size = 1'489'096'277,
                  .sha256 = "743935421bb51cccdb6bdd152e04c5c70274e935c82119ad7faeec31780d811d"}};
  second.name = "speech_commands_v0.02";
  second.sentence =
      "105,829 spoken words of one second, 35 different ones; ten of them are the published task";
  second.files = {{.address = folder + "speech_commands_v0.02.tar.gz",
                   .size = 2'428'923'189,
                   .sha256 = "af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58"}};
  return {first, second};
}

std::vector<KnownSet> all_sets() {
  std::vector<KnownSet> sets = {
      uea("ArticularyWordRecognition", "sensors on lips and tongue, 9 channels of 144 steps, 25 words"),
      uea("AtrialFibrillation", "electrocardiograms, 2 channels of 640 steps, 3 classes"),
      uea("BasicMotions", "a watch on the wrist, 6 channels of 100 steps, 4 motions"),
      uea("CharacterTrajectories", "a pen on a tablet, 3 channels of up to 182 steps, 20 letters"),
      uea("EigenWorms", "movement of worms, 6 channels of 17,984 steps, 5 strains; 128 + 131 series"),
      uea("Epilepsy", "acceleration of a wrist, 3 channels of 206 steps, 4 activities"),
      uea("ERing", "a ring that senses fingers, 4 channels of 65 steps, 6 gestures"),
      uea("FingerMovements", "electroencephalograms, 28 channels of 50 steps, left or right hand"),
      uea("JapaneseVowels", "spoken vowels, 12 channels of 7 to 29 steps, 9 speakers"),
      uea("Libras", "hand movements of a sign language, 2 channels of 45 steps, 15 signs"),
      uea("LSST", "simulated brightness of stars, 6 channels of 36 steps, 14 classes"),
      uea("PenDigits", "a pen on a tablet, 2 channels of 8 steps, 10 digits"),
      uea("StandWalkJump", "electrocardiograms, 4 channels of 2,500 steps, 3 activities"),
      uea("Worms", "movement of worms, 1 channel of 900 steps, 5 strains"),
      uea("WormsTwoClass", "movement of worms, 1 channel of 900 steps, wild or mutant")};
  for (const std::vector<KnownSet>& more : {physionet(), speech()})
    sets.insert(sets.end(), more.begin(), more.end());
  std::sort(sets.begin(), sets.end(), [](const KnownSet& a, const KnownSet& b) { return a.name < b.name; });
  return sets;
}

}  // namespace

const std::vector<KnownSet>& catalogue() {
  static const std::vector<KnownSet> kSets = all_sets();
  return kSets;
}

const KnownSet& known_set(const std::string& name) {
  std::vector<std::string> names;
  for (const KnownSet& set : catalogue()) {
    if (set.name == name) return set;
    names.push_back(set.name);
  }
  throw std::invalid_argument("unknown data set '" + name + "'" + suggestion(name, names));
}

}  // namespace fastweights::data

namespace fastweights {

std::vector<std::pair<std::string, std::string>> known_sets() {
  std::vector<std::pair<std::string, std::string>> sets;
  for (const data::KnownSet& set : data::catalogue()) sets.emplace_back(set.name, set.sentence);
  return sets;
}

}  // namespace fastweights
