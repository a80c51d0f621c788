#include "ops/scan/grouped.h"

namespace fastweights {
namespace {

// step n of all samples that have it
struct StepGroup {
  ScanInput rows;   // k, v, beta, dt and q of N rows
  Tensor samples;   // [N] int64: the sample of each
  Tensor position;  // [N] int64: its row in the batch
};

std::vector<StepGroup> groups_of(const ScanInput& input) {
  const Tensor lengths = input.offsets.slice(0, 1) - input.offsets.slice(0, 0, -1);
  const int64_t longest = lengths.max().item<int64_t>();
  std::vector<StepGroup> groups(longest);
  if (longest == 0) return groups;
  std::vector<Tensor> order;
  std::vector<int64_t> counts;
  for (int64_t n = 0; n < longest; ++n) {
    groups[n].samples = at::nonzero(lengths > n).squeeze(1);
    groups[n].position = input.offsets.index_select(0, groups[n].samples) + n;
    order.push_back(groups[n].position);
    counts.push_back(groups[n].position.size(0));
  }
  // select all steps at once: the gradient of one that is selected alone is as long as that of all
  const Tensor all = at::cat(order, 0);
  for (const auto member : {&ScanInput::k, &ScanInput::v, &ScanInput::beta, &ScanInput::dt, &ScanInput::q}) {
    if (!(input.*member).defined()) continue;
    const std::vector<Tensor> parts = at::split_with_sizes((input.*member).index_select(0, all), counts, 0);
    for (int64_t n = 0; n < longest; ++n) groups[n].rows.*member = parts[n];
  }
  return groups;
}

// from steps of all samples back to the rows of the batch
Tensor by_row(const std::vector<Tensor>& reads, const std::vector<StepGroup>& groups, const ScanInput& input,
              Read read) {
  const Tensor& q = input.q;
  if (reads.empty())
    return at::empty({0, q.size(1), q.size(2), q.size(3), input.w0.size(read == Read::Plain ? 2 : 3)},
                     q.options());
  std::vector<Tensor> positions;
  for (const StepGroup& group : groups) positions.push_back(group.position);
  const Tensor order = at::argsort(at::cat(positions, 0), int64_t{0}, /*descending=*/false);
  return at::cat(reads, 0).index_select(0, order);
}

}  // namespace

ScanOutput grouped_scan(const ScanInput& input, const ScanOptions& options) {
  const std::vector<StepGroup> groups = groups_of(input);
  std::vector<Tensor> ys, dys, states = {input.w0};
  for (const StepGroup& group : groups) {
    const Tensor w = states.back().index_select(0, group.samples);
    const DefinitionStep step = definition_step(group.rows, options, w);
    states.push_back(states.back().index_copy(0, group.samples, step.next));
    if (!input.q.defined()) continue;
    if (options.reads != ScanReads::Slopes) ys.push_back(stage_reads(step.w, group.rows.q, options.read));
    if (options.reads != ScanReads::Weights) dys.push_back(stage_reads(step.dw, group.rows.q, options.read));
  }
  const Tensor counts = input.output_offsets.slice(0, 1) - input.output_offsets.slice(0, 0, -1);
  const Tensor sample = at::arange(counts.size(0), at::kLong).repeat_interleave(counts);
  ScanOutput out;
  out.w = at::stack(states, 0).index({input.output_steps, sample});
  out.backend = "reference";
  if (!input.q.defined()) return out;
  if (options.reads != ScanReads::Slopes) out.y = by_row(ys, groups, input, options.read);
  if (options.reads != ScanReads::Weights) out.dy = by_row(dys, groups, input, options.read);
  return out;
}

}  // namespace fastweights
