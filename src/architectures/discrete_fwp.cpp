#include "architectures/row_memory.h"
#include "architectures/row_network.h"
#include "base/error.h"
#include "model/architecture_spec.h"
#include "model/output_index.h"
#include "tensor/device.h"

/// Fast weight programmers that go from row to row. Rows of gap, values and mask are embedded, static
/// features added, and then, block upon block and with W_0 = 0 in every head,
///
///     q, k, v, b = slow(norm(x))
///     linear transformer (Katharopoulos et al. 2020), f(x) = elu(x) + 1:
///         W_n = W_{n-1} + v f(k)^T,  z_n = z_{n-1} + f(k),  y_n = W_n f(q) / (z_n . f(q) + 1e-6)
///     delta net (Schlag et al. 2021), f = softmax:
///         W_n = W_{n-1} + sigmoid(b) (v - W_{n-1} f(k)) f(k)^T,  y_n = W_n f(q)
///     recurrent (Irie et al. 2021): a delta net with q, k, v, b = slow(norm(x)) + again(tanh(y_{n-1}))
///     x = x + out(y),  x = x + feed_forward(x)

namespace fastweights {
namespace {

struct FwpBlock {
  nn::LayerNorm norm;
  nn::Linear slow, again, out;
  nn::FeedForward ff;
};

// rows in the order of the batch
struct DiscreteRows final : RowExtra {
  Tensor sample;      // [R] int64: of each row
  Tensor output;      // [M] int64: the row that each output reads
  PickedRows picked;  // the same in packed order, for a recurrence through the slow net
  std::optional<Chunks> chunks;
};

class DiscreteFwpNetwork : public RowNetwork {
 public:
  DiscreteFwpNetwork(const ModelConfig& model, const DiscreteFwp& config, const ModelOptions& options)
      : RowNetwork(model) {
    FW_CHECK(options.device.is_cpu() || config.backend != Backend::Cpu,
             "[model] backend cpu cannot be used: the model is on a GPU");
    nn::ParameterMaker make(options.seed, options.type);
    const int64_t d = config.hidden_size, rates = config.memory == RowMemory::Sum ? 0 : config.heads;
    const int64_t hidden = config.feed_forward_size > 0 ? config.feed_forward_size : 4 * d;
    embed_ = make.linear("embed", 1 + 2 * model.channels, d);
    static_ = make_static_net(shared(model), d, make);
    for (int64_t l = 0; l < config.layers; ++l) {
      const std::string name = message("layers.", l);
      FwpBlock block;
      block.norm = make.layer_norm(name + ".norm", d);
      block.slow = make.linear(name + ".slow", d, 3 * d + rates, nn::Bias::No);
      if (config.memory == RowMemory::Recurrent)
        block.again = make.linear(name + ".again", d, 3 * d + rates, nn::Bias::No);
      block.out = make.linear(name + ".out", d, d, nn::Bias::No);
      block.ff = make.feed_forward(name + ".feed_forward", d, hidden);
      blocks_.push_back(block);
    }
    head_ = make.linear("head", d, model.outputs);
    parameters_ = make.parameters();
    place(options.device);
  }

 protected:
  std::shared_ptr<Baseline> copy() const override { return std::make_shared<DiscreteFwpNetwork>(*this); }
  SharedOptions shared(const ModelConfig& model) const override {
    return shared_options(model, model.architecture.get<DiscreteFwp>());
  }

  std::shared_ptr<const RowExtra> extra(const ModelConfig& model, const RowBatch& batch) const override {
    const RowMemory memory = model.architecture.get<DiscreteFwp>().memory;
    const Packed& packed = batch.rows.packed;
    const Tensor& offsets = batch.times.offsets;
    const Tensor lengths = offsets.slice(0, 1) - offsets.slice(0, 0, -1);
    auto result = std::make_shared<DiscreteRows>();
    result->sample = on_device(at::arange(batch.samples(), at::kLong).repeat_interleave(lengths), device());
    result->output = packed.packed_to_batch.index_select(0, batch.outputs.packed_rows);
    if (memory == RowMemory::Recurrent) {
      result->picked = picked_rows(packed, batch.outputs.on_cpu, device());
    } else if (!device().is_cpu()) {
      result->chunks = cut_chunks(offsets, device());
    }
    return result;
  }

  ModelOutput forward(const ModelConfig& model, const RowBatch& batch,
                      const PassOptions& options) const override {
    const DiscreteFwp& config = model.architecture.get<DiscreteFwp>();
    const RowData& rows = batch.rows;
    const auto& own = batch.get<DiscreteRows>();
    Tensor x = linear(embed_, rows.input.index_select(0, rows.packed.batch_to_packed));
    if (static_) x = x + rows_at((*static_)(batch.static_features), own.sample);
    RowOrder order = {.packed = rows.packed, .offsets = batch.times.offsets, .chunks = own.chunks};
    RowReads reads;
    for (size_t l = 0; l < blocks_.size(); ++l) {
      const FwpBlock& block = blocks_[l];
      if (l + 1 == blocks_.size()) {
        order.outputs = own.output;
        order.output_offsets = batch.requested.times.offsets;
        order.picked = own.picked;
      }
      const Tensor projections = linear(block.slow, layer_norm(block.norm, x));
      reads = fast_weights(config, block, order, projections.view({x.size(0), config.heads, -1}));
      x = x + linear(block.out, reads.y.reshape(x.sizes()));
      x = nn::feed_forward(block.ff, {x, {}}, Products::Fast).value;
    }
    ModelOutput result =
        read_states(shared(model), options, head_, batch.requested, rows_at(x, own.output), reads.w);
    result.backend = reads.backend;
    result.steps = rows.packed.steps();
    return result;
  }

 private:
  static RowReads fast_weights(const DiscreteFwp& config, const FwpBlock& block, const RowOrder& order,
                               const Tensor& projections) {
    if (config.memory == RowMemory::Sum) return linear_transformer(projections, order, config.backend);
    if (config.memory == RowMemory::Delta) return delta_net(projections, order, config.backend);
    return recurrent_fwp(projections, order, block.again.weight);
  }

  nn::Linear embed_, head_;
  std::optional<StaticNet> static_;
  std::vector<FwpBlock> blocks_;
};

std::string memory_name(const DiscreteFwp& o) {
  if (o.memory == RowMemory::Sum) return "linear_transformer";
  return o.memory == RowMemory::Delta ? "delta_net" : "recurrent_fwp";
}

template <RowMemory memory>
Architecture discrete_for_data(const DataShape& shape) {
  DiscreteFwp o = fitted(DiscreteFwp{.memory = memory}, shape);
  o.control.path = Hold{};
  o.heads = 8;
  o.feed_forward_size = 128;
  return o;
}

void visit_options(DiscreteFwp& o, Fields& visit) {
  visit("control", o.control);
  // a recurrence through the slow net has no kernels to choose from
  if (o.memory != RowMemory::Recurrent) visit("backend", o.backend);
  visit("heads", o.heads);
  visit("feed_forward_size", o.feed_forward_size);
  visit("layers", o.layers);
  visit_common(o, visit);
}

void check(const ModelConfig& model, const DiscreteFwp& o) {
  const SharedOptions shared = shared_options(model, o);
  check_rows(shared);
  check_heads(o.hidden_size, o.heads, o.feed_forward_size);
  check_layers("layers", o.layers, 1);
  FW_CHECK(o.backend != Backend::Cuda, "[config] backend cuda needs architecture fast_weights");
  check_count(base_parameters(shared, o.layers) +
                  feed_forward_parameters(static_cast<double>(o.hidden_size), o.feed_forward_size, o.layers),
              "parameters",
              size_keys(shared, {{"layers", o.layers}, {"feed_forward_size", o.feed_forward_size}}));
}

std::shared_ptr<const Network> make(const ModelConfig& model, const DiscreteFwp& o,
                                    const ModelOptions& options) {
  return std::make_shared<DiscreteFwpNetwork>(model, o, options);
}

}  // namespace

const ArchitectureType& architecture_type(const DiscreteFwp&) {
  static const ArchitectureType kType = also_on_gpus(make_architecture_type<DiscreteFwp>(
      {.names = {{"linear_transformer", DiscreteFwp{.memory = RowMemory::Sum}},
                 {"delta_net", DiscreteFwp{.memory = RowMemory::Delta}},
                 {"recurrent_fwp", DiscreteFwp{.memory = RowMemory::Recurrent}}},
       .name = memory_name,
       .fields = visit_options,
       .check = check,
       .make = make,
       .models = {{"linear-transformer", "fast weights by sums of outer products, row by row",
                   "Katharopoulos et al. 2020", discrete_for_data<RowMemory::Sum>},
                  {"delta-net", "fast weights by the delta rule, row by row", "Schlag et al. 2021",
                   discrete_for_data<RowMemory::Delta>},
                  {"rfwp", "a delta net whose slow net also reads the previous output of its fast net",
                   "Irie et al. 2021", discrete_for_data<RowMemory::Recurrent>}}}));
  return kType;
}

}  // namespace fastweights
