// SPDX-License-Identifier: Apache-2.0
// The plan of the `cell` variant in layout [T,B,H]: where everything lies, and the loops over
// layers, time and panels.
#pragma once

#include <memory>
#include <vector>

#include "cpu/cell_common.hpp"
#include "cpu/cell_kernels.hpp"
#include "cpu/team.hpp"
#include "plan.hpp"
#include "plan_memory.hpp"

namespace rnntune::cpu {

class CellPlan final : public Plan {
 public:
  static Result<std::unique_ptr<Plan>> make(const Problem& problem, const CellKernels& kernels,
                                            const CellChoice& choice);

  PlanSizes sizes() const override { return memory_.sizes(); }
  Status pack(const LayerWeights* layers, const PlanBuffers& buffers, Stream stream) override;
  Status forward(Mode mode, Extent extent, const Forward& args, const PlanBuffers& buffers,
                 Stream stream) override;
  Status backward_data(Extent extent, const BackwardData& args, const PlanBuffers& buffers,
                       Stream stream) override;
  Status backward_weights(Extent extent, const BackwardWeights& args, const PlanBuffers& buffers,
                          Stream stream) override;

 private:
  struct Layer {
    std::int64_t input = 0;
    Panels input_panels;
    Place weights, bias, weights_hh, weights_ih;  // packed: forward, forward, backward, backward
    Place gates, c, tanh_c, y;                    // reserve, or workspace where recomputed
    Place dbias;                                  // workspace, [threads][blocks][4][V]
  };

  // One call: its sizes and buffers, the same for all threads.
  struct Call {
    Extent extent;
    PlanBuffers buffers;
    bool training = true;
    std::int64_t rows() const { return extent.time * extent.batch; }
  };

  // The operands of one layer in one call.
  struct Tensors {
    const float* x = nullptr;
    const float* h_0 = nullptr;
    const float* c_0 = nullptr;
    float* y = nullptr;
    float* gates = nullptr;
    float* c = nullptr;
    float* tanh_c = nullptr;
  };

  CellPlan(const Problem& problem, const CellKernels& kernels, const CellChoice& choice);
  void place_layers();
  void place_workspace();
  void pack_block(const Layer& layer, const LayerWeights& w, std::byte* packed,
                  std::int64_t block) const;
  void pack_panels(const float* w, std::int64_t depth, const Panels& panels, float* packed,
                   std::int64_t block) const;

  Tensors tensors(const Call& call, std::size_t layer, const float* x, float* y) const;
  void forward_layer(const Member& me, const Call& call, std::size_t layer, const Tensors& t,
                     const Forward& args) const;
  void start_state(const Member& me, const Call& call, const Tensors& t) const;
  void input_gemm(const Member& me, const Call& call, const Layer& layer, const Tensors& t,
                  Range rows) const;
  void recurrence(const Member& me, const Call& call, const Layer& layer, const Tensors& t,
                  std::int64_t step, std::int64_t chunk_start) const;
  void end_state(const Member& me, const Call& call, std::size_t layer, const Tensors& t,
                 const Forward& args) const;

  void recompute_layer(const Member& me, const Call& call, const Layer& layer,
                       const Tensors& t) const;
  void backward_layer(const Member& me, const Call& call, std::size_t layer, const Tensors& t,
                      const BackwardData& args) const;
  BackwardPanel backward_panel(const Tensors& t, std::int64_t row) const;
  void backward_step(const Member& me, const Call& call, const Layer& layer, const Tensors& t,
                     const float* dy, const float* dh_n, std::int64_t step) const;
  void backward_start(const Member& me, const Call& call, std::size_t layer, const Tensors& t,
                      const BackwardData& args) const;
  void backward_input(const Member& me, const Call& call, const Layer& layer, const Tensors& t,
                      float* dx) const;

  void weights_layer(const Member& me, const Call& call, std::size_t layer, const Tensors& t,
                     const LayerGradients& gradients) const;
  void weights_matrix(const Member& me, const Call& call, const float* dgates, const float* a,
                      std::int64_t rows, std::int64_t width, float* dw) const;
  void bias_gradients(const Member& me, const Call& call, const Layer& layer,
                      const LayerGradients& gradients) const;

  Range my_blocks(const Member& me) const { return split(blocks_, me.count, me.id); }
  std::int64_t block_units(std::int64_t block) const;
  float* gates_at(const Tensors& t, std::int64_t block, std::int64_t row) const {
    return t.gates + (block * gate_rows_ + row) * 4 * kernels_.lanes;
  }
  float* c_at(const Tensors& t, std::int64_t block, std::int64_t row) const {
    return t.c + (block * c_rows_ + row) * kernels_.lanes;
  }
  float* tanh_c_at(const Tensors& t, std::int64_t block, std::int64_t row) const {
    return t.tanh_c + (block * gate_rows_ + row) * kernels_.lanes;
  }
  float* dc_at(const Call& call, std::int64_t block) const {
    return dc_.in(call.buffers.workspace) + block * problem_.batch * kernels_.lanes;
  }
  const float* h_before(const Call& call, const Tensors& t, std::int64_t step) const {
    return step == 0 ? t.h_0 : t.y + (step - 1) * call.extent.batch * problem_.hidden;
  }

  Problem problem_;
  CellKernels kernels_;
  CellChoice choice_;
  std::int64_t blocks_ = 0;     // unit blocks of V hidden units
  std::int64_t gate_rows_ = 0;  // rows from one block to the next in gates and tanh_c
  std::int64_t c_rows_ = 0;     // the same in c
  Panels hidden_panels_;
  std::vector<Layer> layers_;
  Place zeros_, dc_, dy_, pack_;              // workspace of training
  Place infer_gates_, infer_c_, infer_y_[2];  // workspace of inference
  std::int64_t pack_floats_ = 0;              // of pack_, per thread
  std::int64_t infer_chunk_ = 0;              // time steps that infer_gates_ holds
  PlanMemory memory_;
};

}  // namespace rnntune::cpu
