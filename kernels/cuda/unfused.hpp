// SPDX-License-Identifier: Apache-2.0
// The plan of the `unfused` variant: what a framework does that runs an LSTM operation by
// operation. It is the baseline that ratios are quoted against.
//
// Bytes of a time step and layer: the weights, 16 * H * (I + H), from L2 or memory, and 4 * B * H
// for each of the 28 operands of the elementwise operations forward, 39 backward. FLOPs: 8 * H *
// (I + H) * B forward, twice that backward, all in products of B rows. 11 launches forward and 2
// products, 13 and 2 backward, with one product per gate 6 more of either.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "cuda/lstm_plan.hpp"

namespace rnntune::cuda {

class UnfusedPlan final : public LstmPlan {
 public:
  // per_gate: a product for each gate, not one for all four.
  static Result<std::unique_ptr<Plan>> make(const Problem& problem,
                                            std::shared_ptr<gpu::GpuDevice> device, bool per_gate);

  Status forward(Mode mode, Extent extent, const Forward& args, const PlanBuffers& buffers,
                 Stream stream) override;
  Status backward_data(Extent extent, const BackwardData& args, const PlanBuffers& buffers,
                       Stream stream) override;
  Status backward_weights(Extent extent, const BackwardWeights& args, const PlanBuffers& buffers,
                          Stream stream) override;

 private:
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
  struct Kernels {
    KernelPtr add, multiply, multiply_add, sigmoid, tanh, sigmoid_backward, tanh_backward, sums;
  };

  UnfusedPlan(const Problem& problem, std::shared_ptr<gpu::GpuDevice> device, bool per_gate);
  Status build_kernels();
  void rehearse(Queue& queue) override;

  Tensors tensors(const Call& call, std::int64_t layer, const float* x, const float* h_0,
                  const float* c_0, const float* y) const;
  float* c_at(const Call& call, const Tensors& z, std::int64_t t) const;

  void operate(Queue& queue, const KernelPtr& kernel, std::int64_t rows, std::int64_t columns,
               ConstMatrix a, ConstMatrix b, Matrix y) const;
  // gates = a w^T + beta gates; out = gates w + beta out; w += gates^T a.
  void to_gates(Queue& queue, std::int64_t rows, std::int64_t depth, ConstMatrix a, ConstMatrix w,
                Matrix gates, float beta) const;
  void from_gates(Queue& queue, std::int64_t rows, std::int64_t columns, ConstMatrix gates,
                  ConstMatrix w, Matrix out) const;
  void to_weights(Queue& queue, std::int64_t rows, std::int64_t columns, ConstMatrix gates,
                  ConstMatrix a, Matrix w) const;

  void run_forward(Queue& queue, const Call& call, const Forward& args) const;
  void run_backward(Queue& queue, const Call& call, const BackwardData& args) const;
  void run_weights(Queue& queue, const Call& call, const BackwardWeights& args) const;
  void forward_step(Queue& queue, const Call& call, const Layer& layer, const Tensors& z,
                    std::int64_t t, float* h) const;
  void backward_layer(Queue& queue, const Call& call, std::int64_t layer, const Tensors& z,
                      const BackwardData& args, const float* dy, float* dx) const;
  void backward_step(Queue& queue, const Call& call, const Tensors& z, std::int64_t t,
                     const float* dy) const;

  const bool per_gate_;
  Kernels kernels_;
  // Reserve: [T,B,4H], [T,B,H], [T,B,H] a layer.
  std::vector<Place> gates_, c_, tanh_c_;
  // Workspace: [B,4H] and [B,H] of inference, two time steps of c in turn; all others [B,H].
  Place infer_gates_, infer_tanh_c_, zeros_, dh_, dc_, temporary_, gradient_;
  std::array<Place, 2> infer_c_;
};

}  // namespace rnntune::cuda
