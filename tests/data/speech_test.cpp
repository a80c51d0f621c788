#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "base/random.h"
#include "data/mfcc.h"
#include "data/readers.h"
#include "data/scratch_folder.h"
#include "support/support.h"

namespace fastweights::data {
namespace {

using testing::error_message;
using testing::ScratchFolder;

// the definition, formula by formula, with every band and every bin written out
std::vector<double> slow_mfcc(const std::vector<double>& wave) {
  const double pi = std::numbers::pi;
  const int samples = static_cast<int>(wave.size());
  const auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  std::vector<double> result;
  for (int frame = 0; frame <= samples / 100; ++frame) {
    std::vector<double> power(101);
    for (int k = 0; k <= 100; ++k) {
      std::complex<double> sum = 0;
      for (int n = 0; n < 200; ++n) {
        int at = frame * 100 + n - 100;
        if (at < 0) at = -at;
        if (at > samples - 1) at = 2 * (samples - 1) - at;
        const double hann = std::pow(std::sin(pi * n / 200), 2);
        sum += hann * wave[static_cast<size_t>(at)] * std::polar(1.0, -2 * pi * k * n / 200);
      }
      power[static_cast<size_t>(k)] = std::norm(sum);
    }
    std::vector<double> levels(64);
    for (int b = 0; b < 64; ++b) {
      // edges in Hz
      const auto edge = [&](int i) { return 700 * (std::pow(10.0, mel(8000) / 65 * i / 2595) - 1); };
      double energy = 0;
      for (int k = 0; k <= 100; ++k) {
        const double up = (80.0 * k - edge(b)) / (edge(b + 1) - edge(b));
        const double down = (edge(b + 2) - 80.0 * k) / (edge(b + 2) - edge(b + 1));
        energy += std::max(0.0, std::min(up, down)) * power[static_cast<size_t>(k)];
      }
      levels[static_cast<size_t>(b)] = std::log(energy + 1e-6);
    }
    for (int c = 0; c < 20; ++c) {
      double sum = 0;
      for (int b = 0; b < 64; ++b)
        sum += levels[static_cast<size_t>(b)] * std::cos(pi * c * (2 * b + 1) / 128);
      result.push_back(sum * std::sqrt(c == 0 ? 1.0 / 64 : 2.0 / 64));
    }
  }
  return result;
}

std::vector<double> noise(size_t samples, uint64_t seed) {
  Random random(seed);
  std::vector<double> wave(samples);
  for (double& x : wave) x = std::floor(random.uniform(-8000, 8000)) / 32768;
  return wave;
}

TEST(SpeechMfcc, AgreesWithTheDefinition) {
  for (const size_t samples : {101u, 555u, 1000u}) {
    const std::vector<double> wave = noise(samples, samples);
    const std::vector<double> got = Mfcc(16000)(wave), expected = slow_mfcc(wave);
    ASSERT_EQ(got.size(), expected.size());
    // sums of 200 products in double; the logarithm is far from its offset for noise
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-9) << i;
  }
}

TEST(SpeechMfcc, SilenceIsTheOffsetAndNothingElse) {
  const std::vector<double> got = Mfcc(16000)(std::vector<double>(300));
  ASSERT_EQ(got.size(), 80u);
  // all levels are log 1e-6: only the constant of the DCT is left, 64 / sqrt 64 of it
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], i % 20 == 0 ? 8 * std::log(1e-6) : 0, 1e-12);
}

TEST(SpeechMfcc, TooShortWavesAreRefused) {
  EXPECT_EQ(error_message([] { Mfcc(16000)(std::vector<double>(100)); }),
            "[mfcc] expected more than 100 samples, got 100");
}

// a RIFF file of 16-bit samples
std::string wav(const std::vector<double>& wave, uint32_t rate = 16000, uint16_t channels = 1) {
  const auto bytes = [](uint64_t x, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += static_cast<char>(x >> 8 * i & 0xff);
    return text;
  };
  std::string data;
  for (const double x : wave) data += bytes(static_cast<uint64_t>(static_cast<int64_t>(x * 32768)), 2);
  return "RIFF" + bytes(36 + data.size(), 4) + "WAVEfmt " + bytes(16, 4) + bytes(1, 2) + bytes(channels, 2) +
         bytes(rate, 4) + bytes(rate * 2u * channels, 4) + bytes(2u * channels, 2) + bytes(16, 2) + "data" +
         bytes(data.size(), 4) + data;
}

class Speech : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string file = folder_.write("probe/a/x.wav", wav(noise(16000, 1)));
    if (error_message<std::runtime_error>([&] {
          read_speech(folder_.path("probe"), {});
        }).find("this build") != std::string::npos)
      GTEST_SKIP() << "built without libsndfile";
    std::filesystem::remove_all(folder_.path("probe"));
  }
  void clip(const std::string& name, size_t samples = 16000) {
    folder_.write(name + ".wav", wav(noise(samples, name.size())));
  }
  std::string error() {
    return error_message<std::runtime_error>([&] { read_speech(folder_.path(), {}); });
  }
  ScratchFolder folder_;
};

TEST_F(Speech, ClipsBecomeCoefficients) {
  clip("cat/004ae714_nohash_0");
  const DataSet data = read_speech(folder_.path(), {});
  EXPECT_EQ(data.rows(), 161);
  EXPECT_EQ(data.channels(), 20);
  EXPECT_EQ(data.times[160], 160);
  EXPECT_EQ(data.values, Mfcc(16000)(noise(16000, 21)));
  EXPECT_EQ(data.groups, std::vector<std::string>{"004ae714"});
  EXPECT_EQ(data.ids, std::vector<std::string>{"cat/004ae714_nohash_0.wav"});
}

TEST_F(Speech, TheWaveItselfHasTimesInSeconds) {
  clip("cat/004ae714_nohash_0");
  const DataSet data = read_speech(folder_.path(), {.speech = SpeechForm::Wave});
  EXPECT_EQ(data.values, noise(16000, 21));
  EXPECT_EQ(data.head.channels, std::vector<std::string>{"wave"});
  EXPECT_EQ(data.head.time_unit, "second");
  EXPECT_EQ(data.times[8000], 0.5);
}

TEST_F(Speech, TheTenWordsHaveTheirPublishedOrder) {
  for (const char* word : {"down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes"})
    clip(std::string(word) + "/a_nohash_0");
  const DataSet data = read_speech(folder_.path(), {});
  EXPECT_EQ(data.head.classes, (std::vector<std::string>{"yes", "no", "up", "down", "left", "right", "on",
                                                         "off", "stop", "go"}));
  // files come in alphabetical order: down, go, ...
  EXPECT_EQ(data.labels, (std::vector<int64_t>{3, 9, 4, 1, 7, 6, 5, 8, 2, 0}));
}

TEST_F(Speech, OtherWordsAreAlphabeticalAndBackgroundNoiseIsNone) {
  clip("tree/a_nohash_0");
  clip("bed/a_nohash_0");
  clip("_background_noise_/tap", 500);
  const DataSet data = read_speech(folder_.path(), {});
  EXPECT_EQ(data.head.classes, (std::vector<std::string>{"bed", "tree"}));
  EXPECT_EQ(data.samples(), 2);
  EXPECT_TRUE(data.head.skipped.empty());
}

TEST_F(Speech, ListsTellTheParts) {
  for (const char* name : {"bed/a_nohash_0", "bed/b_nohash_0", "bed/c_nohash_0"}) clip(name);
  EXPECT_EQ(read_speech(folder_.path(), {}).parts, std::vector<Part>(3, Part::Any));
  folder_.write("testing_list.txt", "bed/b_nohash_0.wav\ncat/of_another_set.wav\n");
  folder_.write("validation_list.txt", "bed/c_nohash_0.wav\n");
  EXPECT_EQ(read_speech(folder_.path(), {}).parts,
            (std::vector<Part>{Part::Train, Part::Test, Part::Validation}));
}

TEST_F(Speech, ClipsOfOtherLengthsAreLeftOut) {
  clip("bed/a_nohash_0");
  clip("bed/b_nohash_0", 15999);
  clip("bed/c_nohash_0", 16001);
  const DataSet data = read_speech(folder_.path(), {});
  EXPECT_EQ(data.samples(), 1);
  EXPECT_EQ(data.head.skipped, std::vector<std::string>{"2 files: not exactly 16000 samples"});
}

// 142 bytes of FLAC that claim half a billion samples
TEST_F(Speech, AClaimedLengthTakesNoMemory) {
  clip("bed/a_nohash_0");
  std::string bytes("fLaC\x80\0\0\x22\x10\0\x10\0\0\0\0\0\0\0\x03\xE8\0\xF0\x1D\xCD\x65\0", 26);
  bytes.resize(142);
  folder_.write("bed/b_nohash_0.wav", bytes);
  const DataSet data = read_speech(folder_.path(), {});
  EXPECT_EQ(data.samples(), 1);
  EXPECT_EQ(data.head.skipped, std::vector<std::string>{"1 file: not exactly 16000 samples"});
}

TEST_F(Speech, NamesOfFilesBecomeUtf8) {
  clip(
      "gr\xFC"
      "n/a_nohash_0");
  clip("rot/\xE9_nohash_0");
  folder_.write("testing_list.txt",
                "gr\xFC"
                "n/a_nohash_0.wav\n");
  const DataSet data = read_speech(folder_.path(), {});
  EXPECT_EQ(data.head.classes, (std::vector<std::string>{"gr\xC3\xBC"
                                                         "n",
                                                         "rot"}));
  EXPECT_EQ(data.ids[1], "rot/\xC3\xA9_nohash_0.wav");
  EXPECT_EQ(data.groups[1], "\xC3\xA9");
  EXPECT_EQ(data.parts[0], Part::Test);
  ASSERT_EQ(data.head.notes.size(), 1u);
  EXPECT_EQ(data.head.notes[0],
            "the name 'gr\xC3\xBC"
            "n' is not UTF-8; read as Windows-1252");
}

TEST_F(Speech, EveryMistakeIsNamed) {
  EXPECT_EQ(error(), folder_.path() + ": no .wav files in its folders; expected a folder per word");
  const std::string file = folder_.write("bed/a.wav", wav(noise(8000, 1), 8000));
  EXPECT_EQ(error(), file + ": expected 16000 samples per second, got 8000");
  folder_.write("bed/a.wav", wav(noise(32000, 1), 16000, 2));
  EXPECT_EQ(error(), file + ": expected one channel, got 2");
  folder_.write("bed/a.wav", "no sound");
  EXPECT_EQ(error().rfind(file + ": not a sound file: ", 0), 0u) << error();
}

}  // namespace
}  // namespace fastweights::data
