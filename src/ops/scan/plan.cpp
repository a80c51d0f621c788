#include "ops/scan/plan.h"

#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace fastweights {

using kernels::ScanForm;
using kernels::ScanPlan;

namespace {

kernels::ScanPhi phi_of(RuleKernel kernel) {
  switch (kernel) {
    case RuleKernel::Hebb:
      return kernels::ScanPhi::Value;
    case RuleKernel::DeltaPost:
      return kernels::ScanPhi::Tanh;
    case RuleKernel::OjaSoftmax:
      return kernels::ScanPhi::Softmax;
    default:
      return kernels::ScanPhi::Difference;
  }
}

}  // namespace

bool is_oja(const Rule& rule) {
  return rule.slope.kernel == RuleKernel::Oja || rule.slope.kernel == RuleKernel::OjaSoftmax;
}

bool has_flow(const Rule& rule) {
  return rule.slope.kernel != RuleKernel::None && rule.slope.kernel != RuleKernel::OjaSoftmax;
}

std::string kernel_refusal(const Rule& rule, const Method& method, int64_t value_width, int64_t key_width) {
  if (rule.slope.kernel == RuleKernel::None) return "rule " + rule.name + " has no kernel";
  if (value_width != key_width) return message("values are ", value_width, " wide and keys ", key_width);
  if (key_width > kernels::kScanWidth)
    return message("heads are ", key_width, " wide, more than ", kernels::kScanWidth);
  if (std::holds_alternative<Adams>(method))
    return message("method ", method_name(method), " is not a Runge-Kutta method");
  const Tableau* tableau = std::get_if<Tableau>(&method);
  if (tableau && tableau->stages() > kernels::kScanStages)
    return message("method ", tableau->name, " has ", tableau->stages(), " stages, more than ",
                   kernels::kScanStages);
  return "";
}

ScanForm form_of(KeyForm form) { return form == KeyForm::Softmax ? ScanForm::Softmax : ScanForm::Raw; }
ScanForm form_of(ValueForm form) { return form == ValueForm::Tanh ? ScanForm::Tanh : ScanForm::Raw; }
ScanForm form_of(LearningRate rate) {
  return rate == LearningRate::Sigmoid ? ScanForm::Sigmoid : ScanForm::Raw;
}

ScanPlan scan_plan(const ScanOptions& options, int64_t heads, int64_t width) {
  ScanPlan plan = {};
  plan.phi = phi_of(options.rule.slope.kernel);
  plan.matrix = is_oja(options.rule) ? kernels::ScanMatrix::Transposed : kernels::ScanMatrix::Plain;
  plan.width = width;
  plan.heads = heads;
  const bool along = (options.read == Read::Plain) != is_oja(options.rule);
  plan.read = along ? kernels::ScanRead::Along : kernels::ScanRead::Across;
  plan.stages = 1;
  plan.b[0] = 1;
  if (const Tableau* tableau = std::get_if<Tableau>(&options.method)) {
    plan.stages = tableau->stages();
    for (int i = 0; i < plan.stages; ++i) {
      plan.b[i] = tableau->b[i];
      for (int j = 0; j < i; ++j) plan.a[i][j] = tableau->a[i][j];
    }
  } else {
    plan.step = kernels::ScanStep::Flow;
  }
  return plan;
}

void set_given(ScanPlan& plan, const ScanInput& input, const ScanOptions& options) {
  plan.source = kernels::ScanSource::Given;
  plan.queries = input.q.defined() && options.reads != ScanReads::Slopes ? input.q.size(2) : 0;
  const bool oja = is_oja(options.rule);
  plan.p = {(oja ? input.v : input.k).size(1), 0, 0, ScanForm::Raw};
  plan.s = {(oja ? input.k : input.v).size(1), 0, 0, ScanForm::Raw};
  plan.beta = {input.beta.size(1), 0, 0, ScanForm::Raw};
  plan.z_rows = 1;
}

Tensor scan_buffer(at::IntArrayRef shape, const at::TensorOptions& options) {
  static const bool kPoison = std::getenv("FASTWEIGHTS_POISON") != nullptr;
  return kPoison ? at::full(shape, std::nan(""), options) : at::empty(shape, options);
}

}  // namespace fastweights
