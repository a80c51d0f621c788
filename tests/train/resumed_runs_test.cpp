#include <filesystem>
#include <stdexcept>

#include "base/files.h"
#include "data/data_support.h"
#include "fastweights/train.h"
#include "support/support.h"
#include "train/run_set.h"
#include "train/train_cases.h"

namespace fastweights {
namespace {

// 24 series, trained as folds or with several seeds, and killed at some point
class ResumedRuns : public ::testing::Test {
 protected:
  RunsOptions options(const std::string& name, int64_t folds, std::vector<int64_t> seeds) {
    return small_runs(folder_.path(name), folds, std::move(seeds));
  }

  TestFolder folder_;
  DataSet data_ = two_classes(24);
};

TEST_F(ResumedRuns, AreThoseOfAnUninterruptedSet) {
  for (const bool in_folds : {true, false}) {
    const int64_t count = in_folds ? 3 : 0;
    const std::vector<int64_t> list = in_folds ? std::vector<int64_t>{} : std::vector<int64_t>{1, 2, 3};
    const std::string whole = in_folds ? "whole-folds" : "whole-seeds", killed = in_folds ? "folds" : "seeds";
    train_runs(options(whole, count, list), data_);
    RunsOptions o = options(killed, count, list);
    // a kill before the second run has a configuration, one in its middle, one after its end
    int64_t begun = 0;
    o.train = [&](const fastweights::Run& run, RunOptions one) {
      if (++begun == 2) throw std::domain_error("killed");
      return train_run(run, one);
    };
    EXPECT_THROW(train_runs(o, data_), std::domain_error);
    EXPECT_TRUE(read_runs(o.folder).has_value());
    const TrainFunction in_the_middle = [](const fastweights::Run& run, RunOptions one) {
      one.events.step = [](const Trainer& trainer, const TrainStep&) {
        if (trainer.steps_done() == 3) throw std::domain_error("killed");
      };
      return train_run(run, one);
    };
    EXPECT_THROW(resume_runs(o.folder, data_, in_the_middle), std::domain_error);
    const TrainFunction after = [](const fastweights::Run& run, const RunOptions& one) -> RunResult {
      train_run(run, one);
      throw std::domain_error("killed");
    };
    EXPECT_THROW(resume_runs(o.folder, data_, after), std::domain_error);
    EXPECT_EQ(resume_runs(o.folder, data_).end, RunEnd::Finished);
    EXPECT_EQ(read_file(o.folder + "/result.json"), read_file(folder_.path(whole + "/result.json")));
    if (in_folds) {
      EXPECT_EQ(read_file(o.folder + "/calibration.json"),
                read_file(folder_.path(whole + "/calibration.json")));
    }
    for (const SetRun& one : set_runs(o)) {
      const std::string model = "/" + one.name + "/model.safetensors";
      EXPECT_EQ(read_file(o.folder + model), read_file(folder_.path(whole) + model));
    }
    // once more: nothing is trained
    const TrainFunction never = [](const fastweights::Run&, const RunOptions&) -> RunResult {
      throw std::domain_error("trained again");
    };
    EXPECT_EQ(resume_runs(o.folder, data_, never).end, RunEnd::Finished);
  }
  data_.values[3] += 1;
  EXPECT_NE(refusal([&] { resume_runs(folder_.path("seeds"), data_); }).find("the data have changed since"),
            std::string::npos);
}

// killed before its last file, or before the end of its lock
TEST_F(ResumedRuns, CompleteTheFilesOfARun) {
  const std::string path = folder_.path("folds");
  train_runs(options("folds", 3, {}), data_);
  const std::string card = path + "/fold-2/model_card.md", lock = path + "/fold-3/lock";
  std::filesystem::remove(card);
  folder_.file("folds/fold-2/model_card.md.part-1-f4df69e10b7910f3", "half");
  folder_.file("folds/fold-3/lock", "1 another-host\n");
  EXPECT_EQ(resume_runs(path, data_).end, RunEnd::Finished);
  EXPECT_TRUE(std::filesystem::exists(card));
  EXPECT_FALSE(std::filesystem::exists(card + ".part-1-f4df69e10b7910f3"));
  EXPECT_FALSE(std::filesystem::exists(lock));
}

// a full disk ends the first run before its configuration is written
TEST_F(ResumedRuns, StartAgainIfTheFirstOneCouldNotStart) {
  const RunsOptions o = options("folds", 3, {});
  RunsOptions failing = o;
  failing.train = [&](const fastweights::Run&, const RunOptions& one) -> RunResult {
    folder_.file("folds/fold-1/environment.json", "{}");
    EXPECT_EQ(one.folder, folder_.path("folds/fold-1"));
    throw std::runtime_error("no space left");
  };
  EXPECT_EQ(refusal([&] { train_runs(failing, data_); }), "no space left");
  EXPECT_EQ(train_runs(o, data_).end, RunEnd::Finished);
}

}  // namespace
}  // namespace fastweights
