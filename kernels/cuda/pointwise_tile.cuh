// SPDX-License-Identifier: Apache-2.0
// All gate arithmetic of an LSTM time step in one kernel, where arrays of both orders meet: the
// products of the gates may be thb, but x, y and their gradients are tbh.
//
// Idea: a block takes a tile of 32 x 32 elements. What is in the order of the kernel is moved along
// its rows; what is in the other order goes through shared memory, a row of which is 33 floats, so
// that neither its rows nor its columns meet in a bank. Every access to global memory is of 32
// neighbouring floats. Bytes as in pointwise.cuh, and 16 more per unit and sample where backward
// writes its gradients in both orders; no pass of its own for any change of order.
//
// Block: 32 threads along the fastest dimension, 1 to kMaxTileRows along the other. Grid: x covers
// the fastest dimension, 32 a block; y any number, blocks go on with the next rows.
// Limits: B and H below 2^31; 17 KiB of shared memory, 4 where backward writes one order.
#pragma once

#include "cell.cuh"

namespace rnntune::cuda {
inline namespace RNNTUNE_DEVICE_TEXT {

inline constexpr int kTile = 32, kMaxTileRows = 16;
using Tile = float[kTile][kTile + 1];

// The place of a tile in the order of the kernel, rows and columns.
struct TilePlace {
  long long row, col;
  long long rows, cols;  // of the whole array

  __device__ bool has(long long r, long long c) const { return row + r < rows && col + c < cols; }
};

// Visits the tiles of this block.
template <class Visit>
__device__ __forceinline__ void each_tile(long long rows, long long cols, Visit visit) {
  const long long step = static_cast<long long>(gridDim.y) * kTile;
  for (long long row = static_cast<long long>(blockIdx.y) * kTile; row < rows; row += step) {
    visit(TilePlace{row, static_cast<long long>(blockIdx.x) * kTile, rows, cols});
    __syncthreads();  // before the next tile overwrites what this one shared
  }
}

// thb: rows are units.
template <bool kKeepGates>
__global__ void __launch_bounds__(kTile* kMaxTileRows)
    pointwise_forward_tile(PointwiseForwardArguments a) {
  RNNTUNE_SHARED(h, Tile);
  each_tile(a.hidden, a.batch, [&](const TilePlace& p) {
    const int x = static_cast<int>(threadIdx.x);
    for (int r = static_cast<int>(threadIdx.y); r < kTile; r += static_cast<int>(blockDim.y)) {
      if (!p.has(r, x)) continue;
      const long long unit = p.row + r, state = unit * a.batch + p.col + x;
      float* const at = a.gates + unit * a.ld + p.col + x;
      const Gates loaded{at[0], at[a.gate_stride], at[2 * a.gate_stride], at[3 * a.gate_stride]};
      const Gates g = activated<true>(loaded, a.bias, a.hidden, static_cast<int>(unit));
      const LstmState<float> s =
          lstm_forward<Math>(g, a.c_before == nullptr ? 0.0f : a.c_before[state]);
      if (kKeepGates) {
        at[0] = g.i;
        at[a.gate_stride] = g.f;
        at[2 * a.gate_stride] = g.g;
        at[3 * a.gate_stride] = g.o;
      }
      a.c[state] = s.c;
      if (a.c_n != nullptr) a.c_n[state] = s.c;
      h[r][x] = s.h;
    }
    __syncthreads();
    for (int r = static_cast<int>(threadIdx.y); r < kTile; r += static_cast<int>(blockDim.y)) {
      if (!p.has(x, r)) continue;
      const long long state = (p.col + r) * a.hidden + p.row + x;
      a.h[state] = h[x][r];
      if (a.h_n != nullptr) a.h_n[state] = h[x][r];
    }
  });
}

// From above and from the next time step, by place in [B,H].
__device__ __forceinline__ float gradient_of_h(const PointwiseBackwardArguments& a, long long at) {
  return a.dy[at] + (a.dh == nullptr ? 0.0f : a.dh[at]);
}

// From [B,H] into a tile of [units, samples].
__device__ __forceinline__ void turn_dh(const PointwiseBackwardArguments& a, const TilePlace& p,
                                        Tile& tile) {
  const int x = static_cast<int>(threadIdx.x);
  for (int r = static_cast<int>(threadIdx.y); r < kTile; r += static_cast<int>(blockDim.y)) {
    if (!p.has(x, r)) continue;
    tile[x][r] = gradient_of_h(a, (p.col + r) * a.hidden + p.row + x);
  }
}

__device__ __forceinline__ void store_turned(const PointwiseBackwardArguments& a,
                                             const TilePlace& p, Tile* tiles) {
  const int x = static_cast<int>(threadIdx.x);
  for (int r = static_cast<int>(threadIdx.y); r < kTile; r += static_cast<int>(blockDim.y)) {
    if (!p.has(x, r)) continue;
    float* const at = a.turned + (p.col + r) * a.turned_ld + p.row + x;
    RNNTUNE_UNROLL
    for (int q = 0; q < 4; ++q) at[q * a.turned_gate_stride] = tiles[q][x][r];
  }
}

// The gradients of one element, with dh the whole gradient of its h; updates dc in memory.
template <bool kThb, bool kActivate>
__device__ __forceinline__ Gates backward_element(const PointwiseBackwardArguments& a,
                                                  const TilePlace& p, int r, int x, float dh) {
  const long long row = p.row + r, col = p.col + x, state = row * p.cols + col;
  const float* const at = a.gates + row * a.ld + col;
  const Gates loaded{at[0], at[a.gate_stride], at[2 * a.gate_stride], at[3 * a.gate_stride]};
  const Gates g =
      activated<kActivate>(loaded, a.bias, a.hidden, static_cast<int>(kThb ? row : col));
  const float before = a.c_before == nullptr ? 0.0f : a.c_before[state];
  float dc = a.dc_in == nullptr ? 0.0f : a.dc_in[state];
  const Gates d = lstm_backward<Math>(g, before, Math::tanh(a.c[state]), dh, dc);
  a.dc_out[state] = dc;
  return d;
}

// Two of the largest blocks a multiprocessor, or 64 registers: left to itself ptxas 13.0 takes up
// to 118 on sm_120, and spills a few bytes on sm_90. kThb: the order of the kernel, in which the
// gates were kept. kDirect, kTurned: the gradients are written in that order, in the other one.
template <bool kThb, bool kDirect, bool kTurned, bool kActivate>
__global__ void __launch_bounds__(kTile* kMaxTileRows, 2)
    pointwise_backward_tile(PointwiseBackwardArguments a) {
  static_assert(kDirect || kTurned);
  RNNTUNE_SHARED(tiles, Tile[kTurned ? 4 : 1]);
  each_tile(kThb ? a.hidden : a.batch, kThb ? a.batch : a.hidden, [&](const TilePlace& p) {
    const int x = static_cast<int>(threadIdx.x);
    if (kThb) {
      turn_dh(a, p, tiles[0]);
      __syncthreads();
    }
    for (int r = static_cast<int>(threadIdx.y); r < kTile; r += static_cast<int>(blockDim.y)) {
      if (!p.has(r, x)) continue;
      const float dh = kThb ? tiles[0][r][x] : gradient_of_h(a, (p.row + r) * a.hidden + p.col + x);
      const Gates d = backward_element<kThb, kActivate>(a, p, r, x, dh);
      if (kDirect) {
        float* const at = a.direct + (p.row + r) * a.direct_ld + p.col + x;
        at[0] = d.i;
        at[a.direct_gate_stride] = d.f;
        at[2 * a.direct_gate_stride] = d.g;
        at[3 * a.direct_gate_stride] = d.o;
      }
      if (kTurned) {
        // The element of tiles[0] that this thread has just read, and no other reads.
        tiles[0][r][x] = d.i;
        tiles[kTurned ? 1 : 0][r][x] = d.f;
        tiles[kTurned ? 2 : 0][r][x] = d.g;
        tiles[kTurned ? 3 : 0][r][x] = d.o;
      }
    }
    if (kTurned) {
      __syncthreads();
      store_turned(a, p, tiles);
    }
  });
}

// [rows, columns] to [columns, rows], for the states of a call: 8 bytes an element. Grid and block
// as above, with rows and columns of `from`.
template <class T>
__global__ void __launch_bounds__(kTile* kMaxTileRows) transpose(TransposeArguments<T> a) {
  RNNTUNE_SHARED(tile, T[kTile][kTile + 1]);
  each_tile(a.rows, a.columns, [&](const TilePlace& p) {
    const int x = static_cast<int>(threadIdx.x);
    for (int r = static_cast<int>(threadIdx.y); r < kTile; r += static_cast<int>(blockDim.y)) {
      if (p.has(r, x)) tile[r][x] = a.from[(p.row + r) * a.columns + p.col + x];
    }
    __syncthreads();
    for (int r = static_cast<int>(threadIdx.y); r < kTile; r += static_cast<int>(blockDim.y)) {
      if (p.has(x, r)) a.to[(p.col + r) * a.rows + p.row + x] = tile[x][r];
    }
  });
}

}  // namespace RNNTUNE_DEVICE_TEXT
}  // namespace rnntune::cuda
