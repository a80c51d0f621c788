#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "data/files.h"
#include "data/mfcc.h"
#include "data/readers.h"
#include "data/text.h"

#ifdef FASTWEIGHTS_SNDFILE
#include <sndfile.h>
#endif

namespace fastweights::data {
namespace {

namespace fs = std::filesystem;

// the ten words of the published experiments in the order of their labels
const std::vector<std::string> kTenWords = {"yes",   "no", "up",  "down", "left",
                                            "right", "on", "off", "stop", "go"};
constexpr int64_t kSampleRate = 16000, kSamples = 16000;

// each folder with sound files is a word
std::vector<std::string> words_of(const std::vector<std::string>& files) {
  std::set<std::string> found;
  for (const std::string& file : files) found.insert(fs::path(file).parent_path().filename().string());
  if (std::set<std::string>(kTenWords.begin(), kTenWords.end()) == found) return kTenWords;
  return {found.begin(), found.end()};
}

// clips are named <word>/<speaker>_nohash_<number>.wav
std::string clip_id(const std::string& file) {
  const fs::path path(file);
  return path.parent_path().filename().string() + "/" + path.filename().string();
}

std::map<std::string, Part> parts_of(const std::string& folder, const ReadOptions& options) {
  std::map<std::string, Part> parts;
  for (const auto& [name, part] :
       {std::pair{"validation_list.txt", Part::Validation}, std::pair{"testing_list.txt", Part::Test}}) {
    const std::string list = folder + "/" + name;
    if (!fs::exists(list)) continue;
    const std::string text = read_text(list, options).text;
    for (Lines lines(text); lines.next();) {
      parts[std::string(lines.line())] = part;
      require_parts(parts.size(), kNameBytes, read_limit(options), list, "its names");
    }
  }
  return parts;
}

#ifdef FASTWEIGHTS_SNDFILE

// in [-1, 1]; empty if it does not have kSamples samples, of which a file of any size may claim any number
std::vector<double> wave_of(const std::string& file) {
  SF_INFO info = {};
  const std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> sound(sf_open(file.c_str(), SFM_READ, &info), &sf_close);
  if (!sound) throw std::runtime_error(file + ": not a sound file: " + sf_strerror(nullptr));
  if (info.samplerate != kSampleRate)
    throw std::runtime_error(
        message(file, ": expected ", kSampleRate, " samples per second, got ", info.samplerate));
  if (info.channels != 1)
    throw std::runtime_error(message(file, ": expected one channel, got ", info.channels));
  if (info.frames != kSamples) return {};
  std::vector<double> wave(static_cast<size_t>(kSamples));
  const sf_count_t got = sf_read_double(sound.get(), wave.data(), info.frames);
  if (got != info.frames)
    throw std::runtime_error(message(file, ": ends after ", got, " of ", info.frames, " samples"));
  return wave;
}

#else

std::vector<double> wave_of(const std::string& file) {
  throw std::runtime_error(file +
                           ": this build of fastweights cannot read sound; install libsndfile (Debian: "
                           "libsndfile1-dev) and build again");
}

#endif

FileSeries clip(const std::string& file, SpeechForm form, const Mfcc& mfcc) {
  FileSeries found;
  std::vector<double> wave = wave_of(file);
  if (wave.empty()) {
    found.left_out = message("not exactly ", kSamples, " samples");
    return found;
  }
  Series& series = found.series;
  series.id = clip_id(file);
  const std::string name = stem(file);
  const size_t speaker = name.find("_nohash_");
  series.group = speaker == std::string::npos ? "" : name.substr(0, speaker);
  series.label = fs::path(file).parent_path().filename().string();
  series.where = file;
  series.values = form == SpeechForm::Wave ? std::move(wave) : mfcc(wave);
  const size_t rows = series.values.size() / (form == SpeechForm::Wave ? 1 : Mfcc::kCoefficients);
  series.times.resize(rows);
  const double step = form == SpeechForm::Wave ? 1.0 / kSampleRate : 1;
  for (size_t i = 0; i < rows; ++i) series.times[i] = static_cast<double>(i) * step;
  return found;
}

std::vector<std::string> channel_names(SpeechForm form) {
  if (form == SpeechForm::Wave) return {"wave"};
  std::vector<std::string> names;
  for (int64_t c = 0; c < Mfcc::kCoefficients; ++c) names.push_back("mfcc" + std::to_string(c));
  return names;
}

}  // namespace

DataSet read_speech(const std::string& path, const ReadOptions& options) {
  std::vector<std::string> files = files_below(path, ".wav");
  std::erase_if(files, [&](const std::string& file) {
    const fs::path folder = fs::path(file).parent_path();
    return folder.filename() == "_background_noise_" || !fs::equivalent(folder.parent_path(), path);
  });
  if (files.empty())
    throw std::runtime_error(path + ": no .wav files in its folders; expected a folder per word");
  const std::map<std::string, Part> parts = parts_of(path, options);
  const Mfcc mfcc(kSampleRate);
  FolderSeries found =
      read_files(files, options, [&](const std::string& file) { return clip(file, options.speech, mfcc); });
  for (Series& series : found.series) {
    const auto part = parts.find(decoded(series.id).text);
    series.part = part != parts.end() ? part->second : parts.empty() ? Part::Any : Part::Train;
  }
  return collect_series({.name = file_name(path),
                         .origin = options.speech == SpeechForm::Wave ? "speech, wave" : "speech, mfcc",
                         .channels = channel_names(options.speech),
                         .classes = words_of(files),
                         .time_unit = options.speech == SpeechForm::Wave ? "second" : "frame",
                         .skipped = std::move(found.skipped)},
                        found.series);
}

}  // namespace fastweights::data
