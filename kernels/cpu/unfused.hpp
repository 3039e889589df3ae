// SPDX-License-Identifier: Apache-2.0
// The plan of the `unfused` variant: what a framework does that runs an LSTM operation by
// operation. It is the baseline that ratios are quoted against, so it is as good as that form
// allows: the best BLAS here with the better of its own threads and ours, vectorised loops.
//
// Bytes of a time step and layer: the weights, 16 * H * (I + H), from the cache level or memory
// that holds them, and 4 * B * H for each of the 28 operands of the elementwise operations forward,
// 39 backward. FLOPs: 8 * H * (I + H) * B forward, twice that backward, all in products of B rows.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "cpu/blas_plan.hpp"

namespace rnntune::cpu {

class UnfusedPlan final : public BlasPlan {
 public:
  static Result<std::unique_ptr<Plan>> make(const Problem& problem, const Elementwise& kernels,
                                            const TeamConfig& team);

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
  };

  // One layer of one call: its operands, whole sequences unless said.
  struct Tensors {
    ConstMatrix x;               // [T*B, input]
    const float* h_0 = nullptr;  // [B,H], null: zeros
    const float* c_0 = nullptr;  // [B,H], never null
    const float* y = nullptr;    // [T,B,H]
    float* gates = nullptr;      // [T,B,4H]; in inference one time step
    float* c = nullptr;          // [T,B,H]; in inference null, see c_at
    float* tanh_c = nullptr;     // [T,B,H]; in inference one time step
  };

  UnfusedPlan(const Problem& problem, const Elementwise& kernels, const TeamConfig& team);

  Tensors tensors(const Call& call, std::int64_t layer, const float* x, const float* h_0,
                  const float* c_0, const float* y) const;
  float* c_at(const Call& call, const Tensors& z, std::int64_t t) const;

  void forward_layer(const Call& call, std::int64_t layer, const Tensors& z, const Forward& args,
                     const TeamShare& share) const;
  void forward_step(const Call& call, std::int64_t layer, const Tensors& z, std::int64_t t,
                    float* h, const TeamShare& share) const;
  void forward_gates(const Call& call, const Layer& layer, const Tensors& z, std::int64_t t,
                     float* h, Block units) const;
  void backward_layer(const Call& call, std::int64_t layer, const Tensors& z,
                      const BackwardData& args, const float* dy, float* dx,
                      const TeamShare& share) const;
  void backward_gates(const Call& call, const Tensors& z, std::int64_t t, const float* dy,
                      Block units) const;
  void weights_layer(const Call& call, std::int64_t layer, const Tensors& z,
                     const LayerGradients& gradients, const TeamShare& share) const;

  std::vector<Place> tanh_c_;  // reserve: [T,B,H] a layer
  // Workspace: [B,4H] and [B,H] of inference, two time steps of c in turn; all others [B,H].
  Place infer_gates_, infer_tanh_c_, zeros_, dh_, dc_, temporary_, gradient_;
  std::array<Place, 2> infer_c_;
};

}  // namespace rnntune::cpu
