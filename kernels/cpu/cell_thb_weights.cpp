// SPDX-License-Identifier: Apache-2.0
// Weight gradients of the `cell` plan in layout [T,H,B]: per layer and matrix one GEMM over all
// samples and time steps, a block of them at a time; threads share units.
#include <algorithm>
#include <cassert>

#include "cpu/cell_thb_plan.hpp"

namespace rnntune::cpu {
namespace {

// Units of one pass over a block's activations: their gradients stay in L1.
constexpr std::int64_t kUnits = 6;

}  // namespace

Status CellThbPlan::backward_weights(Extent extent, const BackwardWeights& args,
                                     const PlanBuffers& buffers, Stream) {
  const Call call = call_of(extent, buffers, true);
  run_team(choice_.threads, [&](const Member& me) {
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      Tensors t = tensors(call, l, args.x, const_cast<float*>(args.y));  // read only here
      const auto state = static_cast<std::int64_t>(l) * extent.batch * problem_.hidden;
      t.h_0 = args.h_0 ? args.h_0 + state : nullptr;
      weights_layer(me, call, layers_[l], t, args.gradients[l]);
    }
  });
  return {};
}

void CellThbPlan::weights_layer(const Member& me, const Call& call, const Layer& layer,
                                const Tensors& t, const LayerGradients& gradients) const {
  const std::int64_t time = call.extent.time, hidden = problem_.hidden;
  WeightsCall ih{t.gates, {0, time}, {t.x_rows, t.x, 1}, layer.input, gradients.weight_ih};
  if (problem_.bias != Bias::none) ih.bias_ih = gradients.bias_ih;
  if (problem_.bias == Bias::two) ih.bias_hh = gradients.bias_hh;
  weights_matrix(me, call, ih);
  // h before the first time step is h_0, before the others y one time step earlier.
  if (t.h_0)
    weights_matrix(me, call, {t.gates, {0, 1}, {t.h_0, {}, 0}, hidden, gradients.weight_hh});
  weights_matrix(me, call, {t.gates, {1, time}, {t.y_rows, t.h, 0}, hidden, gradients.weight_hh});
}

void CellThbPlan::weights_matrix(const Member& me, const Call& call, const WeightsCall& w) const {
  const std::int64_t v = kernels_.lanes;
  const std::int64_t most = std::max(kPackRows, panel_vectors_ * v);
  const Segments all{
      {0, call.panels.count}, {0, w.steps.size() * call.panels.count}, w.steps.begin};
  const Range units = split(problem_.hidden, me.count, me.id);
  if (units.size() == 0) return;
  for (std::int64_t i = all.range.begin; i < all.range.end;) {
    ThbSegment segments[kPackRows];
    Segments part = all;
    part.range = {i, i};
    std::int64_t samples = 0;
    for (; part.range.end < all.range.end && part.range.size() < kPackRows; ++part.range.end) {
      const Panel panel = panel_of(call, all.panel(part.range.end));
      if (samples > 0 && samples + panel.samples > most) break;
      const float* dgates = slot(call, w.dgates, all.step(part.range.end));
      segments[part.range.size()] = {panel.at(dgates, w.dgates.rows), panel.width, panel.samples};
      samples += panel.samples;
    }
    weights_part(me, call, w, part, segments, samples, units);
    i = part.range.end;
  }
}

// One block of samples, which `part` enumerates and `segments` describes.
void CellThbPlan::weights_part(const Member& me, const Call& call, const WeightsCall& w,
                               const Segments& part, const ThbSegment* segments,
                               std::int64_t samples, Range units) const {
  const std::int64_t v = kernels_.lanes, vectors = ceil_div(w.width, v);
  const Panels columns{vectors, ceil_div(vectors, 4)};
  assert(vectors * v * samples <= pack_floats_);
  float* packed = pack_.in(call.buffers.workspace) + me.id * pack_floats_;
  for (std::int64_t panel = 0; panel < columns.count; ++panel)
    pack_activations(call, w, part, samples, columns.first(panel) * v, columns.width(panel) * v,
                     packed + columns.first(panel) * v * samples);
  const auto count = static_cast<int>(part.range.size());
  for (std::int64_t unit = units.begin; unit < units.end; unit += kUnits) {
    const std::int64_t first = 4 * unit, rows = 4 * std::min(kUnits, units.end - unit);
    if (w.bias_ih)
      kernels_.bias({segments, count, first, rows, w.bias_ih, w.bias_hh, problem_.hidden});
    for (std::int64_t panel = 0; panel < columns.count; ++panel) {
      const std::int64_t column = columns.first(panel) * v;
      kernels_.weights({.segments = segments,
                        .segment_count = count,
                        .first = first,
                        .count = rows,
                        .packed = packed + column * samples,
                        .vectors = columns.width(panel),
                        .columns = w.width - column,
                        .dw = w.dw + column,
                        .ldw = w.width,
                        .hidden = problem_.hidden});
    }
  }
}

// Columns [first, first + width) of the activations to [samples][width], zeros where they end.
void CellThbPlan::pack_activations(const Call& call, const WeightsCall& w, const Segments& part,
                                   std::int64_t samples, std::int64_t first, std::int64_t width,
                                   float* packed) const {
  const std::int64_t count = std::min(width, w.width - first);
  const Activations& a = w.activations;
  if (a.rows) {
    // Segments follow each other as samples and time steps do.
    const std::int64_t row = (part.step(part.range.begin) - w.steps.begin) * call.extent.batch +
                             panel_of(call, part.panel(part.range.begin)).sample;
    const float* from = a.rows + row * w.width + first;
    for (std::int64_t i = 0; i < samples; ++i, from += w.width, packed += width) {
      std::copy_n(from, count, packed);
      std::fill(packed + count, packed + width, 0.0f);
    }
    return;
  }
  for (std::int64_t i = part.range.begin; i < part.range.end; ++i) {
    const Panel panel = panel_of(call, part.panel(i));
    const float* from = panel.at(slot(call, a.lanes, part.step(i) + a.ahead), w.width, first);
    kernels_.transpose({.from = from,
                        .from_stride = panel.width,
                        .rows = count,
                        .columns = panel.samples,
                        .to = packed,
                        .to_stride = width,
                        .padded = width});
    packed += panel.samples * width;
  }
}

}  // namespace rnntune::cpu
