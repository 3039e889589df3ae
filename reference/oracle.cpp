// SPDX-License-Identifier: Apache-2.0
// The oracle: a training step in float64, one scalar loop nest per equation, nothing blocked or
// reordered. For each layer and direction, t in the direction's order, the sample b in between:
//
//   from_x = W x_t + b_ih    from_h = R h' + b_hh    (h, c) = cell(from_x, from_h, h', c')
//   y_t = h, or W_hr h when projected; what is called h' is then the projected one
//
// and backward, from the last time step to the first, with dh = dy_t + (dh of the next time step):
//
//   projected: dW_hr += dh h^T, dh = W_hr^T dh       (d_from_x, d_from_h, dc') = cell backward
//   dW += d_from_x x_t^T   dR += d_from_h h'^T   db_ih += d_from_x   db_hh += d_from_h
//   dx_t += W^T d_from_x   dh' = R^T d_from_h + (what bypasses from_h)
//
// which is back-propagation through time (Werbos 1990) of the cells in cells.cpp; the projection is
// that of Sak et al. 2014. Proved by central finite differences in tests/oracle_test.cpp.
#include "reference/oracle.hpp"

#include <algorithm>
#include <stdexcept>

#include "reference/cells.hpp"

namespace rnntune::reference {
namespace {

using Index = std::int64_t;
using Vector = std::vector<double>;

// One layer and direction. Rows of h and c are states: row s is the state before the s-th time step
// in the order of the direction.
struct Pass {
  Index T, B, K, H, O, gates;  // K: width of the layer's input
  bool reversed, projected;
  const CellEquations* cell;
  const LayerTensors<double>* weights;
  const Vector* x;        // [T,B,K]
  Index y_width, y_from;  // this direction's columns of the layer's output [T,B,y_width]
  Vector h, c, stash, u;  // [T+1,B,O] [T+1,B,H] [T,B,stash_rows*H] [T,B,H]; u: h before projection

  Index time_of(Index s) const { return reversed ? T - 1 - s : s; }
  Index stash_width() const { return cell->stash_rows * H; }
};

// out[r] = bias[r] + sum_k m[r,k] v[k]; an empty bias is zero
void affine(const Vector& m, const Vector& bias, const double* v, Index columns, Vector& out) {
  for (std::size_t r = 0; r < out.size(); ++r) {
    double sum = bias.empty() ? 0 : bias[r];
    for (Index k = 0; k < columns; ++k) sum += m[r * columns + k] * v[k];
    out[r] = sum;
  }
}

// out[k] += sum_r m[r,k] v[r]
void add_transposed(const Vector& m, const Vector& v, Index columns, double* out) {
  for (std::size_t r = 0; r < v.size(); ++r)
    for (Index k = 0; k < columns; ++k) out[k] += m[r * columns + k] * v[r];
}

// m[r,k] += v[r] w[k]
void add_outer(const Vector& v, const double* w, Index columns, Vector& m) {
  for (std::size_t r = 0; r < v.size(); ++r)
    for (Index k = 0; k < columns; ++k) m[r * columns + k] += v[r] * w[k];
}

void add_to(Vector& sum, const Vector& v) {
  for (std::size_t r = 0; r < sum.size(); ++r) sum[r] += v[r];
}

void forward(Pass& p, const double* h_0, const double* c_0, Vector& y) {
  const Index T = p.T, B = p.B, H = p.H, O = p.O;
  p.h.assign((T + 1) * B * O, 0);
  p.c.assign((T + 1) * B * H, 0);
  p.u.assign(T * B * H, 0);
  p.stash.assign(T * B * p.stash_width(), 0);
  std::copy_n(h_0, B * O, p.h.begin());
  if (p.cell->has_c) std::copy_n(c_0, B * H, p.c.begin());
  Vector from_x(p.gates * H), from_h(p.gates * H), projected(O);
  for (Index s = 0; s < T; ++s) {
    for (Index b = 0; b < B; ++b) {
      const Index now = s * B + b, next = now + B, row = p.time_of(s) * B + b;
      double* u = &p.u[now * H];
      affine(p.weights->weight_ih, p.weights->bias_ih, &(*p.x)[row * p.K], p.K, from_x);
      affine(p.weights->weight_hh, p.weights->bias_hh, &p.h[now * O], O, from_h);
      p.cell->forward({H, from_x.data(), from_h.data(), &p.h[now * O], &p.c[now * H],
                       &p.stash[now * p.stash_width()], &p.c[next * H], u});
      if (p.projected) {
        affine(p.weights->weight_hr, {}, u, H, projected);
        u = projected.data();
      }
      std::copy_n(u, O, &p.h[next * O]);
      std::copy_n(u, O, &y[row * p.y_width + p.y_from]);
    }
  }
}

// dh and dc [B,O], [B,H]: in, the gradients of the last state; out, of the first.
void backward(const Pass& p, const Vector& dy, Vector& dx, double* dh, double* dc,
              LayerTensors<double>& gradient) {
  const Index B = p.B, H = p.H, O = p.O;
  Vector d_from_x(p.gates * H), d_from_h(p.gates * H), dh_total(O), du(H), dh_before(H);
  for (Index s = p.T - 1; s >= 0; --s) {
    for (Index b = 0; b < B; ++b) {
      const Index now = s * B + b, next = now + B, row = p.time_of(s) * B + b;
      for (Index k = 0; k < O; ++k)
        dh_total[k] = dy[row * p.y_width + p.y_from + k] + dh[b * O + k];
      if (p.projected) {
        add_outer(dh_total, &p.u[now * H], H, gradient.weight_hr);
        std::fill(du.begin(), du.end(), 0.0);
        add_transposed(p.weights->weight_hr, dh_total, H, du.data());
      } else {
        du = dh_total;
      }
      p.cell->backward({H, &p.stash[now * p.stash_width()], &p.h[now * O], &p.c[now * H],
                        &p.c[next * H], du.data(), dc + b * H, d_from_x.data(), d_from_h.data(),
                        dh_before.data()});
      add_outer(d_from_x, &(*p.x)[row * p.K], p.K, gradient.weight_ih);
      add_outer(d_from_h, &p.h[now * O], O, gradient.weight_hh);
      add_to(gradient.bias_ih, d_from_x);
      add_to(gradient.bias_hh, d_from_h);
      add_transposed(p.weights->weight_ih, d_from_x, p.K, &dx[row * p.K]);
      for (Index k = 0; k < O; ++k) dh[b * O + k] = p.projected ? 0 : dh_before[k];
      add_transposed(p.weights->weight_hh, d_from_h, O, dh + b * O);
    }
  }
}

LayerTensors<double> zeros_like(const LayerTensors<double>& w) {
  auto zero = [](const Vector& v) { return Vector(v.size(), 0.0); };
  return {zero(w.weight_ih), zero(w.weight_hh), zero(w.bias_ih), zero(w.bias_hh),
          zero(w.weight_hr)};
}

}  // namespace

std::string reference_why_not(const Problem& problem) {
  if (!find_equations(problem.cell))
    return std::string("no reference for the cell ") + to_string(problem.cell) + " yet";
  if (problem.projection > 0 && problem.cell != Cell::lstm)
    return std::string("no reference for a projected ") + to_string(problem.cell);
  for (Index g : problem.groups)
    if (g != 1) return "no reference for grouped weights (G) yet";
  if (problem.rank > 0) return "no reference for factorised weights (R) yet";
  if (problem.heads != 1) return "no reference for a block-diagonal recurrence (N) yet";
  if (problem.skip) return "no reference for the identity input (skip) yet";
  if (problem.variable_lengths) return "no reference for variable lengths (var) yet";
  if (problem.dropout > 0) return "no reference with dropout: a mask is the library's own state";
  return {};
}

DoubleInputs widen(const Inputs& in) {
  auto wide = [](const std::vector<float>& v) { return Vector(v.begin(), v.end()); };
  DoubleInputs out{
      wide(in.x), wide(in.h_0), wide(in.c_0), wide(in.dy), wide(in.dh_n), wide(in.dc_n), {}};
  for (const LayerTensors<float>& w : in.weights)
    out.weights.push_back({wide(w.weight_ih), wide(w.weight_hh), wide(w.bias_ih), wide(w.bias_hh),
                           wide(w.weight_hr)});
  return out;
}

Outputs<double> oracle_step(const Problem& problem, const DoubleInputs& in) {
  if (const std::string why = reference_why_not(problem); !why.empty())
    throw std::invalid_argument("problem " + to_string(problem) + ": " + why);
  const Index T = problem.time, B = problem.batch, H = problem.hidden, O = problem.output();
  const Index D = problem.directions, width = D * O;
  const bool has_c = find_equations(problem.cell)->has_c;
  std::vector<Vector> layer_y(problem.layers, Vector(T * B * width));
  std::vector<Pass> passes;
  for (Index n = 0; n < problem.layers * D; ++n) {
    const Index layer = n / D, direction = n % D;
    passes.push_back({T,
                      B,
                      problem.layer_input(layer),
                      H,
                      O,
                      problem.gates(),
                      direction == 1,
                      problem.projection > 0,
                      find_equations(problem.cell),
                      &in.weights[n],
                      layer ? &layer_y[layer - 1] : &in.x,
                      width,
                      direction * O,
                      {},
                      {},
                      {},
                      {}});
    forward(passes[n], &in.h_0[n * B * O], has_c ? &in.c_0[n * B * H] : nullptr, layer_y[layer]);
  }
  Outputs<double> out;
  out.y = layer_y.back();
  for (const Pass& p : passes) {
    out.h_n.insert(out.h_n.end(), p.h.end() - B * O, p.h.end());
    if (has_c) out.c_n.insert(out.c_n.end(), p.c.end() - B * H, p.c.end());
    out.gradients.push_back(zeros_like(*p.weights));
  }
  out.dh_0 = in.dh_n;
  Vector dc = has_c ? in.dc_n : Vector(problem.layers * D * B * H, 0.0);
  Vector dy = in.dy;
  for (Index layer = problem.layers - 1; layer >= 0; --layer) {
    Vector dx(T * B * problem.layer_input(layer), 0.0);
    for (Index n = layer * D; n < (layer + 1) * D; ++n)
      backward(passes[n], dy, dx, &out.dh_0[n * B * O], &dc[n * B * H], out.gradients[n]);
    dy.swap(dx);
  }
  out.dx = std::move(dy);
  if (has_c) out.dc_0 = std::move(dc);
  return out;
}

Outputs<double> oracle_step(const Problem& problem, const Inputs& inputs) {
  return oracle_step(problem, widen(inputs));
}

}  // namespace rnntune::reference
