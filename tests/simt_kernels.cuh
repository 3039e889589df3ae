// SPDX-License-Identifier: Apache-2.0
// Kernels that test the emulator: right ones, and the same with a fault that it must report.
// Words in [brackets] mark lines that a report must name.
#pragma once

#include "cuda/portable.cuh"

namespace rnntune::cuda {
inline namespace RNNTUNE_DEVICE_TEXT {

enum class Fault {
  none,
  no_barrier_before_use,
  no_barrier_after_use,
  bound,
  no_barrier,
  block_barrier,  // instead of one of the grid
};

struct GemmArguments {
  const float *a, *b;
  float* c;
  int m, n, k;
};

// c = a b, row major; one thread per element of c, tiles of a and b through shared memory.
template <int kTile, Fault kFault>
__global__ void __launch_bounds__(kTile* kTile) tiled_gemm(GemmArguments p) {
  RNNTUNE_SHARED(a_tile, float[kTile][kTile + 1]);
  RNNTUNE_SHARED(b_tile, float[kTile * kTile]);
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * kTile + y;
  const int column = static_cast<int>(blockIdx.x) * kTile + x;
  float* const b_row = b_tile + y * kTile;
  float sum = 0;
  for (int k0 = 0; k0 < p.k; k0 += kTile) {
    a_tile[y][x] = row < p.m && k0 + x < p.k ? p.a[row * p.k + k0 + x] : 0.0f;  // [tile write]
    b_row[kFault == Fault::bound ? x + 1 : x] =
        column < p.n && k0 + y < p.k ? p.b[(k0 + y) * p.n + column] : 0.0f;
    if (kFault != Fault::no_barrier_before_use) __syncthreads();
    RNNTUNE_UNROLL
    for (int k = 0; k < kTile; ++k) {
      const float a = a_tile[y][k];  // [tile read]
      sum += a * b_tile[k * kTile + x];
    }
    if (kFault != Fault::no_barrier_after_use) __syncthreads();
  }
  if (row < p.m && column < p.n) p.c[row * p.n + column] = sum;
}

struct SumArguments {
  const float* x;
  float* sum;
  int n;
};

// *sum += the sum of x: within a warp by shuffles, of the warps through shared memory, of the
// blocks by an atomic addition - or, as a fault, by a plain one in some blocks.
template <bool kPlain>
__global__ void block_sum(SumArguments p) {
  RNNTUNE_SHARED(partial, float[32]);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float sum = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < static_cast<unsigned>(p.n);
       i += gridDim.x * blockDim.x) {
    sum += __ldg(p.x + i);
  }
  for (unsigned delta = 16; delta != 0; delta /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, delta);
  }
  if (lane == 0) partial[warp] = sum;
  __syncthreads();
  if (warp != 0) return;
  sum = lane < blockDim.x / 32 ? partial[lane] : 0.0f;
  for (int bits = 16; bits != 0; bits /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bits);
  if (lane != 0) return;
  if (kPlain && blockIdx.x % 2 != 0) {
    *p.sum += sum;  // [plain add]
  } else {
    atomicAdd(p.sum, sum);
  }
}

struct ScaleArguments {
  const float* x;
  float* y;
  float factor;
  int n;
};

// y += factor x, four at a time and the tail one at a time; x and y aligned to 16 bytes.
__global__ inline void scale_add(ScaleArguments p) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int i = 4 * thread;
  if (i + 4 <= p.n) {
    const float4 x = *reinterpret_cast<const float4*>(p.x + i);
    float4 y = *reinterpret_cast<float4*>(p.y + i);
    y = make_float4(y.x + p.factor * x.x, y.y + p.factor * x.y, y.z + p.factor * x.z,
                    y.w + p.factor * x.w);
    *reinterpret_cast<float4*>(p.y + i) = y;
  } else {
    for (int j = i; j < p.n; ++j) p.y[j] += p.factor * p.x[j];
  }
}

struct RingArguments {
  unsigned *values, *scratch;  // n words each; the result is in the first after an even step count
  unsigned* barrier;
  int n, steps;
};

// As a recurrence is computed by blocks that stay: in each step every word becomes the sum of its
// neighbours' values of the step before, which other blocks may have computed.
template <Fault kFault>
__global__ void ring(RingArguments p) {
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  unsigned *from = p.values, *to = p.scratch;
  for (int step = 0; step < p.steps; ++step) {
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < p.n; i += stride) {
      to[i] = from[(i + 1) % p.n] + from[(i + p.n - 1) % p.n];  // [ring step]
    }
    if (kFault == Fault::none) grid_barrier(p.barrier);
    if (kFault == Fault::block_barrier) __syncthreads();
    unsigned* const swap = from;
    from = to;
    to = swap;
  }
}

struct WordArguments {
  int* out;
};

// Every two threads write the same word.
__global__ inline void double_write(WordArguments p) {
  p.out[threadIdx.x / 2] = 1;  // [double write]
}

// All blocks write the same words.
__global__ inline void block_overlap(WordArguments p) {
  p.out[threadIdx.x] = 1;  // [block overlap]
}

struct StrideArguments {
  float *from, *to;
  int stride;  // at most 33
};

// One warp, one word a thread: through shared memory and out, `stride` words apart.
__global__ inline void strided(StrideArguments p) {
  RNNTUNE_SHARED(tile, float[32 * 33]);
  const int i = static_cast<int>(threadIdx.x);
  const float value = p.from[i * p.stride];  // [strided read]
  tile[i * p.stride] = value;                // [strided tile]
  __syncthreads();
  const float4 four = *reinterpret_cast<const float4*>(tile + 4 * i);  // [vector tile]
  p.to[i] = four.x + four.y + four.z + four.w;                         // [plain write]
}

struct ByteArguments {
  unsigned char* out;
};

// Neighbours in one word write different bytes of it: no race.
__global__ inline void byte_write(ByteArguments p) {
  p.out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<unsigned char>(threadIdx.x);
}

// The lanes of each warp are reversed through dynamic shared memory; __syncwarp orders them.
template <Fault kFault>
__global__ void reverse_warp(WordArguments p) {
  RNNTUNE_DYNAMIC_SHARED(int, buffer);
  const unsigned i = threadIdx.x;
  buffer[i] = static_cast<int>(i);  // [warp write]
  if (kFault != Fault::no_barrier) __syncwarp();
  p.out[i] = buffer[i ^ 31];  // [warp read]
}

}  // namespace RNNTUNE_DEVICE_TEXT
}  // namespace rnntune::cuda
