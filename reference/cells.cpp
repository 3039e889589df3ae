// SPDX-License-Identifier: Apache-2.0
// a = from_x + from_h are the pre-activations, x' is x at the previous time step, da the gradient
// of a. LSTM: Hochreiter & Schmidhuber 1997 with the forget gate of Gers et al. 2000, as in
// PyTorch's nn.LSTM and cuDNN. GRU: linear before reset, as in PyTorch's nn.GRU and cuDNN.
//
//   LSTM  i = sigma(a_i)  f = sigma(a_f)  g = tanh(a_g)  o = sigma(a_o)
//         c = f c' + i g              h = o tanh(c)
//         dc += dh o (1 - tanh(c)^2)  da_o = dh tanh(c) o (1 - o)
//         da_i = dc g i (1 - i)       da_f = dc c' f (1 - f)
//         da_g = dc i (1 - g^2)       dc' = dc f
//   GRU   r = sigma(a_r)  z = sigma(a_z)  n = tanh(from_x_n + r from_h_n)
//         h = (1 - z) n + z h'
//         dn = dh (1 - z) (1 - n^2)   da_z = dh (h' - n) z (1 - z)
//         d_from_x_n = dn             d_from_h_n = dn r
//         da_r = dn from_h_n r (1 - r)             dh' += dh z
//   RNN   h = tanh(a) or max(a, 0)    da = dh (1 - h^2) or dh [h > 0]
#include "reference/cells.hpp"

#include <algorithm>
#include <cmath>

namespace rnntune::reference {
namespace {

double sigma(double a) { return 1 / (1 + std::exp(-a)); }

void lstm_forward(const CellForward& s) {
  const std::int64_t H = s.hidden;
  for (std::int64_t j = 0; j < H; ++j) {
    const double i = sigma(s.from_x[j] + s.from_h[j]);
    const double f = sigma(s.from_x[H + j] + s.from_h[H + j]);
    const double g = std::tanh(s.from_x[2 * H + j] + s.from_h[2 * H + j]);
    const double o = sigma(s.from_x[3 * H + j] + s.from_h[3 * H + j]);
    s.c[j] = f * s.c_before[j] + i * g;
    s.h[j] = o * std::tanh(s.c[j]);
    s.stash[j] = i;
    s.stash[H + j] = f;
    s.stash[2 * H + j] = g;
    s.stash[3 * H + j] = o;
  }
}

void lstm_backward(const CellBackward& s) {
  const std::int64_t H = s.hidden;
  for (std::int64_t j = 0; j < H; ++j) {
    const double i = s.stash[j], f = s.stash[H + j];
    const double g = s.stash[2 * H + j], o = s.stash[3 * H + j];
    const double tanh_c = std::tanh(s.c[j]);
    const double dc = s.dc[j] + s.dh[j] * o * (1 - tanh_c * tanh_c);
    s.d_from_x[j] = dc * g * i * (1 - i);
    s.d_from_x[H + j] = dc * s.c_before[j] * f * (1 - f);
    s.d_from_x[2 * H + j] = dc * i * (1 - g * g);
    s.d_from_x[3 * H + j] = s.dh[j] * tanh_c * o * (1 - o);
    s.dc[j] = dc * f;
    s.dh_before[j] = 0;
  }
  std::copy_n(s.d_from_x, 4 * H, s.d_from_h);
}

void gru_forward(const CellForward& s) {
  const std::int64_t H = s.hidden;
  for (std::int64_t j = 0; j < H; ++j) {
    const double r = sigma(s.from_x[j] + s.from_h[j]);
    const double z = sigma(s.from_x[H + j] + s.from_h[H + j]);
    const double n = std::tanh(s.from_x[2 * H + j] + r * s.from_h[2 * H + j]);
    s.h[j] = (1 - z) * n + z * s.h_before[j];
    s.stash[j] = r;
    s.stash[H + j] = z;
    s.stash[2 * H + j] = n;
    s.stash[3 * H + j] = s.from_h[2 * H + j];
  }
}

void gru_backward(const CellBackward& s) {
  const std::int64_t H = s.hidden;
  for (std::int64_t j = 0; j < H; ++j) {
    const double r = s.stash[j], z = s.stash[H + j];
    const double n = s.stash[2 * H + j], from_h_n = s.stash[3 * H + j];
    const double dn = s.dh[j] * (1 - z) * (1 - n * n);
    s.d_from_x[j] = s.d_from_h[j] = dn * from_h_n * r * (1 - r);
    s.d_from_x[H + j] = s.d_from_h[H + j] = s.dh[j] * (s.h_before[j] - n) * z * (1 - z);
    s.d_from_x[2 * H + j] = dn;
    s.d_from_h[2 * H + j] = dn * r;
    s.dh_before[j] = s.dh[j] * z;
  }
}

double tanh_value(double a) { return std::tanh(a); }
double tanh_slope(double h) { return 1 - h * h; }
double relu_value(double a) { return std::max(a, 0.0); }
double relu_slope(double h) { return h > 0 ? 1 : 0; }

template <double (*value)(double)>
void rnn_forward(const CellForward& s) {
  for (std::int64_t j = 0; j < s.hidden; ++j)
    s.stash[j] = s.h[j] = value(s.from_x[j] + s.from_h[j]);
}

template <double (*slope)(double)>
void rnn_backward(const CellBackward& s) {
  for (std::int64_t j = 0; j < s.hidden; ++j) {
    s.d_from_x[j] = s.d_from_h[j] = s.dh[j] * slope(s.stash[j]);
    s.dh_before[j] = 0;
  }
}

constexpr CellEquations kCells[] = {
    {Cell::lstm, 4, true, lstm_forward, lstm_backward},
    {Cell::gru, 4, false, gru_forward, gru_backward},
    {Cell::rnn_tanh, 1, false, rnn_forward<tanh_value>, rnn_backward<tanh_slope>},
    {Cell::rnn_relu, 1, false, rnn_forward<relu_value>, rnn_backward<relu_slope>},
};

}  // namespace

const CellEquations* find_equations(Cell cell) {
  for (const CellEquations& row : kCells)
    if (row.cell == cell) return &row;
  return nullptr;
}

}  // namespace rnntune::reference
