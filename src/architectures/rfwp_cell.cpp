#include "architectures/rfwp_cell.h"

#include "fastweights/tensor.h"

namespace fastweights {

RfwpCell::Projections RfwpCell::project(const Tensor& x) const {
  const int64_t d = norm.weight.size(0);
  const Tensor written = layer_norm(norm, linear(input, x));
  const Tensor logits = linear(query, layer_norm(query_norm, linear(query_input, x)));
  return {at::linear(written, merge.weight.narrow(1, 0, d), merge.bias),
          at::softmax(logits.view({x.size(0), wiring.heads, wiring.key_width}), -1)};
}

Tensor RfwpCell::write(const Tensor& projected, const Tensor& h, const Tensor& w) const {
  const int64_t d = norm.weight.size(0);
  const Tensor state = merged == MergedState::Tanh ? at::tanh(h) : h;
  const Tensor both = projected + at::linear(state, merge.weight.narrow(1, d, d));
  const Tensor packed = linear(program, both).view({h.size(0), wiring.heads, -1});  // k, v, b of each head
  const nn::Program p = nn::split_program(packed, wiring);
  return w + wiring.rule.slope(p.k, p.v, p.beta, w);
}

Tensor RfwpCell::read(const Tensor& q, const Tensor& w) const {
  const Samples y = {linear(out, nn::read(wiring, w, q)), {}};
  return nn::feed_forward(ff, y, wiring.products).value;
}

MergedState published_merging(const Rule& rule) {
  return rule.slope.kernel == RuleKernel::Hebb ? MergedState::Tanh : MergedState::Raw;
}

nn::Wiring rfwp_wiring(const Rule& rule, int64_t size, int64_t heads) {
  return {.rule = rule, .heads = heads, .key_width = size / heads, .value_width = size / heads};
}

RfwpCell make_rfwp_cell(const RfwpSizes& sizes, const Rule& rule, nn::ParameterMaker& make) {
  const int64_t d = sizes.size;
  RfwpCell cell;
  cell.wiring = rfwp_wiring(rule, d, sizes.heads);
  cell.merged = published_merging(rule);
  cell.input = make.linear("write.input", sizes.inputs, d);
  cell.norm = make.layer_norm("write.norm", d);
  cell.merge = make.linear("write.merge", 2 * d, d);
  cell.program = make.linear("write.program", d, 2 * d + sizes.heads);
  cell.query_input = make.linear("read.input", sizes.inputs, d);
  cell.query_norm = make.layer_norm("read.norm", d);
  cell.query = make.linear("read.query", d, d);
  cell.out = make.linear("read.out", d, d);
  cell.ff = make.feed_forward("read.ff", d, sizes.feed_forward);
  return cell;
}

}  // namespace fastweights
