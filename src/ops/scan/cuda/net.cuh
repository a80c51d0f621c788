#pragma once

#include "ops/scan/cuda/fast.cuh"
#include "ops/scan/cuda/lanes.cuh"
#include "ops/scan/cuda/net.h"

/// A block does some heads for tiles of rows: a team of lanes for each head, and a lane for each number of
/// its key and value (two of heads wider than 32). Weights are in shared memory, a column for every lane;
/// rows are worked on eight at a time, so that a weight is fetched once for all of them. The rate of row i is
/// lane i's.

namespace fastweights::kernels::cuda {

inline constexpr int kNetRows = 8;    // at a time
inline constexpr int kNetTile = 16;   // in shared memory
inline constexpr int kNetMost = 128;  // threads of a block

// length of a row in shared memory: channels and a one, padded to a vector
__host__ __device__ constexpr int net_pitch(int64_t channels) {
  return static_cast<int>(channels + 4) / 4 * 4;
}

/// Which lanes do what.
template <int Lanes_, int Each_>
struct NetTeam {
  static constexpr int kLanes = Lanes_, kEach = Each_;
  static constexpr int kRates = kNetRows / Lanes_ > 0 ? kNetRows / Lanes_ : 1;  // rows whose rate is a lane's
};

/// Shared memory of a block, and who a thread is in it.
template <typename T>
struct NetRoom {
  const CudaNet& net;
  int pitch, threads, position, team, head;
  bool active;                       // whether this head exists
  float *key_weight, *value_weight;  // [each][pitch][threads]
  float* rate_weight;                // [teams][pitch + 1]
  float *x, *values;                 // [tile][pitch]: what keys and values are made of
  float *r, *value_r;                // [tile]
  float* end;

  __device__ NetRoom(const CudaNet& task, float* room)
      : net(task),
        pitch(net_pitch(task.channels)),
        threads(static_cast<int>(blockDim.x)),
        position(static_cast<int>(threadIdx.x) % T::kLanes),
        team(static_cast<int>(threadIdx.x) / T::kLanes) {
    const int teams = threads / T::kLanes;
    head = static_cast<int>(blockIdx.y) * teams + team;
    active = head < task.heads;
    key_weight = room;
    value_weight = key_weight + T::kEach * pitch * threads;
    x = value_weight + T::kEach * pitch * threads;
    values = separate() ? x + kNetTile * pitch : x;
    r = values + kNetTile * pitch;
    value_r = separate() ? r + kNetTile : r;
    rate_weight = value_r + kNetTile;
    end = rate_weight + teams * (pitch + 1);
  }

  __device__ bool separate() const { return net.values.x != nullptr; }
  __device__ const CudaMap& value_map() const { return separate() ? net.values : net.keys; }
  __device__ bool owns(int e) const { return active && position + 32 * e < net.width; }
  // projections of a map for each row, weights and what is added
  __device__ int columns(const CudaMap& map) const {
    return static_cast<int>(net.channels) + (map.r ? 2 : 1);
  }
  // rows of weights
  __device__ int64_t each() const { return separate() ? net.width + 1 : 2 * net.width + 1; }
  __device__ int64_t key_row(int e) const { return head * each() + position + 32 * e; }
  __device__ int64_t value_row(int e) const {
    return separate() ? head * net.width + position + 32 * e : head * each() + net.width + position + 32 * e;
  }
  __device__ int64_t rate_row() const { return head * each() + each() - 1; }
  __device__ float shift(const CudaMap& map, int64_t row) const {
    return map.r ? map.weight[row * columns(map) + net.channels + 1] : 0.0f;
  }
  // where a row has this lane's first number of k and v
  __device__ int64_t offset_of(int64_t row) const { return (row * net.heads + head) * net.width + position; }
  __device__ int64_t last() const { return net.steps ? *net.steps * net.times : net.rows; }
};

template <typename T>
__device__ void load_weights(const NetRoom<T>& room) {
  const int channels = static_cast<int>(room.net.channels);
  const auto weight_of = [&](const CudaMap& map, bool own, int64_t row, int c) {
    return own && c <= channels ? map.weight[row * room.columns(map) + c] : 0.0f;
  };
#pragma unroll
  for (int e = 0; e < T::kEach; ++e) {
    for (int c = 0; c < room.pitch; ++c) {
      const int at = (e * room.pitch + c) * room.threads + static_cast<int>(threadIdx.x);
      room.key_weight[at] = weight_of(room.net.keys, room.owns(e), room.key_row(e), c);
      room.value_weight[at] = weight_of(room.value_map(), room.owns(e), room.value_row(e), c);
    }
  }
  for (int c = room.position; c < room.pitch; c += T::kLanes)
    room.rate_weight[room.team * (room.pitch + 1) + c] =
        weight_of(room.net.keys, room.active, room.rate_row(), c);
}

// [x; 1] and the scale of a tile's rows; what is beyond the last one is zero
template <typename T>
__device__ void load_rows(const NetRoom<T>& room, const CudaMap& map, int64_t first, float* x, float* r) {
  const int channels = static_cast<int>(room.net.channels), pitch = room.pitch;
  const int count = static_cast<int>(min(static_cast<int64_t>(kNetTile), room.last() - first));
  for (int i = static_cast<int>(threadIdx.x); i < kNetTile * pitch; i += room.threads) {
    const int row = i / pitch, c = i % pitch;
    const bool inside = row < count;
    x[i] = inside && c < channels ? map.x[(first + row) * channels + c]
                                  : (inside && c == channels ? 1.0f : 0.0f);
  }
  for (int i = static_cast<int>(threadIdx.x); i < kNetTile; i += room.threads)
    r[i] = i < count ? (map.r ? map.r[first + i] : 1.0f) : 0.0f;
}

/// A lane's projections of eight rows.
template <typename T>
struct NetProjections {
  float key[T::kEach][kNetRows], value[T::kEach][kNetRows], rate[T::kRates];
};

// weight (x, y, z, w) . x
__device__ inline void add_product(float& sum, const float* weight, const float4& x) {
  sum += weight[0] * x.x;
  sum += weight[1] * x.y;
  sum += weight[2] * x.z;
  sum += weight[3] * x.w;
}

__device__ inline float4 four(const float* x) { return *reinterpret_cast<const float4*>(x); }

// W x + w of rows `from` .. `from` + 8 of the tile, without scale and shift
template <typename T>
__device__ void products(const NetRoom<T>& room, int from, NetProjections<T>& sums) {
  sums = {};
  const int pitch = room.pitch, threads = room.threads;
  const bool separate = room.separate();
  const float *x = room.x + from * pitch, *values = room.values + from * pitch;
  const float* rate = room.rate_weight + room.team * (pitch + 1);
  for (int c = 0; c < pitch; c += 4) {
    float key[T::kEach][4], value[T::kEach][4], weight[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      weight[k] = rate[c + k];
#pragma unroll
      for (int e = 0; e < T::kEach; ++e) {
        const int at = (e * pitch + c + k) * threads + static_cast<int>(threadIdx.x);
        key[e][k] = room.key_weight[at];
        value[e][k] = room.value_weight[at];
      }
    }
#pragma unroll
    for (int i = 0; i < kNetRows; ++i) {
      const float4 key_signal = four(x + i * pitch + c),
                   value_signal = separate ? four(values + i * pitch + c) : key_signal;
#pragma unroll
      for (int e = 0; e < T::kEach; ++e) {
        add_product(sums.key[e][i], key[e], key_signal);
        add_product(sums.value[e][i], value[e], value_signal);
      }
    }
#pragma unroll
    for (int k = 0; k < T::kRates; ++k)
      add_product(sums.rate[k], weight, four(x + (room.position + k * T::kLanes) % kNetRows * pitch + c));
  }
}

// a softmax over the keys of a row, in position
template <typename T>
__device__ void softmax(const NetRoom<T>& room, NetProjections<T>& projections, int i) {
  float largest = -INFINITY, sum = 0;
#pragma unroll
  for (int e = 0; e < T::kEach; ++e)
    largest = fmaxf(largest, room.owns(e) ? projections.key[e][i] : -INFINITY);
  largest = lanes_max<T::kLanes>(largest);
#pragma unroll
  for (int e = 0; e < T::kEach; ++e) {
    projections.key[e][i] =
        room.owns(e) ? fast_exp2(0.5f * kTwoLog2E * (projections.key[e][i] - largest)) : 0.0f;
    sum += projections.key[e][i];
  }
  const float scale = fast_reciprocal(lanes_sum<T::kLanes>(sum));
#pragma unroll
  for (int e = 0; e < T::kEach; ++e) projections.key[e][i] *= scale;
}

// the factor of a value by a mask
template <typename T>
__device__ float factor_of(const NetRoom<T>& room, int64_t row, int e) {
  const CudaNet& net = room.net;
  if (!net.mask) return 1.0f;
  return net
      .mask[(net.samples[row / net.times] * net.heads + room.head) * net.width + room.position + 32 * e];
}

// k and v of row `row`, the i-th of the eight; `at` is the offset of this lane in the first of the eight
template <typename T>
__device__ void store_row(const NetRoom<T>& room, const NetProjections<T>& projections, int64_t row, int i,
                          int64_t at, const CudaProgramOutput& out) {
  const CudaNet& net = room.net;
  const int stride = static_cast<int>(net.heads * net.width);
#pragma unroll
  for (int e = 0; e < T::kEach; ++e) {
    if (!room.owns(e)) continue;
    const float value = projections.value[e][i];
    out.k[at + i * stride + 32 * e] = projections.key[e][i];
    out.v[at + i * stride + 32 * e] =
        (net.value == ScanForm::Tanh ? fast_tanh(kTwoLog2E * value) : value) * factor_of(room, row, e);
  }
}

template <typename T>
__device__ void net_forward(const CudaNet& net, const CudaProgramOutput& out) {
  extern __shared__ float4 bytes[];
  const NetRoom<T> room(net, reinterpret_cast<float*>(bytes));
  load_weights(room);
  float key_shift[T::kEach], value_shift[T::kEach];
#pragma unroll
  for (int e = 0; e < T::kEach; ++e) {
    key_shift[e] = room.owns(e) ? room.shift(net.keys, room.key_row(e)) : 0.0f;
    value_shift[e] = room.owns(e) ? room.shift(room.value_map(), room.value_row(e)) : 0.0f;
  }
  const float rate_shift = room.active ? room.shift(net.keys, room.rate_row()) : 0.0f;
  const int64_t last = room.last();
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kNetTile; first < last;
       first += gridDim.x * kNetTile) {
    __syncthreads();
    load_rows(room, net.keys, first, room.x, room.r);
    if (room.separate()) load_rows(room, net.values, first, room.values, room.value_r);
    __syncthreads();
    for (int from = 0; from < kNetTile; from += kNetRows) {
      NetProjections<T> projections;
      products(room, from, projections);
      const int64_t at = room.offset_of(first + from);
#pragma unroll
      for (int i = 0; i < kNetRows; ++i) {
#pragma unroll
        for (int e = 0; e < T::kEach; ++e) {
          projections.key[e][i] = room.r[from + i] * projections.key[e][i] + key_shift[e];
          projections.value[e][i] = room.value_r[from + i] * projections.value[e][i] + value_shift[e];
        }
        if (net.key == ScanForm::Softmax) softmax(room, projections, i);
        if (first + from + i < last) store_row(room, projections, first + from + i, i, at, out);
      }
#pragma unroll
      for (int k = 0; k < T::kRates; ++k) {
        const int i = room.position + k * T::kLanes;
        if (i >= kNetRows || !room.active || first + from + i >= last) continue;
        const float rate = room.r[from + i] * projections.rate[k] + rate_shift;
        out.beta[(first + from + i) * net.heads + room.head] =
            net.rate == ScanForm::Sigmoid ? fast_sigmoid(rate) : rate;
      }
    }
  }
}

}  // namespace fastweights::kernels::cuda
