#include "kernels/cuda/check.cuh"
#include "ops/scan/cuda/net_backward.cuh"

namespace fastweights::kernels {
namespace {

using cuda::kNetMost;
using cuda::kNetTile;
using cuda::NetTeam;

// blocks that work side by side; each leaves partial sums
constexpr int64_t kForwardBlocks = 132 * 12, kBackwardBlocks = 132 * 4;
// projections of a row up to which these kernels are faster than a library's product and what follows it: on
// an H200 they take 60 % of its time with 8 of them, and 120 % with 24
constexpr int kNetPitch = 12;
// what every device since 8.0 has, and what leaves room for a few blocks
constexpr size_t kMostRoom = 99 * 1024, kGoodRoom = 64 * 1024;

template <typename T>
__global__ void __launch_bounds__(kNetMost)
    net_kernel(const __grid_constant__ CudaNet net, CudaProgramOutput out) {
  cuda::net_forward<T>(net, out);
}

template <typename T>
__global__ void __launch_bounds__(kNetMost, 4)
    net_backward_kernel(const __grid_constant__ CudaNet net, CudaProgramOutput made, CudaProgramOutput grads,
                        CudaNetGradients to) {
  cuda::net_backward<T>(net, made, grads, to);
}

int lanes_of(int64_t width) { return width <= 4 ? 4 : width <= 8 ? 8 : width <= 16 ? 16 : 32; }

// shared memory of a block in bytes, as NetRoom and NetSums divide it
enum class Sums { Without, With };
size_t room_of(int64_t channels, int64_t width, int threads, Sums with) {
  const size_t pitch = cuda::net_pitch(channels), lanes = lanes_of(width), each = width > 32 ? 2 : 1;
  const size_t teams = threads / lanes, columns = 2 * each * pitch * threads, rates = teams * (pitch + 1);
  const size_t forward = columns + 2 * kNetTile * (pitch + 1) + rates;
  const size_t more = columns + rates + teams * cuda::kNetRows + 2 * (threads / 32) * kNetTile;
  return (forward + (with == Sums::With ? more : 0)) * sizeof(float);
}

struct Grid {
  int threads;
  unsigned rows, heads;  // blocks
};

Grid grid_of(const CudaNet& net, int64_t most_blocks) {
  const int64_t lanes = lanes_of(net.width), tiles = (net.rows + kNetTile - 1) / kNetTile;
  int threads = kNetMost;
  const auto enough = [&](int fewer) { return net.heads * lanes <= fewer; };
  while (threads > 32 &&
         (enough(threads / 2) || room_of(net.channels, net.width, threads, Sums::With) > kGoodRoom))
    threads /= 2;
  const int64_t teams = threads / lanes, groups = (net.heads + teams - 1) / teams;
  const int64_t blocks = most_blocks / groups > 0 ? most_blocks / groups : 1;
  return {threads, static_cast<unsigned>(tiles < blocks ? tiles : blocks), static_cast<unsigned>(groups)};
}

// calls with the team that a width needs
template <typename Launch>
void with_team(int64_t width, const Launch& launch) {
  if (width <= 4) return launch.template operator()<NetTeam<4, 1>>();
  if (width <= 8) return launch.template operator()<NetTeam<8, 1>>();
  if (width <= 16) return launch.template operator()<NetTeam<16, 1>>();
  if (width <= 32) return launch.template operator()<NetTeam<32, 1>>();
  launch.template operator()<NetTeam<32, 2>>();
}

template <typename Kernel>
size_t allowed(Kernel kernel, size_t bytes) {
  constexpr size_t kPlain = 48 * 1024;
  if (bytes > kPlain)
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  return bytes;
}

}  // namespace

bool cuda_net_pays(int64_t channels, int64_t width) {
  return cuda::net_pitch(channels) <= kNetPitch && room_of(channels, width, 32, Sums::With) <= kMostRoom;
}

void cuda_net(const CudaNet& net, const CudaProgramOutput& out, void* stream) {
  if (net.rows == 0) return;
  const Grid grid = grid_of(net, kForwardBlocks);
  with_team(net.width, [&]<typename T>() {
    const size_t room = allowed(net_kernel<T>, room_of(net.channels, net.width, grid.threads, Sums::Without));
    net_kernel<T>
        <<<dim3(grid.rows, grid.heads), grid.threads, room, static_cast<cudaStream_t>(stream)>>>(net, out);
  });
  cuda::check_launch("net");
}

CudaNetParts cuda_net_parts(const CudaNet& net) {
  if (net.rows == 0) return {0, 0};
  const Grid grid = grid_of(net, kBackwardBlocks);
  return {grid.rows, grid.heads};
}

void cuda_net_backward(const CudaNet& net, const CudaProgramOutput& made, const CudaProgramOutput& grads,
                       const CudaNetGradients& to, void* stream) {
  if (net.rows == 0) return;
  const Grid grid = grid_of(net, kBackwardBlocks);
  with_team(net.width, [&]<typename T>() {
    const size_t room =
        allowed(net_backward_kernel<T>, room_of(net.channels, net.width, grid.threads, Sums::With));
    net_backward_kernel<T>
        <<<dim3(grid.rows, grid.heads), grid.threads, room, static_cast<cudaStream_t>(stream)>>>(net, made,
                                                                                                 grads, to);
  });
  cuda::check_launch("net");
}

}  // namespace fastweights::kernels
