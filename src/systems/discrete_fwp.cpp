#include "fastweights/error.h"
#include "fastweights/scan.h"
#include "ops/chunkwise.h"
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

constexpr double kSmall = 1e-6;  // as published

struct FwpBlock {
  nn::LayerNorm norm;
  nn::Linear slow, again, out;
  nn::FeedForward ff;
};

// what a block's fast weights said
struct RowReads {
  Tensor y;  // [R, H, h]
  Tensor w;  // [M, H, h, h]: behind the rows of outputs
  std::string backend;
};

// rows of a batch, one sample after another
struct Order {
  const Packed& packed;
  Tensor offsets;         // [B + 1]
  Tensor output_steps;    // [M]: rows of the sample up to an output
  Tensor output_offsets;  // [B + 1]
};

// a unit step of Euler is the rule itself, and W_n q = W_{n-1} q + W' q
RowReads scan_rows(const Order& order, const RowProgramme& rows, const ScanOptions& options) {
  const int64_t samples = order.offsets.size(0) - 1, heads = rows.k.size(1), width = rows.k.size(2);
  ScanInput in;
  in.k = rows.k.unsqueeze(1);
  in.v = rows.v.unsqueeze(1);
  in.beta = rows.beta.unsqueeze(1);
  in.q = rows.q.unsqueeze(1).unsqueeze(1);
  const auto plain = rows.k.options().requires_grad(false);
  in.dt = at::ones({rows.k.size(0)}, plain);
  in.w0 = at::zeros({samples, heads, width, width}, plain);
  in.offsets = order.offsets;
  in.output_steps = order.output_steps;
  in.output_offsets = order.output_offsets;
  const ScanOutput out = scan(in, options);
  return {(out.y + out.dy).view(rows.v.sizes()), out.w, out.backend};
}

RowReads linear_transformer(const Tensor& numbers, const Order& order) {
  const std::vector<Tensor> parts = numbers.chunk(3, 2);
  const Tensor q = at::elu(parts[0]) + 1, k = at::elu(parts[1]) + 1, &v = parts[2];
  // values have a one behind them, so that W has z below it
  const Tensor ones = at::ones({v.size(0), v.size(1), 1}, v.options().requires_grad(false));
  const Tensor sums = chunkwise_reads({q, k, at::cat({v, ones}, 2), {}, order.offsets});
  const int64_t width = v.size(2);
  return {sums.narrow(2, 0, width) / (sums.narrow(2, width, 1) + kSmall), {}, "reference"};
}

RowReads delta_net(const Tensor& numbers, const Order& order, Backend backend) {
  const int64_t width = numbers.size(2) / 3;
  const auto part = [&](int64_t i) { return numbers.narrow(2, i * width, width); };
  const Tensor beta = at::sigmoid(numbers.select(2, 3 * width));
  const RowProgramme rows = {at::softmax(part(0), -1), at::softmax(part(1), -1), part(2), beta,
                             order.offsets};
  return scan_rows(order, rows,
                   {.rule = delta_pre(), .method = euler(), .reads = ScanReads::Both, .backend = backend});
}

// row by row, since what is read at a row is written with at the next
RowReads recurrent(const Tensor& numbers, const Order& order, const nn::Linear& again) {
  const Packed& packed = order.packed;
  const int64_t heads = numbers.size(1), width = numbers.size(2) / 3, all = heads * numbers.size(2);
  const std::vector<Tensor> steps = packed.split(numbers.view({-1, all}).index_select(0, packed.rows));
  const Tensor weight = again.weight.t();
  const auto plain = numbers.options().requires_grad(false);
  Tensor w = at::zeros({packed.going[0] * heads, width, width}, plain);
  Tensor y = at::zeros({packed.going[0], heads * width}, plain);
  std::vector<Tensor> reads;
  for (int64_t n = 0; n < packed.steps(); ++n) {
    const int64_t going = packed.going[n], lanes = going * heads;
    w = w.narrow(0, 0, lanes);
    const Tensor now = at::addmm(steps[n], at::tanh(y.narrow(0, 0, going)), weight).view({lanes, -1});
    const Tensor qk = at::softmax(now.narrow(1, 0, 2 * width).view({lanes, 2, width}), -1);
    const Tensor q = qk.narrow(1, 0, 1), k = qk.narrow(1, 1, 1);  // [G, 1, h]
    const Tensor beta = at::sigmoid(now.narrow(1, 3 * width, 1)), v = now.narrow(1, 2 * width, width);
    const Tensor g = beta * (v - at::bmm(w, k.transpose(1, 2)).squeeze(2));
    w = at::baddbmm(w, g.unsqueeze(2), k);
    y = at::bmm(w, q.transpose(1, 2)).view({going, -1});
    reads.push_back(y);
  }
  return {at::cat(reads, 0).index_select(0, packed.packed).view({-1, heads, width}), {}, "reference"};
}

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

  ModelOutput forward(const ModelConfig& config, const ModelInput& input,
                      const ForwardOptions& options) const override {
    const CheckedInput checked = check_system_input(config, type(), input);
    const RowData rows = make_rows(config, checked.series);
    const OutputRows outputs = output_rows(config, checked, rows);
    const Tensor offsets = checked.series.offsets, read = rows.packed.rows.index_select(0, outputs.rows);
    const Order order = {rows.packed, offsets, read - offsets.index_select(0, outputs.samples) + 1,
                         checked.wanted.offsets};
    Tensor x = linear(embed_, rows.input().index_select(0, rows.packed.packed));
    if (static_) {
      const Tensor lengths = offsets.slice(0, 1) - offsets.slice(0, 0, -1);
      x = x + (*static_)(checked.static_features).repeat_interleave(lengths, 0);
    }
    RowReads reads;
    for (const FwpBlock& block : blocks_) {
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
  static RowReads fast_weights(const ModelConfig& config, const FwpBlock& block, const Order& order,
                               const Tensor& numbers) {
    if (config.system == System::LinearTransformer) return linear_transformer(numbers, order);
    if (config.system == System::DeltaNet) return delta_net(numbers, order, config.backend);
    return recurrent(numbers, order, block.again);
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
