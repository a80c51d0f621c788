#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/files.h"
#include "base/json_fields.h"
#include "data/data_support.h"
#include "fastweights/run.h"
#include "support/support.h"
#include "train/run_files.h"
#include "train/train_cases.h"
#include "train/trained_file.h"

namespace {

// file systems without locks
bool no_locks = false;

}  // namespace

extern "C" int flock(int file, int operation) noexcept {
  if (no_locks) {
    errno = ENOLCK;
    return -1;
  }
  return static_cast<int>(syscall(SYS_flock, file, operation));
}

namespace fastweights {
namespace {

using testing::error_message;

std::string this_host() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// of a process that has ended
pid_t dead_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

class RunFolderFiles : public ::testing::Test {
 protected:
  RunConfig config() const {
    return make_run({.model = "delta-ode",
                     .settings = {{"model.hidden_size", "8"},
                                  {"model.heads", "2"},
                                  {"model.feed_forward_size", "8"},
                                  {"training.epochs", "3"},
                                  {"training.batch_size", "8"}}},
                    data_)
        .config;
  }
  RunResult train(RunStart start, const RunEvents& events = {}) const {
    return train_run(make_run(config(), data_), {.folder = path_, .start = start, .events = events});
  }
  // the log's lines that begin with "warning: "
  RunEvents keep_warnings() {
    RunEvents events;
    events.note = [this](const std::string& line) {
      if (line.rfind("warning: ", 0) == 0) warnings_.push_back(line);
    };
    return events;
  }
  std::string file(const char* name) const { return path_ + "/" + name; }

  TestFolder folder_;
  DataSet data_ = two_classes(24);
  std::string path_ = folder_.path("run");
  std::vector<std::string> warnings_;
};

TEST_F(RunFolderFiles, ARunThatIsGoingIsNeitherResumedNorOverwritten) {
  std::vector<std::string> refusals;
  RunEvents events;
  events.step = [&](const Trainer& trainer, const TrainStep&) {
    if (trainer.steps_done() != 2) return;
    for (const RunStart start : {RunStart::Resume, RunStart::Fresh})
      refusals.push_back(refusal([&] { train(start); }));
    // reading is possible
    EXPECT_EQ(to_json(read_run_config(path_)), to_json(config()));
  };
  EXPECT_EQ(train(RunStart::Fresh, events).end, RunEnd::Finished);
  const std::string expected = message(path_, " is in use: process ", getpid(), " on host '", this_host(),
                                       "' trains in it; wait until it ends");
  EXPECT_EQ(refusals, (std::vector<std::string>{expected, expected}));
  EXPECT_EQ(read_epochs(path_).epochs.size(), 3u);
  EXPECT_FALSE(std::filesystem::exists(file("lock")));
  EXPECT_EQ(train(RunStart::Resume).end, RunEnd::Finished);
}

TEST_F(RunFolderFiles, TheLockOfAKilledProcessIsFree) {
  folder_.file("run/lock", message(dead_process(), " ", this_host(), "\n"));
  EXPECT_EQ(train(RunStart::Fresh).end, RunEnd::Finished);
  EXPECT_FALSE(std::filesystem::exists(file("lock")));
}

TEST_F(RunFolderFiles, WithoutLocksTheProcessIsLookedFor) {
  no_locks = true;
  folder_.file("run/lock", message(getppid(), " ", this_host(), "\n"));
  EXPECT_EQ(refusal([&] { train(RunStart::Fresh); }),
            message(path_, " is in use: process ", getppid(), " on host '", this_host(),
                    "' trains in it; if that is wrong, remove ", path_, "/lock"));
  folder_.file("run/lock", "1 elsewhere\n");
  EXPECT_NE(refusal([&] { train(RunStart::Fresh); }).find("process 1 on host 'elsewhere'"),
            std::string::npos);
  folder_.file("run/lock", message(dead_process(), " ", this_host(), "\n"));
  EXPECT_EQ(train(RunStart::Fresh).end, RunEnd::Finished);
  no_locks = false;
}

TEST_F(RunFolderFiles, ALinkAtTheLockIsNotFollowed) {
  const std::string victim = folder_.file("victim", "precious");
  std::filesystem::create_directory(path_);
  std::filesystem::create_symlink(victim, file("lock"));
  EXPECT_NE(refusal([&] { train(RunStart::Fresh); }).find("lock: cannot be opened"), std::string::npos);
  EXPECT_EQ(read_file(victim), "precious");
}

TEST_F(RunFolderFiles, DamagedMetricsAreWorkedAround) {
  train(RunStart::Fresh);
  const std::string good = read_file(file("metrics.jsonl")), first = good.substr(0, good.find('\n') + 1);
  const auto epochs_of = [&](const std::string& text) {
    folder_.file("run/metrics.jsonl", text);
    const EpochsFile found = read_epochs(path_);
    return std::pair(found.epochs.size(), found.damaged);
  };
  using Counts = std::pair<size_t, int64_t>;
  EXPECT_EQ(epochs_of(good), Counts(3, 0));
  // cut off by a kill; lines of two processes; garbage; values of other types
  EXPECT_EQ(epochs_of(good + R"({"epoch": 4, "lo)"), Counts(3, 0));
  EXPECT_EQ(epochs_of(good + good), Counts(3, 3));
  EXPECT_EQ(epochs_of(first + first.substr(0, 20) + good), Counts(3, 1));
  EXPECT_EQ(epochs_of(first + std::string("\0\xff\xfe\n", 4) + good.substr(first.size())), Counts(3, 1));
  for (const char* line : {R"({"epoch": "x", "validation": {}})", R"({"epoch": 4, "validation": 3})",
                           R"({"epoch": 1e30, "validation": {}})", "[]", "null", ""})
    EXPECT_EQ(epochs_of(good + line + "\n"), Counts(3, 1)) << line;
  EXPECT_EQ(epochs_of(R"({"epoch": 1, "steps": "x", "best": 7, "loss": [], "validation": {"mse": "x"}})"),
            Counts(1, 0));
}

TEST_F(RunFolderFiles, DamagedMetricsStopNeitherReportsNorResuming) {
  train(RunStart::Fresh);
  const std::string good = read_file(file("metrics.jsonl"));
  folder_.file("run/metrics.jsonl", good + good + "x\n");
  write_report(path_, data_);
  EXPECT_NE(read_file(file("report.json")).find("metrics.jsonl is damaged: 4 lines were left out"),
            std::string::npos);
  EXPECT_EQ(train(RunStart::Resume, keep_warnings()).end, RunEnd::Finished);
  EXPECT_EQ(warnings_, std::vector<std::string>{"warning: metrics.jsonl is damaged: 4 lines were left out"});
  EXPECT_EQ(read_file(file("metrics.jsonl")), good);
  std::filesystem::remove(file("metrics.jsonl"));
  write_report(path_, data_);
  EXPECT_EQ(train(RunStart::Resume).end, RunEnd::Finished);
}

TEST_F(RunFolderFiles, ALogThatCannotBeWrittenIsSaidOnce) {
  folder_.file("run/log.txt/inside", "");
  EXPECT_EQ(train(RunStart::Fresh, keep_warnings()).end, RunEnd::Finished);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0], "warning: " + file("log.txt") + " cannot be written: Is a directory");
}

TEST_F(RunFolderFiles, ChangedSettingsAreSaid) {
  train(RunStart::Fresh);
  std::string text = read_file(file("config.json"));
  text.replace(text.find("\"learning_rate\": 0.001"), 22, "\"learning_rate\": 0.005");
  folder_.file("run/config.json", text);
  train_run(open_run(path_, data_), {.folder = path_, .start = RunStart::Resume, .events = keep_warnings()});
  EXPECT_EQ(warnings_, std::vector<std::string>{"warning: config.json has changed since the run began"});
}

TEST_F(RunFolderFiles, BrokenJsonFilesAreNamed) {
  train(RunStart::Fresh);
  const auto refused = [&](const char* name, const char* text) {
    const std::string good = read_file(file(name));
    folder_.file(std::string("run/") + name, text);
    const std::string got = refusal([&] { write_report(path_, data_); });
    EXPECT_EQ(got.rfind(file(name) + ": ", 0), 0u) << got;
    EXPECT_EQ(got.find("json.exception"), std::string::npos) << got;
    folder_.file(std::string("run/") + name, good);
  };
  for (const char* text : {"", "{", "[]", R"({"fingerprint": 3})"}) refused("data.json", text);
  for (const char* text : {"", "{", R"({"best_epoch": "x"})", R"({"best_epoch": 1, "threshold": 1})",
                           R"({"best_epoch": 1, "threshold": 0.5, "test": 3})"})
    refused("result.json", text);
  for (const char* text : {"", "{", "[]", R"({"model": 3})", R"({"modl": {}})"}) refused("config.json", text);
}

// a training must not be lost at its end
TEST_F(RunFolderFiles, NamesThatNoFileHoldsAreRefusedBeforeTraining) {
  data_.head.classes[1] = "caf\xe9";
  EXPECT_EQ(error_message([&] { train(RunStart::Fresh); }),
            "[train] the name of class 2, 'caf\\xe9', is not valid UTF-8, which model files need");
  data_ = two_classes(24);
  data_.head.channels[0] = "\xff";
  EXPECT_EQ(error_message([&] { train(RunStart::Fresh); }),
            "[train] the name of channel 1, '\\xff', is not valid UTF-8, which model files need");
  EXPECT_FALSE(std::filesystem::exists(path_));
  data_ = two_classes(24);
  auto run = make_run(config(), data_);
  run.config.data.path = "caf\xe9.csv";
  EXPECT_EQ(error_message([&] { train_run(run, {.folder = path_}); }),
            "[train] the path 'caf\\xe9.csv' is not valid UTF-8, which config.json needs; rename the file or "
            "folder");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(RunFolderFiles, IdsThatAreNoUtf8AreShownAllTheSame) {
  for (std::string& id : data_.ids) id += "\xe9";
  data_.head.name = "caf\xe9";
  EXPECT_EQ(train(RunStart::Fresh).end, RunEnd::Finished);
  EXPECT_NE(read_file(file("report.json")).find("caf\xef\xbf\xbd"), std::string::npos);
}

TEST_F(RunFolderFiles, ScalesThatNoFileHoldsAreRefusedBeforeTraining) {
  const auto run = make_run(config(), data_);
  TrainedModel trained = {Model(run.config.model), run.data.preparation, run.data.task};
  EXPECT_NO_THROW(check_trained(trained));
  trained.preparation.channel_scales[1].deviation = INFINITY;
  EXPECT_EQ(error_message([&] { check_trained(trained); }),
            "[train] channel '" + data_.head.channels[1] + "' cannot be scaled: its values are too large");
}

TEST_F(RunFolderFiles, AReportOfManyClassesStaysSmall) {
  for (size_t k = 2; k < 10'000; ++k) data_.head.classes.push_back(message("class ", k));
  EXPECT_EQ(train(RunStart::Fresh).end, RunEnd::Finished);
  EXPECT_LT(std::filesystem::file_size(file("report.html")), 5'000'000u);
  const Json report = Json::parse(read_file(file("report.json")));
  EXPECT_EQ(report["confusion"]["classes"].size(), 50u);
  EXPECT_EQ(report["confusion"]["counts"].size(), 50u);
  EXPECT_EQ(report["confusion"]["note"], "The 50 of 10000 classes with the most errors.");
  EXPECT_EQ(report["fast_weights"]["outputs"]["names"].size(), 50u);
}

}  // namespace
}  // namespace fastweights
