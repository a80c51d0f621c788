#include "fastweights/error.h"
#include "systems/row_memory.h"
#include "systems/rows.h"

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

class DiscreteFwp : public ComparedSystem {
 public:
  DiscreteFwp(const ModelConfig& config, const ModelOptions& options) {
    nn::ParameterMaker make(options.seed, options.type);
    const int64_t d = config.hidden_size,
                  rates = config.system == System::LinearTransformer ? 0 : config.heads;
    const int64_t hidden = config.feed_forward_size > 0 ? config.feed_forward_size : 4 * d;
    embed_ = make.linear("embed", 1 + 2 * config.channels, d);
    static_ = make_static_net(config, d, make);
    for (int64_t l = 0; l < config.layers; ++l) {
      const std::string name = message("layers.", l);
      FwpBlock block;
      block.norm = make.layer_norm(name + ".norm", d);
      block.slow = make.linear(name + ".slow", d, 3 * d + rates, nn::Bias::No);
      if (config.system == System::RecurrentFwp)
        block.again = make.linear(name + ".again", d, 3 * d + rates, nn::Bias::No);
      block.out = make.linear(name + ".out", d, d, nn::Bias::No);
      block.ff = make.feed_forward(name + ".feed_forward", d, hidden);
      blocks_.push_back(block);
    }
    head_ = make.linear("head", d, config.outputs);
    parameters_ = make.parameters();
  }

  std::shared_ptr<ComparedSystem> copy() const override { return std::make_shared<DiscreteFwp>(*this); }

  ModelOutput forward(const ModelConfig& config, const CheckedInput& checked,
                      const ForwardOptions& options) const override {
    const RowData rows = make_rows(config, checked.series);
    const OutputRows outputs = output_rows(config, checked, rows);
    const Tensor offsets = checked.series.offsets, read = rows.packed.rows.index_select(0, outputs.rows);
    Tensor x = linear(embed_, rows.input().index_select(0, rows.packed.packed));
    if (static_) {
      const Tensor lengths = offsets.slice(0, 1) - offsets.slice(0, 0, -1);
      x = x + (*static_)(checked.static_features).repeat_interleave(lengths, 0);
    }
    RowReads reads;
    for (size_t l = 0; l < blocks_.size(); ++l) {
      const FwpBlock& block = blocks_[l];
      const bool last = l + 1 == blocks_.size();
      const RowOrder order = {rows.packed, offsets, last ? read : Tensor(), checked.requested.offsets};
      const Tensor numbers = linear(block.slow, layer_norm(block.norm, x));
      reads = fast_weights(config, block, order, numbers.view({x.size(0), config.heads, -1}));
      x = x + linear(block.out, reads.y.reshape(x.sizes()));
      x = nn::feed_forward(block.ff, {x, {}}, Products::Fast).value;
    }
    ModelOutput result = read_states(config, options, head_, checked, x.index_select(0, read), reads.w);
    result.backend = reads.backend;
    result.steps = rows.packed.steps();
    return result;
  }

 private:
  static RowReads fast_weights(const ModelConfig& config, const FwpBlock& block, const RowOrder& order,
                               const Tensor& numbers) {
    if (config.system == System::LinearTransformer) return linear_transformer(numbers, order, config.backend);
    if (config.system == System::DeltaNet) return delta_net(numbers, order, config.backend);
    return recurrent_fwp(numbers, order, block.again.weight);
  }

  nn::Linear embed_, head_;
  std::optional<StaticNet> static_;
  std::vector<FwpBlock> blocks_;
};

}  // namespace

std::shared_ptr<const ComparedSystem> make_discrete_fwp(const ModelConfig& config,
                                                        const ModelOptions& options) {
  return std::make_shared<DiscreteFwp>(config, options);
}

}  // namespace fastweights
