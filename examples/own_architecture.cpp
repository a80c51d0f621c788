#include <fastweights/model_config.h>
#include <fastweights/network.h>
#include <fastweights/train.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

using namespace fastweights;

/// An architecture of one's own: the mean of all observed values of a channel, through one hidden layer. It
/// is trained, saved, loaded and compared with a GRU by the library.

struct MeanNet {
  int64_t hidden_size = 16;
};

namespace {

class MeanNetwork : public Baseline {
 public:
  MeanNetwork(const ModelConfig& model, const MeanNet& options, const ModelOptions& made) : Baseline(model) {
    // for brevity: this changes LibTorch's global generator, which a local at::Generator would not
    at::manual_seed(made.seed);
    const auto layer = [&](const std::string& name, int64_t in, int64_t out) {
      const double scale = 1 / std::sqrt(static_cast<double>(in));
      const Tensor weight = (at::rand({out, in}, made.type) * 2 - 1) * scale;
      parameters_.emplace_back(name + ".weight", weight.set_requires_grad(true));
      parameters_.emplace_back(name + ".bias", at::zeros({out}, made.type).set_requires_grad(true));
    };
    layer("hidden", model.channels, options.hidden_size);
    layer("head", options.hidden_size, model.outputs);
  }

 protected:
  std::shared_ptr<Baseline> copy() const override { return std::make_shared<MeanNetwork>(*this); }

  // an output at time t reads the rows up to t
  ModelOutput forward(const ModelConfig&, const CheckedInput& input, const ForwardOptions&) const override {
    const RaggedSeries& series = input.series;
    std::vector<Tensor> means;
    for (int64_t b = 0; b < series.samples(); ++b) {
      const int64_t begin = series.offsets[b].item<int64_t>(), end = series.offsets[b + 1].item<int64_t>();
      for (int64_t i = input.requested.offsets[b].item<int64_t>();
           i < input.requested.offsets[b + 1].item<int64_t>(); ++i) {
        const double t = input.requested.times[i].item<double>();
        const Tensor seen =
            series.values.slice(0, begin, end).index({series.times.slice(0, begin, end) <= t});
        means.push_back(at::nan_to_num(seen.nanmean(0)));
      }
    }
    const auto& p = parameters_;
    const Tensor hidden = at::relu(at::linear(at::stack(means, 0), p[0].second, p[1].second));  // [M, d]
    const Tensor states = hidden.view({hidden.size(0), 1, 1, -1});
    return make_output(at::linear(hidden, p[2].second, p[3].second), input.requested, {states}, {});
  }
};

void fields(MeanNet& options, Fields& field) { field("hidden_size", options.hidden_size); }

void check(const ModelConfig&, const MeanNet& options) {
  if (options.hidden_size < 1) throw std::invalid_argument("[config] hidden_size must be at least 1");
}

std::shared_ptr<const Network> make(const ModelConfig& config, const MeanNet& options,
                                    const ModelOptions& made) {
  return std::make_shared<MeanNetwork>(config, options, made);
}

}  // namespace

/// The row of the registry, found beside the options.
const ArchitectureType& architecture_type(const MeanNet&) {
  static const ArchitectureType kType = make_architecture_type<MeanNet>(
      {.names = {{"mean_net", MeanNet{}}},
       .fields = fields,
       .check = check,
       .make = make,
       .models = {{"mean-net", "the mean of each channel through one hidden layer", "this example",
                   [](const DataShape&) -> Architecture { return MeanNet{.hidden_size = 32}; }}}});
  return kType;
}

int main() {
  add_architecture(architecture_type(MeanNet{}));
  // a name that nobody else has
  std::string folder = std::filesystem::temp_directory_path() / "fastweights-XXXXXX";
  if (!mkdtemp(folder.data())) return 1;
  const DataSet data = read_data("spirals");
  const Comparison comparison = compare(
      {.folder = folder, .models = {"mean-net", "gru"}, .setup = {.settings = {{"training.epochs", "5"}}}},
      data);
  std::printf("%s", markdown_table(comparison).c_str());
  // saved, loaded by name, used
  const TrainedModel trained = load_trained(folder + "/mean-net");
  const int64_t hidden = trained.model.config().architecture.get<MeanNet>().hidden_size;
  const Predictions predictions = trained.predict(data);
  std::printf("hidden size %lld, %lld predictions\n", static_cast<long long>(hidden),
              static_cast<long long>(predictions.outputs.size(0)));
  std::filesystem::remove_all(folder);
  bool fine = hidden == 32 && predictions.outputs.size(0) == data.samples();
  for (const ComparedModel& model : comparison.models) fine = fine && model.failure.empty();
  return fine && comparison.models.size() == 2 ? 0 : 1;
}
