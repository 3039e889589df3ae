// SPDX-License-Identifier: Apache-2.0
// The step in float64 on BLAS, for full sizes: the oracle's equations with the products taken out
// of the time loop. Per layer and direction, rows are (time step, sample) in the direction's order:
//
//   from_x [T*B,gates*H] = X W^T             one GEMM
//   per time step: from_h [B,gates*H] = h' R^T, then the cell
//   per time step backward: the cell, then dh' [B,O] = dA_h R
//   dX += dA_x W   dW += dA_x^T X   dR += dA_h^T H'   db = column sums     one GEMM each
//
// Memory, in float64 beside the inputs: every layer keeps its states and stash, the widened weights
// of one layer and the gate gradients of one layer are alive at a time; the gradients are the
// output. Proved against the oracle in tests/blas64_test.cpp.
#include <cblas.h>

#include <algorithm>
#include <stdexcept>

#include "reference/cells.hpp"
#include "reference/step.hpp"

namespace rnntune::reference {
namespace {

using Index = std::int64_t;
using Vector = std::vector<double>;

constexpr double kOracleFlops = 2e8;  // about 0.3 s of the oracle

bool is_small(const Problem& problem) { return step_flops(problem) < kOracleFlops; }

// C [m,n] = beta C + op(A) op(B), row-major; lda, ldb, ldc are the rows' lengths in memory.
void gemm(CBLAS_TRANSPOSE op_a, CBLAS_TRANSPOSE op_b, Index m, Index n, Index k, const double* a,
          Index lda, const double* b, Index ldb, double beta, double* c, Index ldc) {
  auto dim = [](Index v) { return static_cast<blasint>(v); };
  cblas_dgemm(CblasRowMajor, op_a, op_b, dim(m), dim(n), dim(k), 1, a, dim(lda), b, dim(ldb), beta,
              c, dim(ldc));
}

Vector widen(const std::vector<float>& v) { return {v.begin(), v.end()}; }

struct Pass {
  Index T, B, K, H, O, rows;  // rows = gates * H
  bool reversed, projected;
  const CellEquations* cell;
  const LayerTensors<float>* weights;
  Index y_width, y_from;
  Vector h, c, stash, u;  // [T+1,B,O] [T+1,B,H] [T,B,stash_rows*H] [T,B,H] in the pass's order

  Index stash_width() const { return cell->stash_rows * H; }
  // Row s of the pass's order is this row of x and y.
  Index time_of(Index s) const { return reversed ? T - 1 - s : s; }
};

// The rows of a [T,B,width] tensor in the pass's order.
Vector in_order(const Pass& p, const Vector& tensor, Index width, Index from, Index columns) {
  Vector out(p.T * p.B * columns);
  for (Index s = 0; s < p.T; ++s)
    for (Index b = 0; b < p.B; ++b)
      std::copy_n(&tensor[(p.time_of(s) * p.B + b) * width + from], columns,
                  &out[(s * p.B + b) * columns]);
  return out;
}

void add_bias(const std::vector<float>& bias, Index count, Vector& rows) {
  const Index width = static_cast<Index>(bias.size());
  for (Index n = 0; width && n < count; ++n)
    for (Index r = 0; r < width; ++r) rows[n * width + r] += bias[r];
}

void forward(Pass& p, const Vector& x, const float* h_0, const float* c_0, Vector& y) {
  const Index T = p.T, B = p.B, H = p.H, O = p.O, rows = p.rows;
  p.h.assign((T + 1) * B * O, 0);
  p.c.assign(p.cell->has_c ? (T + 1) * B * H : 0, 0);
  p.stash.resize(T * B * p.stash_width());
  p.u.resize(p.projected ? T * B * H : B * H);
  std::copy_n(h_0, B * O, p.h.begin());
  if (p.cell->has_c) std::copy_n(c_0, B * H, p.c.begin());
  const Vector hh = widen(p.weights->weight_hh), hr = widen(p.weights->weight_hr);
  Vector from_x(T * B * rows), from_h(B * rows);
  {
    const Vector ih = widen(p.weights->weight_ih), ordered = in_order(p, x, p.K, 0, p.K);
    gemm(CblasNoTrans, CblasTrans, T * B, rows, p.K, ordered.data(), p.K, ih.data(), p.K, 0,
         from_x.data(), rows);
  }
  add_bias(p.weights->bias_ih, T * B, from_x);
  for (Index s = 0; s < T; ++s) {
    const double* h_before = &p.h[s * B * O];
    double* h = &p.h[(s + 1) * B * O];
    double* u = p.projected ? &p.u[s * B * H] : h;
    gemm(CblasNoTrans, CblasTrans, B, rows, O, h_before, O, hh.data(), O, 0, from_h.data(), rows);
    add_bias(p.weights->bias_hh, B, from_h);
    for (Index b = 0; b < B; ++b) {
      const Index now = s * B + b;
      double* c = p.cell->has_c ? &p.c[now * H] : nullptr;
      p.cell->forward({H, &from_x[now * rows], &from_h[b * rows], h_before + b * O, c,
                       &p.stash[now * p.stash_width()], c ? c + B * H : nullptr, u + b * H});
    }
    if (p.projected) gemm(CblasNoTrans, CblasTrans, B, O, H, u, H, hr.data(), H, 0, h, O);
    for (Index b = 0; b < B; ++b)
      std::copy_n(h + b * O, O, &y[(p.time_of(s) * B + b) * p.y_width + p.y_from]);
  }
}

struct GateGradients {
  Vector from_x, from_h;  // [T,B,rows], from_h empty where the two are the same
};

// dh and dc: in, the gradients of the last state; out, of the first.
GateGradients backward_time(const Pass& p, const Vector& dy, double* dh, double* dc, Vector& d_hr) {
  const Index T = p.T, B = p.B, H = p.H, O = p.O, rows = p.rows;
  const Vector hh = widen(p.weights->weight_hh), hr = widen(p.weights->weight_hr);
  const Vector dy_ordered = in_order(p, dy, p.y_width, p.y_from, O);
  GateGradients d{Vector(T * B * rows), Vector(p.cell->cell == Cell::gru ? T * B * rows : 0)};
  Vector d_from_h(B * rows), dh_all(T * B * O), du(B * H), bypass(B * H);
  for (Index s = T - 1; s >= 0; --s) {
    double* dh_now = &dh_all[s * B * O];
    for (Index k = 0; k < B * O; ++k) dh_now[k] = dy_ordered[s * B * O + k] + dh[k];
    if (p.projected)
      gemm(CblasNoTrans, CblasNoTrans, B, H, O, dh_now, O, hr.data(), H, 0, du.data(), H);
    for (Index b = 0; b < B; ++b) {
      const Index now = s * B + b;
      const double* c = p.cell->has_c ? &p.c[now * H] : nullptr;
      p.cell->backward({H, &p.stash[now * p.stash_width()], &p.h[now * O], c,
                        c ? c + B * H : nullptr, p.projected ? &du[b * H] : dh_now + b * O,
                        dc + b * H, &d.from_x[now * rows], &d_from_h[b * rows], &bypass[b * H]});
    }
    if (p.projected)
      std::fill_n(dh, B * O, 0.0);
    else
      std::copy_n(bypass.data(), B * O, dh);
    gemm(CblasNoTrans, CblasNoTrans, B, O, rows, d_from_h.data(), rows, hh.data(), O, 1, dh, O);
    if (!d.from_h.empty()) std::copy_n(d_from_h.data(), B * rows, &d.from_h[s * B * rows]);
  }
  if (p.projected)
    gemm(CblasTrans, CblasNoTrans, O, H, T * B, dh_all.data(), O, p.u.data(), H, 0, d_hr.data(), H);
  return d;
}

Vector column_sums(const Vector& m, Index width, bool wanted) {
  Vector sums(wanted ? width : 0, 0.0);
  for (std::size_t n = 0; wanted && n < m.size(); n += width)
    for (Index r = 0; r < width; ++r) sums[r] += m[n + r];
  return sums;
}

LayerTensors<double> backward(const Pass& p, const Vector& x, const Vector& dy, Vector& dx,
                              double* dh, double* dc) {
  const Index N = p.T * p.B, K = p.K, O = p.O, rows = p.rows;
  LayerTensors<double> g;
  g.weight_ih.resize(rows * K);
  g.weight_hh.resize(rows * O);
  g.weight_hr.resize(p.weights->weight_hr.size());
  const GateGradients d = backward_time(p, dy, dh, dc, g.weight_hr);
  const Vector& from_h = d.from_h.empty() ? d.from_x : d.from_h;
  const Vector ordered = in_order(p, x, K, 0, K);
  gemm(CblasTrans, CblasNoTrans, rows, K, N, d.from_x.data(), rows, ordered.data(), K, 0,
       g.weight_ih.data(), K);
  gemm(CblasTrans, CblasNoTrans, rows, O, N, from_h.data(), rows, p.h.data(), O, 0,
       g.weight_hh.data(), O);
  g.bias_ih = column_sums(d.from_x, rows, !p.weights->bias_ih.empty());
  g.bias_hh = column_sums(from_h, rows, !p.weights->bias_hh.empty());
  const Vector ih = widen(p.weights->weight_ih);
  Vector dx_ordered(N * K);
  gemm(CblasNoTrans, CblasNoTrans, N, K, rows, d.from_x.data(), rows, ih.data(), K, 0,
       dx_ordered.data(), K);
  for (Index s = 0; s < p.T; ++s)
    for (Index k = 0; k < p.B * K; ++k)
      dx[p.time_of(s) * p.B * K + k] += dx_ordered[s * p.B * K + k];
  return g;
}

}  // namespace

Outputs<double> blas64_step(const Problem& problem, const Inputs& in) {
  if (const std::string why = reference_why_not(problem); !why.empty())
    throw std::invalid_argument("problem " + to_string(problem) + ": " + why);
  const Index T = problem.time, B = problem.batch, H = problem.hidden, O = problem.output();
  const Index D = problem.directions, passes = problem.layers * D;
  const CellEquations* cell = find_equations(problem.cell);
  std::vector<Vector> layer_x(problem.layers + 1);
  layer_x[0] = widen(in.x);
  std::vector<Pass> pass;
  for (Index n = 0; n < passes; ++n) {
    const Index layer = n / D;
    layer_x[layer + 1].resize(T * B * D * O);
    pass.push_back({T,
                    B,
                    problem.layer_input(layer),
                    H,
                    O,
                    problem.gates() * H,
                    n % D == 1,
                    problem.projection > 0,
                    cell,
                    &in.weights[n],
                    D * O,
                    n % D * O,
                    {},
                    {},
                    {},
                    {}});
    forward(pass[n], layer_x[layer], &in.h_0[n * B * O], cell->has_c ? &in.c_0[n * B * H] : nullptr,
            layer_x[layer + 1]);
  }
  Outputs<double> out;
  out.y = std::move(layer_x.back());
  for (const Pass& p : pass) {
    out.h_n.insert(out.h_n.end(), p.h.end() - B * O, p.h.end());
    if (cell->has_c) out.c_n.insert(out.c_n.end(), p.c.end() - B * H, p.c.end());
  }
  out.gradients.resize(passes);
  out.dh_0 = widen(in.dh_n);
  Vector dc = cell->has_c ? widen(in.dc_n) : Vector(passes * B * H, 0.0), dy = widen(in.dy);
  for (Index layer = problem.layers - 1; layer >= 0; --layer) {
    Vector dx(layer_x[layer].size(), 0.0);
    for (Index n = layer * D; n < (layer + 1) * D; ++n)
      out.gradients[n] =
          backward(pass[n], layer_x[layer], dy, dx, &out.dh_0[n * B * O], &dc[n * B * H]);
    dy.swap(dx);
  }
  out.dx = std::move(dy);
  if (cell->has_c) out.dc_0 = std::move(dc);
  return out;
}

Outputs<double> reference_step(const Problem& problem, const Inputs& inputs) {
  return is_small(problem) ? oracle_step(problem, inputs) : blas64_step(problem, inputs);
}

const char* reference_name(const Problem& problem) {
  return is_small(problem) ? "oracle" : "blas64";
}

}  // namespace rnntune::reference
