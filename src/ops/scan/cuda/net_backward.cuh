#pragma once

#include "ops/scan/cuda/net.cuh"

/// The same way back. Sums over rows stay in shared memory, beside the weights they belong to, until a block
/// has seen all of its rows. The gradient of a scale is the sum of (gradient of a projection) (W x + w) over
/// all projections.

namespace fastweights::kernels::cuda {

/// Shared memory beyond that of a forward pass.
template <typename T>
struct NetSums {
  float *key, *value;          // [each][pitch][threads]
  float* rate;                 // [teams][pitch + 1]
  float* rates;                // [teams][kNetRows]: gradients of rates times their scales
  float *scale, *value_scale;  // [warps][kNetTile]

  __device__ explicit NetSums(const NetRoom<T>& room) {
    const int teams = room.threads / T::kLanes, columns = T::kEach * room.pitch * room.threads;
    key = room.end;
    value = key + columns;
    rate = value + columns;
    rates = rate + teams * (room.pitch + 1);
    scale = rates + teams * kNetRows;
    value_scale = scale + room.threads / 32 * kNetTile;
    const int count = static_cast<int>(value_scale - key) + room.threads / 32 * kNetTile;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += room.threads) key[i] = 0;
  }
};

/// What memory holds of a lane's projections of eight rows. All loads are issued before any is waited for.
template <typename T>
struct NetRows {
  float k[T::kEach][kNetRows], v[T::kEach][kNetRows], grad_k[T::kEach][kNetRows], grad_v[T::kEach][kNetRows];
  float beta[T::kRates], grad_beta[T::kRates];

  // rows beyond the last one and lanes without a projection repeat those of others
  __device__ void load(const NetRoom<T>& room, const CudaProgramOutput& made, const CudaProgramOutput& grads,
                       int64_t first, int64_t last) {
    const CudaNet& net = room.net;
    const int stride = static_cast<int>(net.heads * net.width), left = static_cast<int>(last - first) - 1;
#pragma unroll
    for (int e = 0; e < T::kEach; ++e) {
      const int64_t at = room.owns(e) ? room.offset_of(first) + 32 * e : first * stride;
#pragma unroll
      for (int i = 0; i < kNetRows; ++i) {
        const int64_t here = at + max(min(i, left), 0) * stride;
        k[e][i] = made.k[here];
        v[e][i] = made.v[here];
        grad_k[e][i] = grads.k[here];
        grad_v[e][i] = grads.v[here];
      }
    }
#pragma unroll
    for (int n = 0; n < T::kRates; ++n) {
      const int i = max(min((room.position + n * T::kLanes) % kNetRows, left), 0);
      const int64_t at = (first + i) * net.heads + (room.active ? room.head : 0);
      beta[n] = made.beta[at];
      grad_beta[n] = grads.beta[at];
    }
  }
};

// gradients of a lane's projections; zero beyond the last row
template <typename T>
__device__ void projection_gradients(const NetRoom<T>& room, const NetRows<T>& rows, int64_t first,
                                     int64_t last, NetProjections<T>& to) {
  const CudaNet& net = room.net;
  const int count = static_cast<int>(min(last - first, static_cast<int64_t>(kNetRows)));
  const bool soft = net.key == ScanForm::Softmax, bends = net.value == ScanForm::Tanh;
#pragma unroll
  for (int i = 0; i < kNetRows; ++i) {
    float along = 0;
#pragma unroll
    for (int e = 0; e < T::kEach; ++e) {
      const bool own = room.owns(e) && i < count;
      to.key[e][i] = own ? rows.grad_k[e][i] : 0.0f;
      along += rows.k[e][i] * to.key[e][i];
      const float factor = own ? factor_of(room, first + i, e) : 0.0f;
      const float value = factor == 1 || factor == 0 ? rows.v[e][i] : rows.v[e][i] * fast_reciprocal(factor);
      to.value[e][i] = own ? rows.grad_v[e][i] * (bends ? factor - factor * value * value : factor) : 0.0f;
    }
    if (!soft) continue;
    along = lanes_sum<T::kLanes>(along);
#pragma unroll
    for (int e = 0; e < T::kEach; ++e)
      to.key[e][i] = room.owns(e) ? rows.k[e][i] * (to.key[e][i] - along) : 0.0f;
  }
#pragma unroll
  for (int n = 0; n < T::kRates; ++n) {
    const int i = room.position + n * T::kLanes;
    const float slope = net.rate == ScanForm::Sigmoid ? rows.beta[n] - rows.beta[n] * rows.beta[n] : 1.0f;
    to.rate[n] = room.active && i < count ? rows.grad_beta[n] * slope : 0.0f;
  }
}

// a warp's part of the gradients of the scales of eight rows
template <typename T>
__device__ void scale_gradients(const NetRoom<T>& room, const NetProjections<T>& grads, int from,
                                const NetSums<T>& sums) {
  NetProjections<T> plain;
  products(room, from, plain);
  float scale[kNetRows], value_scale[kNetRows];
#pragma unroll
  for (int i = 0; i < kNetRows; ++i) {
    scale[i] = value_scale[i] = 0;
#pragma unroll
    for (int e = 0; e < T::kEach; ++e) {
      scale[i] += grads.key[e][i] * plain.key[e][i];
      value_scale[i] += grads.value[e][i] * plain.value[e][i];
    }
#pragma unroll
    for (int k = 0; k < T::kRates; ++k)
      scale[i] += room.position + k * T::kLanes == i ? grads.rate[k] * plain.rate[k] : 0.0f;
    if (!room.separate()) scale[i] += value_scale[i];
  }
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const float sum = eight_sums<32>(scale, lane);
  if (lane % 4 == 0) sums.scale[warp * kNetTile + from + lane / 4] = sum;
  if (!room.separate()) return;
  const float value_sum = eight_sums<32>(value_scale, lane);
  if (lane % 4 == 0) sums.value_scale[warp * kNetTile + from + lane / 4] = value_sum;
}

// adds the eight rows' gradients of weights; gradients are times the scales
template <typename T>
__device__ void add_weight_gradients(const NetRoom<T>& room, const NetProjections<T>& grads, int from,
                                     const NetSums<T>& sums) {
  const int pitch = room.pitch, threads = room.threads, team = room.team;
  const bool separate = room.separate();
  const float *x = room.x + from * pitch, *values = room.values + from * pitch;
  for (int c = 0; c < pitch; c += 4) {
#pragma unroll
    for (int e = 0; e < T::kEach; ++e) {
      float key[4] = {}, value[4] = {};
#pragma unroll
      for (int i = 0; i < kNetRows; ++i) {
        const float4 key_signal = four(x + i * pitch + c),
                     value_signal = separate ? four(values + i * pitch + c) : key_signal;
        const float keys[] = {key_signal.x, key_signal.y, key_signal.z, key_signal.w};
        const float own_values[] = {value_signal.x, value_signal.y, value_signal.z, value_signal.w};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          key[k] += grads.key[e][i] * keys[k];
          value[k] += grads.value[e][i] * own_values[k];
        }
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int at = (e * pitch + c + k) * threads + static_cast<int>(threadIdx.x);
        sums.key[at] += key[k];
        sums.value[at] += value[k];
      }
    }
  }
#pragma unroll
  for (int k = 0; k < T::kRates; ++k) {
    const int i = room.position + k * T::kLanes;
    if (i < kNetRows) sums.rates[team * kNetRows + i] = grads.rate[k];
  }
  __syncwarp();
  for (int c = room.position; c < pitch; c += T::kLanes) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kNetRows; ++i) sum += sums.rates[team * kNetRows + i] * x[i * pitch + c];
    sums.rate[team * (pitch + 1) + c] += sum;
  }
  __syncwarp();
}

/// Gradients of the shifts of projections.
template <typename T>
struct NetShifts {
  float key[T::kEach] = {}, value[T::kEach] = {}, rate = 0;

  // and takes the gradients times their scales
  __device__ void add(const NetRoom<T>& room, NetProjections<T>& grads, int from) {
#pragma unroll
    for (int i = 0; i < kNetRows; ++i) {
#pragma unroll
      for (int e = 0; e < T::kEach; ++e) {
        key[e] += grads.key[e][i];
        value[e] += grads.value[e][i];
        grads.key[e][i] *= room.r[from + i];
        grads.value[e][i] *= room.value_r[from + i];
      }
    }
#pragma unroll
    for (int k = 0; k < T::kRates; ++k) {
      rate += grads.rate[k];
      grads.rate[k] *= room.r[from + (room.position + k * T::kLanes) % kNetRows];
    }
  }
};

template <typename T>
__device__ void store_weight_gradients(const NetRoom<T>& room, const NetSums<T>& sums, NetShifts<T> shifts,
                                       const CudaNetGradients& to) {
  const CudaNet& net = room.net;
  const int channels = static_cast<int>(net.channels);
  const CudaMap &keys = net.keys, &values = room.value_map();
  float* to_keys = to.keys + blockIdx.x * net.heads * room.each() * room.columns(keys);
  float* to_values =
      room.separate() ? to.values + blockIdx.x * net.heads * net.width * room.columns(values) : to_keys;
#pragma unroll
  for (int e = 0; e < T::kEach; ++e) {
    if (!room.owns(e)) continue;
    float *key = to_keys + room.key_row(e) * room.columns(keys),
          *value = to_values + room.value_row(e) * room.columns(values);
    for (int c = 0; c <= channels; ++c) {
      const int at = (e * room.pitch + c) * room.threads + static_cast<int>(threadIdx.x);
      key[c] = sums.key[at];
      value[c] = sums.value[at];
    }
    if (keys.r) key[channels + 1] = shifts.key[e];
    if (values.r) value[channels + 1] = shifts.value[e];
  }
  shifts.rate = lanes_sum<T::kLanes>(shifts.rate);
  if (!room.active) return;
  float* rate = to_keys + room.rate_row() * room.columns(keys);
  for (int c = room.position; c <= channels; c += T::kLanes)
    rate[c] = sums.rate[room.team * (room.pitch + 1) + c];
  if (keys.r && room.position == 0) rate[channels + 1] = shifts.rate;
}

// sums over the warps of a block
__device__ inline void store_scale_gradients(const float* sums, int64_t first, int64_t last, int64_t rows,
                                             float* to) {
  const int i = static_cast<int>(threadIdx.x), warps = static_cast<int>(blockDim.x) / 32;
  if (i >= kNetTile || first + i >= last) return;
  float sum = 0;
  for (int warp = 0; warp < warps; ++warp) sum += sums[warp * kNetTile + i];
  to[blockIdx.y * rows + first + i] = sum;
}

template <typename T>
__device__ void net_backward(const CudaNet& net, const CudaProgramOutput& made,
                             const CudaProgramOutput& grads, const CudaNetGradients& to) {
  extern __shared__ float4 bytes[];
  const NetRoom<T> room(net, reinterpret_cast<float*>(bytes));
  load_weights(room);
  const NetSums<T> sums(room);
  NetShifts<T> shifts;
  const int64_t last = room.last();
  const bool scaled = net.keys.r || net.values.r;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kNetTile; first < last;
       first += gridDim.x * kNetTile) {
    __syncthreads();
    load_rows(room, net.keys, first, room.x, room.r);
    if (room.separate()) load_rows(room, net.values, first, room.values, room.value_r);
    __syncthreads();
    for (int from = 0; from < kNetTile; from += kNetRows) {
      if (first + from >= last) break;
      NetRows<T> rows;
      rows.load(room, made, grads, first + from, last);
      NetProjections<T> gradients;
      projection_gradients(room, rows, first + from, last, gradients);
      if (scaled) scale_gradients(room, gradients, from, sums);
      shifts.add(room, gradients, from);
      add_weight_gradients(room, gradients, from, sums);
    }
    __syncthreads();
    if (net.keys.r) store_scale_gradients(sums.scale, first, last, net.rows, to.key_scale);
    if (net.values.r) store_scale_gradients(sums.value_scale, first, last, net.rows, to.value_scale);
  }
  __syncthreads();
  store_weight_gradients(room, sums, shifts, to);
}

}  // namespace fastweights::kernels::cuda
