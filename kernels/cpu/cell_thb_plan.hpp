// SPDX-License-Identifier: Apache-2.0
// The plan of the `cell` variant in layout [T,H,B]: where everything lies, and the loops over
// layers, time, panels of samples and tiles of units. Arrays are [T][panels][rows][W], see
// cell_thb_kernels.hpp. What the caller gives and gets, [T,B,H], is transposed where it is used:
// per time step in the recurrence, per block of panels in the GEMMs over all time steps.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "cpu/cell_common.hpp"
#include "cpu/cell_thb_kernels.hpp"
#include "cpu/team.hpp"
#include "plan.hpp"
#include "plan_memory.hpp"

namespace rnntune::cpu {

// Most panels that meet the same weights before the next weights come.
inline constexpr std::int64_t kBlockPanels = 16;

// Deals the next tile's weights out over the panels that this tile computes.
class AheadSlices {
 public:
  AheadSlices(bool wanted, std::int64_t slices, const float* at, std::int64_t floats)
      : at_(at), left_(wanted ? floats : 0), each_(ceil_div(floats, slices * 16) * 16) {}
  Ahead next() {
    const Ahead slice{at_, std::min(each_, left_)};
    at_ += slice.floats;
    left_ -= slice.floats;
    return slice;
  }

 private:
  const float* at_;
  std::int64_t left_, each_;
};

class CellThbPlan final : public Plan {
 public:
  // choice.columns is the most vectors of a panel, with choice.columns <= 4 and
  // kernels.forward_units[choice.columns] > 0.
  static Result<std::unique_ptr<Plan>> make(const Problem& problem, const CellThbKernels& kernels,
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
    Panels inputs;                 // tiles of dx
    Place weights, bias;           // packed, forward: [tile][input + H][units * 4]
    Place weights_hh, weights_ih;  // packed, backward: [tile][H * 4][units]
    Place gates, c, tanh_c;        // reserve, or workspace where recomputed
    Place h;                       // reserve, [T + 1]; not of the last layer
  };

  // One call: its sizes and buffers, the same for all threads.
  struct Call {
    Extent extent;
    PlanBuffers buffers;
    bool training = true;
    Panels panels;  // of vectors of samples
  };

  // An array of the plan's own, as [slots][panels][rows][W].
  struct Lanes {
    float* base = nullptr;
    std::int64_t rows = 0;
    std::int64_t slots = 1;  // time step t is in slot t % slots
  };

  // Where a panel lies.
  struct Panel {
    std::int64_t sample = 0;   // its first one
    std::int64_t width = 0;    // lanes
    std::int64_t samples = 0;  // lanes that exist
    int vectors = 0;
    // Row `row` in a slot of an array of `rows` rows; null in null.
    template <class Float>
    Float* at(Float* slot, std::int64_t rows, std::int64_t row = 0) const {
      return slot ? slot + sample * rows + row * width : nullptr;
    }
  };

  // The operands of one layer in one call. Slots of h and c are the state before time step t.
  struct Tensors {
    const float* x_rows = nullptr;  // the first layer's x, [T,B,I]
    Lanes x;                        // a later layer's: h of the layer below, from slot 1 on
    float* y_rows = nullptr;        // the last layer's y, [T,B,H]
    const float* h_0 = nullptr;
    const float* c_0 = nullptr;
    Lanes h, c, gates, tanh_c;
  };

  // What a thread computes of a time step.
  struct Share {
    Range tiles;   // of units
    Range units;   // the same in units
    Range panels;  // of samples
  };

  // The pairs (time step, panel) that a thread computes of a GEMM over many time steps.
  struct Segments {
    Range panels;
    Range range;
    std::int64_t first_step = 0;
    std::int64_t step(std::int64_t i) const { return first_step + i / panels.size(); }
    std::int64_t panel(std::int64_t i) const { return panels.begin + i % panels.size(); }
  };

  // The other operand of a weight gradient: the caller's [T,B,width], from the first time step of
  // the call on, or an array of the plan's whose time steps are `ahead` slots further.
  struct Activations {
    const float* rows = nullptr;
    Lanes lanes;
    std::int64_t ahead = 0;
  };

  // dw[4 * H, width] += dgates^T activations over some time steps, and the bias gradients.
  struct WeightsCall {
    Lanes dgates;
    Range steps;
    Activations activations;
    std::int64_t width = 0;
    float* dw = nullptr;
    float* bias_ih = nullptr;  // null: not wanted
    float* bias_hh = nullptr;
  };

  CellThbPlan(const Problem& problem, const CellThbKernels& kernels, const CellChoice& choice);
  void place_layers();
  void place_workspace();
  Panels panels_of(std::int64_t samples) const;
  Call call_of(Extent extent, const PlanBuffers& buffers, bool training) const;
  void pack_bias(const Layer& layer, const LayerWeights& w, std::byte* packed, Range units) const;

  Panel panel_of(const Call& call, std::int64_t panel) const {
    const std::int64_t v = kernels_.lanes, sample = call.panels.first(panel) * v;
    const int vectors = call.panels.width(panel);
    return {sample, vectors * v, std::min(vectors * v, call.extent.batch - sample), vectors};
  }
  float* slot(const Call& call, const Lanes& a, std::int64_t step) const {
    return a.base + step % a.slots * a.rows * call.panels.vectors * kernels_.lanes;
  }
  float* scratch(const Member& me, const Call& call) const {
    return scratch_.in(call.buffers.workspace) + me.id * scratch_floats_;
  }
  std::int64_t block_panels(std::int64_t depth) const;
  Share share(const Member& me, const Call& call, const Panels& tiles) const;
  Segments segments(const Member& me, const Call& call, Range steps) const;

  // Columns [columns.begin, columns.end) of the caller's rows [B, width] to and from a panel
  // [width][W]. A null `rows` reads as zeros.
  void to_lanes(const Panel& panel, const float* rows, std::int64_t width, Range columns,
                float* lanes) const;
  void from_lanes(const Panel& panel, const float* lanes, std::int64_t width, Range columns,
                  float* rows) const;
  // The same in all panels of a share, to and from the slot of `step`.
  void state_in(const Call& call, const Share& mine, const float* rows, const Lanes& lanes,
                std::int64_t step) const;
  void state_out(const Call& call, const Share& mine, const Lanes& lanes, std::int64_t step,
                 float* rows) const;

  Tensors tensors(const Call& call, std::size_t layer, const float* x, float* y) const;
  const float* input_of(const Call& call, const Layer& layer, const Tensors& t, std::int64_t step,
                        const Panel& panel, float* space) const;
  const float* hidden_of(const Call& call, const Tensors& t, std::int64_t step, const Panel& panel,
                         float* space) const;
  void forward_layer(const Member& me, const Call& call, std::size_t layer, const Tensors& t,
                     const Forward& args) const;
  void next_input(const Member& me, const Call& call, const Tensors& t, std::int64_t step) const;
  void gates_of(const Member& me, const Call& call, const Layer& layer, const Tensors& t,
                const Segments& mine, bool recompute) const;
  void recurrence(const Call& call, const Layer& layer, const Tensors& t, const Share& mine,
                  std::int64_t step) const;

  void backward_layer(const Member& me, const Call& call, std::size_t layer, const Tensors& t,
                      const BackwardData& args) const;
  void backward_step(const Call& call, const Layer& layer, const Tensors& t, const Share& mine,
                     const Lanes& dy, const float* dh_n, std::int64_t step) const;
  void backward_state(const Call& call, const Layer& layer, const Tensors& t,
                      const Share& mine) const;
  void backward_input(const Member& me, const Call& call, const Layer& layer, const Tensors& t,
                      float* dx_rows) const;

  void weights_layer(const Member& me, const Call& call, const Layer& layer, const Tensors& t,
                     const LayerGradients& gradients) const;
  void weights_matrix(const Member& me, const Call& call, const WeightsCall& w) const;
  void weights_part(const Member& me, const Call& call, const WeightsCall& w, const Segments& part,
                    const ThbSegment* segments, std::int64_t samples, Range units) const;
  void pack_activations(const Call& call, const WeightsCall& w, const Segments& part,
                        std::int64_t samples, std::int64_t first, std::int64_t width,
                        float* packed) const;

  Problem problem_;
  CellThbKernels kernels_;
  CellChoice choice_;
  int panel_vectors_ = 0;    // of the widest panel
  std::int64_t padded_ = 0;  // B, rounded up to whole vectors
  Panels units_;             // forward tiles
  Panels hidden_;            // backward tiles
  std::vector<Layer> layers_;
  Place top_h_, x_, dc_, dh_, dy_, inner_dy_, scratch_, pack_;  // workspace
  Place infer_gates_, infer_c_, infer_h_[2];                    // workspace of inference
  std::int64_t infer_chunk_ = 0;                                // time steps in infer_gates_
  std::int64_t pack_floats_ = 0, scratch_floats_ = 0;           // per thread
  PlanMemory memory_;
};

}  // namespace rnntune::cpu
