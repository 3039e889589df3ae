// SPDX-License-Identifier: Apache-2.0
// Weight gradients of the `cell` plan: per layer and matrix one GEMM over all T*B rows, threads
// share (block, gate) pairs.
#include <algorithm>

#include "cpu/cell_plan.hpp"

namespace rnntune::cpu {
namespace {

// Copies rows [0, rows) of a [.., width] into panels [panel][rows][vectors*V], zeros beyond width.
void pack_activations(const float* a, std::int64_t width, std::int64_t rows, std::int64_t first,
                      std::int64_t panel_width, float* packed) {
  const std::int64_t count = std::min(panel_width, width - first);
  for (std::int64_t row = 0; row < rows; ++row, packed += panel_width) {
    std::copy_n(a + row * width + first, count, packed);
    std::fill(packed + count, packed + panel_width, 0.0f);
  }
}

}  // namespace

Status CellPlan::backward_weights(Extent extent, const BackwardWeights& args,
                                  const PlanBuffers& buffers, Stream) {
  const Call call{extent, buffers, true};
  run_team(choice_.threads, [&](const Member& me) {
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      Tensors t = tensors(call, l, args.x, const_cast<float*>(args.y));  // read only here
      const auto state = static_cast<std::int64_t>(l) * extent.batch * problem_.hidden;
      t.h_0 = args.h_0 ? args.h_0 + state : nullptr;
      weights_layer(me, call, l, t, args.gradients[l]);
    }
  });
  return {};
}

void CellPlan::weights_layer(const Member& me, const Call& call, std::size_t l, const Tensors& t,
                             const LayerGradients& gradients) const {
  const Layer& layer = layers_[l];
  const std::int64_t batch = call.extent.batch, rows = call.rows(), hidden = problem_.hidden;
  weights_matrix(me, call, t.gates, t.x, rows, layer.input, gradients.weight_ih);
  // h' of the first time step is h_0, of the others y one step before.
  if (t.h_0) weights_matrix(me, call, t.gates, t.h_0, batch, hidden, gradients.weight_hh);
  weights_matrix(me, call, gates_at(t, 0, batch), t.y, rows - batch, hidden, gradients.weight_hh);
  bias_gradients(me, call, layer, gradients);
}

// dw[4H, width] += dgates[rows]^T a[rows, width].
void CellPlan::weights_matrix(const Member& me, const Call& call, const float* dgates,
                              const float* a, std::int64_t rows, std::int64_t width,
                              float* dw) const {
  const std::int64_t v = kernels_.lanes, hidden = problem_.hidden;
  const std::int64_t block_stride = gate_rows_ * 4 * v;
  if (width < 3 * v) {
    const Range mine = my_blocks(me);
    for (std::int64_t block = mine.begin; block < mine.end && rows > 0; ++block)
      kernels_.weights_narrow({.dgates = dgates + block * block_stride,
                               .rows = rows,
                               .a = a,
                               .lda = width,
                               .columns = width,
                               .units = block_units(block),
                               .dw = dw + block * v * width,
                               .ldw = width,
                               .gate_stride = hidden * width});
    return;
  }
  const std::int64_t vectors = (width + v - 1) / v;
  const Panels panels{vectors, (vectors + 3) / 4};
  float* packed = pack_.in(call.buffers.workspace) + me.id * pack_floats_;
  const Range mine = split(blocks_ * 4, me.count, me.id);
  const std::int64_t parts = (rows + kPackRows - 1) / kPackRows;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t row = rows * part / parts, count = rows * (part + 1) / parts - row;
    for (std::int64_t panel = 0; panel < panels.count; ++panel)
      pack_activations(a + row * width, width, count, panels.first(panel) * v,
                       panels.width(panel) * v, packed + panels.first(panel) * v * count);
    for (std::int64_t item = mine.begin; item < mine.end; ++item) {
      const std::int64_t block = item / 4, gate = item % 4;
      WeightsTile tile;
      tile.dgates = dgates + block * block_stride + row * 4 * v + gate * v;
      tile.rows = count;
      tile.units = block_units(block);
      tile.ldw = width;
      for (std::int64_t panel = 0; panel < panels.count; ++panel) {
        const std::int64_t first = panels.first(panel) * v;
        tile.packed = packed + first * count;
        tile.vectors = panels.width(panel);
        tile.columns = width - first;
        tile.dw = dw + (gate * hidden + block * v) * width + first;
        kernels_.weights(tile);
      }
    }
  }
}

void CellPlan::bias_gradients(const Member& me, const Call& call, const Layer& layer,
                              const LayerGradients& gradients) const {
  if (problem_.bias == Bias::none) return;
  const std::int64_t v = kernels_.lanes;
  const float* dbias = layer.dbias.in(call.buffers.workspace);
  const Range mine = my_blocks(me);
  for (std::int64_t block = mine.begin; block < mine.end; ++block) {
    for (std::int64_t i = 0; i < 4 * v; ++i) {
      const std::int64_t gate = i / v, unit = i % v;
      if (unit >= block_units(block)) continue;
      float sum = 0;
      for (int id = 0; id < choice_.threads; ++id) sum += dbias[(id * blocks_ + block) * 4 * v + i];
      const std::int64_t at = gate * problem_.hidden + block * v + unit;
      gradients.bias_ih[at] += sum;
      if (problem_.bias == Bias::two) gradients.bias_hh[at] += sum;
    }
  }
}

}  // namespace rnntune::cpu
