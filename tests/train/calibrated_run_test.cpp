#include "base/files.h"
#include "base/json_fields.h"
#include "data/data_support.h"
#include "fastweights/run.h"
#include "support/support.h"
#include "train/train_cases.h"

namespace fastweights {
namespace {

class CalibratedRun : public ::testing::Test {
 protected:
  RunConfig config(Settings settings) const {
    const Settings small = {{"model.hidden_size", "8"},       {"model.heads", "2"},
                            {"model.feed_forward_size", "8"}, {"training.epochs", "4"},
                            {"training.batch_size", "4"},     {"training.learning_rate", "0.01"}};
    settings.insert(settings.end(), small.begin(), small.end());
    return make_run({.model = "delta-ode", .settings = settings}, data_).config;
  }
  RunResult train(const char* name) const {
    return train_run(make_run(config_, data_), {.folder = folder_.path(name)});
  }

  TestFolder folder_;
  DataSet data_ = two_classes(24);
  RunConfig config_ = config({});
};

TEST_F(CalibratedRun, ProbabilitiesAreCalibratedOnTheValidationPart) {
  data_ = two_classes(80);
  config_ = config({});
  // outputs that are much too confident
  config_.training.positive_weight = 20;
  const RunResult result = train("run");
  const std::string path = folder_.path("run");
  const TrainedModel trained = load_trained(path);
  ASSERT_FALSE(trained.calibration.is_identity());
  EXPECT_EQ(trained.calibration.scale, result.calibration.scale);
  EXPECT_EQ(trained.calibration.power, result.calibration.power);
  EXPECT_NE(trained.calibration.power, 0);
  EXPECT_EQ(trained.calibration.typical, result.calibration.typical);
  EXPECT_EQ(trained.calibration.bias, result.calibration.bias);
  EXPECT_EQ(parse_json(read_file(path + "/result.json"))["calibration"]["scale"].get<double>(),
            trained.calibration.scale);
  TrainedModel raw = trained;
  raw.calibration = {};
  const DataSet validation = select_series(data_, choose_part(path, data_, "", "validation").samples);
  EXPECT_LT(metric(evaluate(trained, validation).metrics, "log_loss"),
            metric(evaluate(raw, validation).metrics, "log_loss"));
  EXPECT_TRUE(at::equal(trained.predict(validation).outputs,
                        calibrated(raw.predict(validation).outputs, trained.calibration)));
  // the page shows the same probabilities
  write_report(path, data_);
  const Json report = parse_json(read_file(path + "/report.json"));
  EXPECT_TRUE(report["metrics"]["rows"][0].contains("intervals"));
  config_.training.calibration = CalibrationRule::None;
  EXPECT_TRUE(train("none").calibration.is_identity());
  EXPECT_TRUE(load_trained(folder_.path("none")).calibration.is_identity());
}

TEST_F(CalibratedRun, OneClassInTheValidationPartGivesNoThreshold) {
  data_ = two_classes(8);
  const RunResult result = train("small");
  ASSERT_EQ(result.parts[1].name, "validation");
  ASSERT_TRUE(std::isnan(metric(result.parts[1].metrics, "auroc"))) << "both classes";
  EXPECT_EQ(result.threshold, 0.5);
}

TEST_F(CalibratedRun, NumbersHavePredictionIntervals) {
  config_ = config({{"task.kind", "forecast"}});
  const RunResult result = train("run");
  const TrainedModel trained = load_trained(folder_.path("run"));
  EXPECT_EQ(trained.intervals.level, 0.9);
  EXPECT_EQ(trained.intervals.pooled, result.trained->intervals.pooled);
  const Predictions p = trained.predict(data_);
  ASSERT_TRUE(p.half_widths.defined());
  EXPECT_EQ(p.half_widths.sizes(), p.outputs.sizes());
  const Json json = parse_json(read_file(folder_.path("run/result.json")));
  EXPECT_GT(json["test"]["width"].get<double>(), 0);
  EXPECT_LE(json["test"]["coverage"].get<double>(), 1);
  EXPECT_EQ(json["test"]["intervals"]["coverage"].size(), 2u);
  config_.training.interval = 0;
  train("none");
  EXPECT_FALSE(load_trained(folder_.path("none")).predict(data_).half_widths.defined());
}

TEST_F(CalibratedRun, RunsAndModelsOfAnEarlierVersionAreNotCalibrated) {
  train("run");
  const std::string path = folder_.path("run");
  EXPECT_EQ(read_run_config(path).training.calibration, CalibrationRule::Automatic);
  Json config = parse_json(read_file(path + "/config.json"));
  for (const char* key : {"calibration", "interval"}) config["training"].erase(key);
  replace_file(path + "/config.json", config.dump());
  EXPECT_EQ(read_run_config(path).training.calibration, CalibrationRule::None);
  EXPECT_EQ(read_run_config(path).training.interval, 0);
  NamedTensors file = load_safetensors(path + "/model.safetensors");
  file.metadata.erase("calibration");
  const std::string old = folder_.path("old.safetensors");
  save_safetensors(old, file);
  EXPECT_TRUE(load_trained(old).calibration.is_identity());
  for (const char* text :
       {R"({"scale": -1, "bias": []})", R"({"scale": 1, "bias": [1, 2]})", "{}",
        R"({"scale": 1, "power": -1, "typical": 1, "bias": []})",
        R"({"scale": 1, "power": 1, "typical": 0, "bias": []})", R"({"scale": 1, "power": 1, "bias": []})"}) {
    file.metadata["calibration"] = text;
    save_safetensors(old, file);
    EXPECT_NE(refusal([&] { load_trained(old); }).find("damaged"), std::string::npos) << text;
  }
  file.metadata["calibration"] = R"({"scale": 2, "bias": [1]})";
  file.metadata["intervals"] = R"({"level": 0.9, "pooled": [1, 2, 3], "ahead": []})";
  save_safetensors(old, file);
  EXPECT_NE(refusal([&] { load_trained(old); }).find("damaged"), std::string::npos);
}

}  // namespace
}  // namespace fastweights
