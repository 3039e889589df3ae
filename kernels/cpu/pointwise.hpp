// SPDX-License-Identifier: Apache-2.0
// The plan of the `pointwise` variant: products on a BLAS, all gate arithmetic in one kernel. The
// input product takes a chunk of time steps at once, the weight gradients all of them.
//
// Order of the arrays inside. A sequence of width W is kept in chunks of n time steps, chunk s at
// offset s * B * W:
//   tbh   [n*B, W] by rows, which for every n is [T,B,W]
//   thb   [n*B, W] by columns, so W rows of n*B: the batch is fastest
// y, x and the gradients between layers are [T,B,W] in both; thb transposes h out and dy in, one
// time step and block of units at a time.
//
// Reserve: c and, with reserve=gates, the activated gates, 20 or 4 bytes per unit, sample, time
// step and layer, and y below the last layer. With reserve=recompute the gates live in the
// workspace from backward_data to backward_weights and cost one more forward product.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "cpu/blas_plan.hpp"
#include "cpu/pointwise_kernels.hpp"

namespace rnntune::cpu {

struct PointwiseChoice {
  bool by_columns = false;  // thb
  std::int64_t chunk = 0;   // time steps of an input product; 0: all
  bool recompute = false;
};

class PointwisePlan final : public BlasPlan {
 public:
  static Result<std::unique_ptr<Plan>> make(const Problem& problem, const Elementwise& kernels,
                                            const PointwiseKernels& gate_kernels,
                                            const TeamConfig& team, const PointwiseChoice& choice);

  Status forward(Mode mode, Extent extent, const Forward& args, const PlanBuffers& buffers,
                 Stream stream) override;
  Status backward_data(Extent extent, const BackwardData& args, const PlanBuffers& buffers,
                       Stream stream) override;
  Status backward_weights(Extent extent, const BackwardWeights& args, const PlanBuffers& buffers,
                          Stream stream) override;

 private:
  // One call, the same for all threads.
  struct Call {
    Extent extent;
    PlanBuffers buffers;
    bool training = true;
    std::int64_t chunk = 1;  // time steps of a chunk, at most the call's
    std::int64_t state = 0;  // B * H

    std::int64_t steps(std::int64_t first) const { return std::min(chunk, extent.time - first); }
    std::int64_t first_of(std::int64_t t) const { return t / chunk * chunk; }
  };

  // One layer of one call.
  struct Tensors {
    ConstMatrix x;               // [T*B, input]
    const float* h_0 = nullptr;  // [B,H], null: zeros
    const float* c_0 = nullptr;  // [B,H], null: zeros
    const float* y = nullptr;    // [T,B,H]
    float* gates = nullptr;      // sequence of 4H; one chunk where not kept
    bool gates_kept = false;
    float* c = nullptr;  // sequence of H; null in inference, see c_at
  };

  PointwisePlan(const Problem& problem, const Elementwise& kernels,
                const PointwiseKernels& gate_kernels, const TeamConfig& team,
                const PointwiseChoice& choice);
  Call call(Extent extent, const PlanBuffers& buffers, bool training) const;
  Tensors tensors(const Call& call, std::int64_t layer, const float* x, const float* h_0,
                  const float* c_0, const float* y) const;

  // Turns to the gates that last over the calls of backward.
  void keep_gates(const Call& call, std::int64_t layer, Tensors& z) const;

  // Where things lie: the chunk that begins with time step `first`, one time step of it, a state
  // [B,H] in the inside order.
  Matrix chunk_of(const Call& call, float* sequence, std::int64_t width, std::int64_t first) const;
  Matrix gates_chunk(const Call& call, const Tensors& z, std::int64_t first) const;
  Matrix gates_step(const Call& call, const Tensors& z, std::int64_t t) const;
  Matrix c_at(const Call& call, const Tensors& z, std::int64_t t) const;
  Matrix state_of(const Call& call, const Place& place) const;

  // The block of a state [B,H] by rows, from and to the inside order. from null: zeros.
  void bring_in(const float* from, Matrix to, Block block) const;
  void bring_out(ConstMatrix from, float* to, Block block) const;
  Shape shape_of(Block block) const;
  PointwiseGates gates_of(const Call& call, const Layer& layer, Matrix step, Block block) const;

  void forward_layer(const Call& call, std::int64_t layer, const Tensors& z, const Forward& args,
                     const TeamShare& share) const;
  void forward_step(const Call& call, const Layer& layer, const Tensors& z, std::int64_t t,
                    float* y, const TeamShare& share) const;
  void forward_gates(const Call& call, const Layer& layer, const Tensors& z, std::int64_t t,
                     float* y, Block units) const;
  void backward_layer(const Call& call, std::int64_t layer, const Tensors& z,
                      const BackwardData& args, const float* dy, float* dx,
                      const TeamShare& share) const;
  void backward_gates(const Call& call, const Layer& layer, const Tensors& z, std::int64_t t,
                      const float* dy, Block units) const;
  void recompute_chunk(const Call& call, const Layer& layer, const Tensors& z, std::int64_t first,
                       const Member& member) const;
  void weights_layer(const Call& call, std::int64_t layer, const Tensors& z,
                     const LayerGradients& gradients, const TeamShare& share) const;

  PointwiseKernels gate_kernels_;
  PointwiseChoice choice_;
  // Workspace: gates of a chunk where none are kept; c_0, dh, dc, dy of one time step in the inside
  // order; two time steps of c (inference) and of h (thb), used in turn.
  Place gates_, c_0_, dh_, dc_, dy_;
  std::array<Place, 2> c_, h_;
};

}  // namespace rnntune::cpu
