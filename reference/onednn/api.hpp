// SPDX-License-Identifier: Apache-2.0
// The two API generations of oneDNN behind one pair of functions. 2.x describes an operation apart
// from its primitive descriptor, 3.x does not.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace rnntune::reference::onednn {

// The tensors of an LSTM primitive; each may leave its layout to oneDNN.
struct Descs {
  dnnl::memory::desc src_layer, src_iter, src_iter_c, weights_layer, weights_iter, bias;
  dnnl::memory::desc dst_layer, dst_iter, dst_iter_c;
};

using ForwardDesc = dnnl::lstm_forward::primitive_desc;
using BackwardDesc = dnnl::lstm_backward::primitive_desc;
constexpr auto kDirection = dnnl::rnn_direction::unidirectional_left2right;
constexpr auto kForward = dnnl::prop_kind::forward_training;
constexpr auto kBackward = dnnl::prop_kind::backward;

#if DNNL_VERSION_MAJOR >= 3

inline ForwardDesc forward_desc(const dnnl::engine& engine, const Descs& d) {
  return ForwardDesc(engine, kForward, kDirection, d.src_layer, d.src_iter, d.src_iter_c,
                     d.weights_layer, d.weights_iter, d.bias, d.dst_layer, d.dst_iter,
                     d.dst_iter_c);
}

inline BackwardDesc backward_desc(const dnnl::engine& engine, const Descs& d, const Descs& diff,
                                  const ForwardDesc& forward) {
  return BackwardDesc(engine, kBackward, kDirection, d.src_layer, d.src_iter, d.src_iter_c,
                      d.weights_layer, d.weights_iter, d.bias, d.dst_layer, d.dst_iter,
                      d.dst_iter_c, diff.src_layer, diff.src_iter, diff.src_iter_c,
                      diff.weights_layer, diff.weights_iter, diff.bias, diff.dst_layer,
                      diff.dst_iter, diff.dst_iter_c, forward);
}

#else

inline ForwardDesc forward_desc(const dnnl::engine& engine, const Descs& d) {
  return ForwardDesc({kForward, kDirection, d.src_layer, d.src_iter, d.src_iter_c, d.weights_layer,
                      d.weights_iter, d.bias, d.dst_layer, d.dst_iter, d.dst_iter_c},
                     engine);
}

inline BackwardDesc backward_desc(const dnnl::engine& engine, const Descs& d, const Descs& diff,
                                  const ForwardDesc& forward) {
  return BackwardDesc(
      {kBackward,         kDirection,     d.src_layer,    d.src_iter,      d.src_iter_c,
       d.weights_layer,   d.weights_iter, d.bias,         d.dst_layer,     d.dst_iter,
       d.dst_iter_c,      diff.src_layer, diff.src_iter,  diff.src_iter_c, diff.weights_layer,
       diff.weights_iter, diff.bias,      diff.dst_layer, diff.dst_iter,   diff.dst_iter_c},
      engine, forward);
}

#endif

}  // namespace rnntune::reference::onednn
