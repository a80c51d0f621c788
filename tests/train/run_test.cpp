#include "fastweights/run.h"

#include <sstream>

#include "base/files.h"
#include "base/json_fields.h"
#include "data/data_support.h"
#include "support/full_disk.h"
#include "support/support.h"
#include "train/fit.h"
#include "train/train_cases.h"

namespace fastweights {
namespace {

using testing::error_message;
using testing::FullDisk;

const Settings kSettings = {{"model.hidden_size", "8"},       {"model.heads", "2"},
                            {"model.feed_forward_size", "8"}, {"training.epochs", "4"},
                            {"training.batch_size", "4"},     {"training.learning_rate", "0.01"}};

RunConfig make_config(const std::string& model, const Settings& settings, const DataSet& data) {
  return make_run({.model = model, .settings = settings}, data).config;
}

// asks to stop after so many steps
RunEvents stop_after(int64_t steps) {
  RunEvents events;
  events.stop = [left = steps]() mutable { return --left <= 0; };
  return events;
}

// of a file of metrics, without the time they took
std::vector<std::string> epochs_in(const std::string& folder) {
  std::istringstream lines(read_file(folder + "/metrics.jsonl"));
  std::vector<std::string> epochs;
  for (std::string line; std::getline(lines, line);) {
    Json json = Json::parse(line);
    json.erase("seconds");
    epochs.push_back(json.dump());
  }
  return epochs;
}

void expect_same_runs(const std::string& a, const std::string& b) {
  EXPECT_TRUE(same_bits(load_trained(a).model, load_trained(b).model));
  EXPECT_EQ(load_trained(a).threshold, load_trained(b).threshold);
  EXPECT_EQ(epochs_in(a), epochs_in(b));
  EXPECT_EQ(read_file(a + "/result.json"), read_file(b + "/result.json"));
}

// 16 series to train on: 4 steps per epoch
class Run : public ::testing::Test {
 protected:
  RunResult train(const char* name, RunStart start, const RunEvents& events = {}) {
    return train_run(make_run(config_, data_),
                     {.folder = folder_.path(name), .start = start, .events = events});
  }
  std::string whole() {
    EXPECT_EQ(train("whole", RunStart::Fresh).end, RunEnd::Finished);
    return folder_.path("whole");
  }

  TestFolder folder_;
  DataSet data_ = two_classes(24);
  RunConfig config_ = make_config("delta-ode", kSettings, data_);
};

TEST_F(Run, LeavesAFolderThatSaysEverything) {
  std::vector<std::string> notes;
  RunEvents events;
  events.note = [&](const std::string& line) { notes.push_back(line); };
  const RunResult result = train("run", RunStart::Fresh, events);
  EXPECT_EQ(result.end, RunEnd::Finished);
  const std::string path = folder_.path("run");
  for (const char* name : {"config.json", "environment.json", "metrics.jsonl", "log.txt", "result.json",
                           "checkpoint.safetensors", "model.safetensors", "report.json", "report.html"})
    EXPECT_TRUE(std::filesystem::exists(path + "/" + name)) << name;
  EXPECT_EQ(epochs_in(path).size(), 4u);
  EXPECT_EQ(to_json(read_run_config(path)), to_json(config_));
  ASSERT_EQ(result.parts.size(), 3u);
  const Json json = parse_json(read_file(path + "/result.json"));
  EXPECT_EQ(json["test"]["accuracy"].get<double>(), metric(result.parts[2].metrics, "accuracy"));
  EXPECT_EQ(json["best_epoch"].get<int64_t>(), result.best_epoch);
  // how it began, what memory it takes, how it ended
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(notes[1].rfind("memory of a training step: ", 0), 0u) << notes[1];
}

TEST_F(Run, SaysWhatItDoesWithoutValidationAndTest) {
  data_ = two_classes(2);
  std::string notes;
  RunEvents events;
  events.note = [&](const std::string& line) { notes += line + "\n"; };
  train("run", RunStart::Fresh, events);
  EXPECT_NE(notes.find("there is no validation part"), std::string::npos) << notes;
  EXPECT_NE(notes.find("results are those of the training part"), std::string::npos) << notes;
}

TEST_F(Run, StoppedInMidEpochAndResumedItIsTheSame) {
  const std::string expected = whole();
  for (const int64_t steps : {3, 10}) {
    const std::string name = "stopped" + std::to_string(steps);
    EXPECT_EQ(train(name.c_str(), RunStart::Fresh, stop_after(steps)).end, RunEnd::Stopped);
    EXPECT_EQ(refusal([&] { load_trained(folder_.path(name)); }),
              folder_.path(name) +
                  " has no model.safetensors: its training has not finished; continue it with --resume");
    // twice, the second time for one step
    EXPECT_EQ(train(name.c_str(), RunStart::Resume, stop_after(1)).end, RunEnd::Stopped);
    EXPECT_EQ(train(name.c_str(), RunStart::Resume).end, RunEnd::Finished);
    expect_same_runs(folder_.path(name), expected);
  }
}

TEST_F(Run, KilledAfterTheLastCheckpointItDoesThoseStepsAgain) {
  const std::string expected = whole();
  EXPECT_EQ(train("killed", RunStart::Fresh, stop_after(3)).end, RunEnd::Stopped);
  RunEvents events;
  events.step = [](const Trainer& trainer, const TrainStep&) {
    if (trainer.steps_done() == 11) throw std::domain_error("killed");
  };
  EXPECT_THROW(train("killed", RunStart::Resume, events), std::domain_error);
  // two epochs and half a line that the checkpoint knows nothing of
  EXPECT_EQ(epochs_in(folder_.path("killed")).size(), 2u);
  std::ofstream(folder_.path("killed/metrics.jsonl"), std::ios::app) << R"({"epoch": 3, "lo)";
  EXPECT_EQ(train("killed", RunStart::Resume).end, RunEnd::Finished);
  expect_same_runs(folder_.path("killed"), expected);
}

TEST_F(Run, KilledBeforeTheFirstCheckpointItStillStartsFromTheGivenModel) {
  whole();
  const TrainedModel start = load_trained(folder_.path("whole"));
  const auto from_model = [&](const char* name, const RunEvents& events) {
    fastweights::Run run = make_run(config_, data_);
    run.initialise_from = folder_.path("whole");
    return train_run(run, {.folder = folder_.path(name), .events = events});
  };
  from_model("expected", {});
  EXPECT_FALSE(same_bits(load_trained(folder_.path("expected")).model, start.model));
  RunEvents events;
  events.step = [](const Trainer&, const TrainStep&) { throw std::domain_error("killed"); };
  EXPECT_THROW(from_model("killed", events), std::domain_error);
  EXPECT_EQ(train("killed", RunStart::Resume).end, RunEnd::Finished);
  expect_same_runs(folder_.path("killed"), folder_.path("expected"));
}

TEST_F(Run, MetricsOfAnEarlierVersionAreKept) {
  train("run", RunStart::Fresh, stop_after(10));
  std::string old;
  for (const std::string& line : epochs_in(folder_.path("run"))) {
    Json json = Json::parse(line);
    EXPECT_EQ(json["steps"].get<int64_t>(), 4);
    EXPECT_EQ(json["replayed_steps"].get<int64_t>(), 0);
    json.erase("steps");
    json.erase("replayed_steps");
    old += json.dump() + "\n";
  }
  replace_file(folder_.path("run/metrics.jsonl"), old);
  const RunResult result = train("run", RunStart::Resume);
  ASSERT_EQ(result.epochs.size(), 4u);
  EXPECT_EQ(result.epochs[1].steps, 0);
  EXPECT_EQ(result.epochs[2].steps, 4);
  const std::vector<std::string> lines = epochs_in(folder_.path("run"));
  EXPECT_EQ(lines[1].find("steps"), std::string::npos);
  EXPECT_NE(lines[2].find("replayed_steps"), std::string::npos);
}

TEST_F(Run, AFinishedRunResumedStaysAsItIs) {
  const std::string path = whole(), model = read_file(path + "/model.safetensors");
  const auto epochs = epochs_in(path);
  EXPECT_EQ(train("whole", RunStart::Resume).end, RunEnd::Finished);
  EXPECT_EQ(read_file(path + "/model.safetensors"), model);
  EXPECT_EQ(epochs_in(path), epochs);
}

TEST_F(Run, OtherDataAreNoticed) {
  train("run", RunStart::Fresh, stop_after(3));
  const auto refused = [&](auto change) {
    DataSet other = two_classes(24);
    change(other);
    const std::string opened = refusal([&] { open_run(folder_.path("run"), other); });
    EXPECT_EQ(refusal([&] {
                train_run(make_run(config_, other),
                          {.folder = folder_.path("run"), .start = RunStart::Resume});
              }),
              opened);
    return opened;
  };
  const std::string sentence =
      "the data have changed since " + folder_.path("run") + " began: they were 24 series";
  for (const std::string& got :
       {refused([](DataSet& d) { d.values[3] += 1; }),
        refused([](DataSet& d) { std::swap(d.labels[0], d.labels[1]); }),
        refused([](DataSet& d) { d.targets[5] += 1; }), refused([](DataSet& d) { d.times[0] -= 1; }),
        refused([](DataSet& d) { d = two_classes(23); })})
    EXPECT_EQ(got.substr(0, sentence.size()), sentence);
  EXPECT_EQ(train("run", RunStart::Resume).end, RunEnd::Finished);
}

TEST_F(Run, AFolderWithARunIsNotOverwritten) {
  train("run", RunStart::Fresh, stop_after(3));
  EXPECT_EQ(refusal([&] { train("run", RunStart::Fresh); }),
            "there is a run in " + folder_.path("run") +
                " already: resume it with --resume, or choose another folder");
  EXPECT_EQ(refusal([&] { train("none", RunStart::Resume); }),
            folder_.path("none/data.json") + ": no such file");
  EXPECT_EQ(refusal([&] { read_run_config(folder_.path("none")); }),
            folder_.path("none") + " is not the folder of a run: it has no config.json");
}

TEST_F(Run, ADamagedCheckpointIsNamed) {
  train("run", RunStart::Fresh, stop_after(3));
  const std::string path = folder_.path("run/checkpoint.safetensors"), good = read_file(path);
  const auto refused = [&] { return refusal([&] { train("run", RunStart::Resume); }); };
  for (const std::string& bad :
       {good.substr(0, good.size() / 2), good.substr(0, 5), std::string("nonsense")}) {
    folder_.file("run/checkpoint.safetensors", bad);
    EXPECT_EQ(refused().substr(0, path.size()), path);
  }
  NamedTensors state;
  state.tensors["counts"] = at::zeros({5}, at::kLong);
  save_safetensors(path, state);
  EXPECT_EQ(refused(), path + ": the checkpoint has no 'numbers'");
  folder_.file("run/checkpoint.safetensors", good);
  EXPECT_EQ(train("run", RunStart::Resume).end, RunEnd::Finished);
}

TEST_F(Run, AFullDiskLeavesTheOldCheckpoint) {
  const std::string expected = whole();
  train("run", RunStart::Fresh, stop_after(3));
  const std::string path = folder_.path("run/checkpoint.safetensors"), good = read_file(path);
  ASSERT_GT(good.size(), 5000u);
  {
    const FullDisk full(5000);
    EXPECT_EQ(refusal([&] { train("run", RunStart::Resume, stop_after(5)); }),
              path + ": cannot be written: File too large");
  }
  EXPECT_EQ(read_file(path), good);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path("run")))
    EXPECT_NE(entry.path().extension(), ".part");
  {
    // not even a line of metrics
    const FullDisk full(20);
    EXPECT_NE(refusal([&] { train("run", RunStart::Resume); }), "");
  }
  EXPECT_EQ(train("run", RunStart::Resume).end, RunEnd::Finished);
  expect_same_runs(folder_.path("run"), expected);
}

TEST_F(Run, TroubleLeavesAReproducer) {
  data_.values[0] = 1e30;
  config_ = make_config("delta-ode", kSettings, data_);
  config_.prepare = {.scaling = Scaling::None, .clip = 0};
  config_.split = {.rule = SplitRule::Random, .validation = 0, .test = 0};
  config_.training.learning_rate = 1e20;
  config_.training.clip = 0;
  const RunResult result = train("run", RunStart::Fresh);
  EXPECT_EQ(result.end, RunEnd::NotFinite);
  EXPECT_NE(result.message.find("not_finite.safetensors"), std::string::npos) << result.message;
  const SafetensorsFile file(folder_.path("run/not_finite.safetensors"));
  EXPECT_TRUE(file.contains("batch.values") && file.contains("parameter.head.bias"));
}

TEST_F(Run, ATrainedModelOnDiskPredictsTheSame) {
  const TrainedModel trained = load_trained(whole());
  TrainedModel copy = trained;
  copy.threshold = 1 / 3.0;
  copy.task.horizon = 0.1;
  save_trained(folder_.path("copy.safetensors"), copy);
  const TrainedModel again = load_trained(folder_.path("copy.safetensors"));
  EXPECT_EQ(again.threshold, copy.threshold);
  EXPECT_EQ(again.task.horizon, copy.task.horizon);
  EXPECT_EQ(again.task.kind, trained.task.kind);
  EXPECT_EQ(again.preparation.classes, trained.preparation.classes);
  const auto outputs = [&](const TrainedModel& t) { return t.predict(data_).outputs; };
  EXPECT_TRUE(at::equal(outputs(again), outputs(trained)));
  // which is what the run itself found
  const PartSamples part = choose_part(folder_.path("whole"), data_, "");
  EXPECT_EQ(part.name, "test");
  const Metrics m = evaluate(trained, select_series(data_, part.samples)).metrics;
  const Json result = parse_json(read_file(folder_.path("whole/result.json")));
  EXPECT_EQ(metric(m, "log_loss"), result["test"]["log_loss"].get<double>());
}

TEST_F(Run, FilesThatAreNoTrainedModelsAreRefused) {
  const std::string path = folder_.path("model.safetensors");
  save_model(path, Model(config_.model));
  EXPECT_EQ(refusal([&] { load_trained(path); }),
            path + ": there is no preparation in it; was it saved by 'fastweights train'?");
  const std::string empty = std::filesystem::path(folder_.file("empty/x", "")).parent_path();
  EXPECT_EQ(refusal([&] { load_trained(empty); }),
            empty + " has no model.safetensors: this is not the folder of a run");
  NamedTensors file = load_safetensors(whole() + "/model.safetensors");
  file.metadata["threshold"] = "half";
  save_safetensors(path, file);
  EXPECT_EQ(refusal([&] { load_trained(path); }), path + ": its threshold is damaged: half");
  file.metadata["threshold"] = "0.5";
  file.metadata["preparation"] = "{}";
  save_safetensors(path, file);
  EXPECT_EQ(refusal([&] { load_trained(path); }).rfind(path + ": its preparation is damaged: ", 0), 0u);
}

TEST_F(Run, ConfigurationsHaveNearestNames) {
  const auto refused = [&](const char* model, const Settings& settings) {
    return error_message([&] { make_config(model, settings, data_); });
  };
  EXPECT_EQ(refused("delta-cdee", {}), "unknown model 'delta-cdee'; the nearest is 'delta-cde'");
  EXPECT_EQ(refused("delta-cde", {{"trainning", "{}"}}),
            "[config] unknown key 'trainning'; the nearest is 'training'");
  EXPECT_EQ(refused("delta-cde", {{"training.epoch", "3"}}),
            "[config] unknown key 'training.epoch'; the nearest is 'training.epochs'");
  EXPECT_EQ(refused("delta-cde", {{"model.solver.metod", "rk4"}}),
            "[config] unknown key 'model.solver.metod'; the nearest is 'model.solver.method'");
  EXPECT_NE(refused("delta-cde", {{"split.rule", "foldz"}}).find("the nearest is 'folds'"),
            std::string::npos);
}

TEST_F(Run, ConfigurationsFitTheDataAndGoThroughJson) {
  EXPECT_EQ(config_.task.kind, TaskKind::Classification);
  EXPECT_EQ(config_.model.channels, 3);
  EXPECT_EQ(config_.model.outputs, 1);
  EXPECT_EQ(fast_weights(config_.model).hidden_size, 8);
  EXPECT_EQ(config_.training.epochs, 4);
  EXPECT_EQ(to_json(run_config_from_json(to_json(config_))), to_json(config_));
  const RunConfig rde = make_config("oja-rde", {{"task.kind", "regression"}}, data_);
  EXPECT_TRUE(std::holds_alternative<LogSignatures>(fast_weights(rde.model).control.path));
  EXPECT_EQ(fast_weights(rde.model).rule, "oja");
  EXPECT_EQ(rde.task.kind, TaskKind::Regression);
  for (const std::string& name : models_for(TaskKind::Classification))
    EXPECT_NO_THROW(make_config(name, {}, data_)) << name;
  // values with a projection of their own are normalised, unless a setting says otherwise
  const auto value_norm = [&](const char* model, const Settings& settings) {
    return fast_weights(make_config(model, settings, data_).model).value_norm;
  };
  EXPECT_TRUE(value_norm("delta-cde", {}));
  EXPECT_FALSE(value_norm("delta-ode", {}));
  EXPECT_FALSE(value_norm("delta-cde", {{"model.drive", "x"}}));
  EXPECT_FALSE(value_norm("delta-cde", {{"model.value_norm", "false"}}));
}

TEST_F(Run, LaterSettingsOverrideEarlierOnes) {
  const std::string path = folder_.file(
      "settings.json", R"({"model": {"solver": {"method": "euler"}}, "training": {"epochs": 3, "seed": 5}})");
  Settings settings = read_settings(path);
  settings.push_back({"training.epochs", "7"});
  settings.push_back({"task.kind", "regression"});
  const RunConfig config = make_config("delta-cde", settings, data_);
  EXPECT_EQ(method_name(*fast_weights(config.model).solver.method), "euler");
  EXPECT_EQ(config.training.epochs, 7);
  EXPECT_EQ(config.training.seed, 5);
  EXPECT_EQ(config.task.kind, TaskKind::Regression);
  EXPECT_EQ(error_message([&] {
              with_settings({}, {{"model.heads", "null"}});
            }),
            "[config] model.heads cannot be null");
}

TEST_F(Run, FilesOfSettingsAreCheckedAndNamed) {
  const auto error = [&](const std::string& text) {
    const std::string path = folder_.file("broken.json", text), got = refusal([&] { read_settings(path); });
    EXPECT_EQ(got.rfind(path + ": ", 0), 0u) << got;
    return got.substr(std::min(got.size(), path.size() + 2));
  };
  EXPECT_EQ(error("{\"model\": ").rfind("[config] this is not JSON: ", 0), 0u);
  EXPECT_EQ(error("[1]"), "expected a JSON object { ... }, got [1]");
  // twice: one of the two would be lost in silence
  EXPECT_EQ(error(R"({"model": {"heads": 1, "heads": 2}})"), "[config] the key 'heads' comes twice");
  const std::string deep = "[config] objects and lists are nested deeper than 8 levels";
  EXPECT_EQ(error(R"({"a": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}"), deep);
  std::string objects;
  for (int i = 0; i < 40'000; ++i) objects += R"({"a":)";
  EXPECT_EQ(error(objects + "1" + std::string(40'000, '}')), deep);
}

TEST_F(Run, FilesAreReplacedAsAWhole) {
  const std::string path = folder_.path("file");
  replace_file(path, "one");
  replace_file(path, "two\n");
  EXPECT_EQ(read_file(path), "two\n");
  {
    const FullDisk full(1000);
    EXPECT_EQ(refusal([&] { replace_file(path, std::string(2000, 'x')); }),
              path + ": cannot be written: File too large");
  }
  EXPECT_EQ(read_file(path), "two\n");
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  EXPECT_NE(refusal([&] { read_file(folder_.path("")); }).find("folder"), std::string::npos);
  // a folder cannot be replaced, and nothing is left beside it
  folder_.file("folder/inside", "");
  EXPECT_NE(refusal([&] { replace_file(folder_.path("folder"), "x"); }), "");
  EXPECT_FALSE(std::filesystem::exists(folder_.path("folder.part")));
}

}  // namespace
}  // namespace fastweights
