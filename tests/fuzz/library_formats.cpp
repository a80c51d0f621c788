#include "data/download.h"
#include "data/readers.h"
#include "formats.h"

/// Formats that libsndfile and libarchive parse; ours is what happens to their answers.

namespace fuzz {
namespace {

using namespace fastweights;

// the list of test clips, then a clip; what is no sound of one second is skipped or rejected
void read_speech(std::string_view bytes) {
  const auto files = parts(bytes, 2);
  write_scratch("speech/testing_list.txt", files[0]);
  write_scratch("speech/yes/s_nohash_0.wav", files[1]);
  const SpeechForm form = bytes.size() % 2 == 1 ? SpeechForm::Wave : SpeechForm::Mfcc;
  const DataSet data = data::read_speech((scratch_folder() / "speech").string(), {.speech = form});
  require(data.ids.size() <= 1 && data.values.size() == data.times.size() * data.head.channels.size());
}

void read_archive(std::string_view bytes) {
  namespace fs = std::filesystem;
  const fs::path folder = scratch_folder() / "unpacked";
  fs::remove_all(folder);
  const std::string archive = write_scratch("archive", bytes);
  data::unpack(archive, folder.string());
  // neither links nor devices, and nothing outside the folder
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    require(!entry.is_symlink() && (entry.is_regular_file() || entry.is_directory()));
  for (const fs::directory_entry& entry : fs::directory_iterator(scratch_folder())) {
    const std::string name = entry.path().filename().string();
    require(name == "unpacked" || name == "archive" || name == "speech");
  }
}

}  // namespace

const std::vector<Format>& library_formats() {
  static const std::vector<Format> kFormats = {{"speech", read_speech}, {"archive", read_archive}};
  return kFormats;
}

}  // namespace fuzz
