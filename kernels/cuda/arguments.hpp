// SPDX-License-Identifier: Apache-2.0
// What the kernels take, by value: plain structs, for device text and plans alike. Pointers are to
// device memory. B is the batch of the call, H the hidden size; the order of an array is
//
//   tbh   [B,H] by rows, hidden units fastest
//   thb   [H,B] by rows, samples fastest
//
// A row begins `ld` floats after the one before, the gates i f g o `gate_stride` floats apart.
#pragma once

namespace rnntune::cuda {

// One time step of the `pointwise` variant, forward. gates, c_before, c and c_n are in the order of
// the kernel, c* without gaps; h and h_n are tbh.
struct PointwiseForwardArguments {
  float* gates = nullptr;  // in: pre-activations without bias; out: activated, where kept
  long long gate_stride = 0, ld = 0;
  const float* bias = nullptr;      // [4H]; null: none
  const float* c_before = nullptr;  // null: zeros
  float* c = nullptr;               // may be c_before
  float* h = nullptr;
  float* h_n = nullptr;  // a second copy of h, of c; null: none
  float* c_n = nullptr;
  int batch = 0, hidden = 0;
  bool vectors = false;  // every row of every array begins on 16 bytes
};

// One time step backward. gates, c_before, c, dc_in, dc_out and `direct` are in the order of the
// kernel, `turned` in the other one; dy and dh are tbh.
struct PointwiseBackwardArguments {
  const float* gates = nullptr;  // activated, or pre-activations without bias
  long long gate_stride = 0, ld = 0;
  const float* bias = nullptr;
  const float* c_before = nullptr;  // null: zeros
  const float* c = nullptr;
  const float* dy = nullptr;  // gradient of h from above
  const float* dh = nullptr;  // and from the next time step; null: zeros
  const float* dc_in = nullptr;
  float* dc_out = nullptr;  // may be dc_in
  float* direct = nullptr;  // gradients of the pre-activations; may be gates
  long long direct_gate_stride = 0, direct_ld = 0;
  float* turned = nullptr;
  long long turned_gate_stride = 0, turned_ld = 0;
  int batch = 0, hidden = 0;
  bool vectors = false;
};

// db += the sums of dgates over all time steps and samples. dgates is [rows, columns] by rows: tbh
// [T*B, 4H], thb [4H, T*B].
struct BiasGradientArguments {
  const float* dgates = nullptr;
  long long ld = 0;
  long long rows = 0, columns = 0;
  float* db = nullptr;
  float* db_too = nullptr;  // null: none
};

// to[c][r] = from[r][c], both by rows without gaps.
template <class T>
struct TransposeArguments {
  const T* from = nullptr;
  T* to = nullptr;
  int rows = 0, columns = 0;
};

// y = an operation of a, b and y. A stride of 0 repeats one row.
struct OperationArguments {
  const float* a = nullptr;
  const float* b = nullptr;
  float* y = nullptr;  // may be a or b
  long long lda = 0, ldb = 0, ldy = 0;
  int rows = 0, columns = 0;
  bool vectors = false;
};

}  // namespace rnntune::cuda
