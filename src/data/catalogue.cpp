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

// sizes and checksums from public programs that download these files and compare them; docs/data_sets.md
std::vector<KnownSet> physionet() {
  const std::string older = "https://physionet.org/files/challenge-2012/1.0.0/";
  const std::string newer = "https://archive.physionet.org/users/shared/challenge-2019/";
  return {{.name = "physionet2012",
           .sentence = "intensive care, 37 parameters at irregular times; death in hospital",
           .license = "Open Data Commons Attribution License v1.0",
           .page = "https://physionet.org/content/challenge-2012/1.0.0/",
           .files = {{.address = older + "set-a.tar.gz",
                      .size = 6'632'372,
                      .sha256 = "8cb250f179cd0952b4b9ebcf8954b63d70383131670fac1cfee13deaa13ca920"},
                     {.address = older + "set-b.tar.gz",
                      .size = 6'652'690,
                      .sha256 = "b1637a2a423a8e76f8f087896cfc5fdf28f88519e1f4e874fbda69b2a64dac30"},
                     {.address = older + "set-c.tar.gz",
                      .size = 6'600'293,
                      .sha256 = "a4a56b95bcee4d50a3874fe298bf2998f2ed0dd98a676579573dc10419329ee1"},
                     {.address = older + "Outcomes-a.txt",
                      .size = 79'219,
                      .sha256 = "2613ea60ccda29f87571a7d6b09ad130858a8ccd66325bd073365925026883c2"},
                     {.address = older + "Outcomes-b.txt",
                      .size = 79'149,
                      .sha256 = "1305f29734da374a809483229a99f33a9230aa8d4fa74b1a2d6ad788136423d5"},
                     {.address = older + "Outcomes-c.txt",
                      .size = 79'191,
                      .sha256 = "0b32dcb7753c0f18f2f5fde498a28618b8879c5e527ce0dae8ad120dd7e205c9"}}},
          {.name = "physionet2019",
           .sentence = "intensive care, 34 parameters every hour; sepsis",
           .license = "Creative Commons Attribution 4.0",
           .page = "https://physionet.org/content/challenge-2019/1.0.0/",
           .files = {{.address = newer + "training_setA.zip",
                      .size = 22'991'842,
                      .sha256 = "c0def317798312e4facc0f33ac0202b3a34f412052d9096e8b122b4d3ecb7935"},
                     {.address = newer + "training_setB.zip",
                      .size = 20'000'482,
                      .sha256 = "8a88d69a5f64bc9a87d869f527fcc2741c0712cb9a7cb1f5cdcb725336b4c8cc"}}}};
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
