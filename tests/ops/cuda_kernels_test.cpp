#include "ops/cuda_kernel_cases.h"

namespace fastweights::kernels {
namespace {

using cuda::Kind;
using cuda::Scope;

TEST(CudaKernels, SharedPrograms) {
  expect_agreement<Kind<8, true, phi(ScanPhi::Tanh), 4, Scope::Stages>>(
      {.phi = ScanPhi::Tanh, .width = 8, .heads = 5, .stages = 4});
  expect_agreement<Kind<5, true, phi(ScanPhi::Difference), 4, Scope::Stages>>(
      {.phi = ScanPhi::Difference,
       .matrix = ScanMatrix::Transposed,
       .width = 5,
       .heads = 3,
       .stages = 4,
       .s_rows = 4});
  expect_agreement<Kind<16, true, phi(ScanPhi::Softmax), 4, Scope::Stages>>(
      {.phi = ScanPhi::Softmax, .width = 13, .heads = 2, .stages = 4, .beta_rows = 4});
}

TEST(CudaKernels, AProgramForEachStage) {
  expect_agreement<Kind<20, false, phi(ScanPhi::Tanh), 4, Scope::Stages>>(
      {.phi = ScanPhi::Tanh, .width = 20, .heads = 2, .stages = 4, .p_rows = 4, .s_rows = 4, .beta_rows = 4});
  expect_agreement<Kind<4, false, phi(ScanPhi::Difference), 4, Scope::Stages>>(
      {.phi = ScanPhi::Difference, .width = 3, .heads = 9, .stages = 4, .p_rows = 4});
  expect_agreement<Kind<64, false, -1, 0, Scope::Stages>>({.phi = ScanPhi::Softmax,
                                                           .width = 33,
                                                           .heads = 1,
                                                           .stages = 2,
                                                           .p_rows = 2,
                                                           .s_rows = 2,
                                                           .beta_rows = 2});
}

TEST(CudaKernels, HebbsRuleKeepsNoMatrices) {
  expect_agreement<Kind<8, true, phi(ScanPhi::Value), 4, Scope::Stages>>(
      {.phi = ScanPhi::Value, .width = 6, .heads = 2, .stages = 4});
  expect_agreement<Kind<8, false, -1, 0, Scope::StageExtras>>({.phi = ScanPhi::Value,
                                                               .width = 8,
                                                               .heads = 3,
                                                               .stages = 3,
                                                               .p_rows = 3,
                                                               .slopes = true,
                                                               .dt_gradient = true});
}

TEST(CudaKernels, QueriesSlopesAndDt) {
  for (const ScanRead read : {ScanRead::Along, ScanRead::Across}) {
    expect_agreement<Kind<8, false, -1, 0, Scope::StageExtras>>({.phi = ScanPhi::Tanh,
                                                                 .width = 7,
                                                                 .heads = 3,
                                                                 .stages = 4,
                                                                 .p_rows = 4,
                                                                 .s_rows = 4,
                                                                 .beta_rows = 4,
                                                                 .queries = 2,
                                                                 .read = read,
                                                                 .slopes = true,
                                                                 .dt_gradient = true});
    expect_agreement<Kind<16, false, -1, 0, Scope::StageExtras>>({.phi = ScanPhi::Softmax,
                                                                  .matrix = ScanMatrix::Transposed,
                                                                  .width = 10,
                                                                  .heads = 2,
                                                                  .stages = 2,
                                                                  .queries = 1,
                                                                  .read = read,
                                                                  .slopes = true,
                                                                  .dt_gradient = true});
  }
}

}  // namespace
}  // namespace fastweights::kernels
