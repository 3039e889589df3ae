// SPDX-License-Identifier: Apache-2.0
// A network described to cuDNN, and the three calls of a training step on it.
#pragma once

#include <span>
#include <vector>

#include "reference/cudnn/session.hpp"
#include "rnntune/problem.hpp"

namespace rnntune::reference::cudnn {

// A way that cuDNN has to compute a network. Which serve a problem on a GPU, only trying tells.
struct Algorithm {
  cudnnRNNAlgo_t algo;
  cudnnRNNDataLayout_t layout;  // of x and y
  const char* name;             // "persist_static packed"
};

// All of them, the one that takes every network first. With full lengths both layouts are the same
// bytes; cuDNN need not treat them alike.
std::span<const Algorithm> algorithms();

// Device memory of a step. c_0, c_n and the like are null unless the cell has a c.
struct Tensors {
  const void *x, *h_0, *c_0, *dy, *dh_n, *dc_n, *weights;
  void *y, *h_n, *c_n, *dx, *dh_0, *dc_0, *gradients;
  void *workspace, *reserve;
};

class Network {
 public:
  // lengths: of the B samples, longest first. The problem must be one that cudnn_why_not accepts,
  // or differ from that in its lengths and dropout only.
  static Result<std::unique_ptr<Network>> create(SessionPtr session, const Problem& problem,
                                                 const std::vector<int>& lengths,
                                                 const Algorithm& algorithm);

  cudnnRNNDescriptor_t descriptor() const { return network_.get(); }
  std::size_t weight_bytes() const { return weight_bytes_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  std::size_t reserve_bytes() const { return reserve_bytes_; }

  Status forward(const Tensors& tensors) const;
  Status backward_data(const Tensors& tensors) const;
  Status backward_weights(const Tensors& tensors) const;  // adds to what is there

 private:
  Network(SessionPtr session, const Problem& problem, const std::vector<int>& lengths,
          const Algorithm& algorithm)
      : session_(std::move(session)), problem_(problem), lengths_(lengths), algorithm_(algorithm) {}
  // In this order.
  Status make_dropout();
  Status make_network();
  Status make_data();
  Status make_states();
  Status load_lengths();
  Status size_spaces();

  Status make_data(std::int64_t width, Owned<cudnnRNNDataDescriptor_t>& data) const;
  Status make_state(std::int64_t width, Owned<cudnnTensorDescriptor_t>& state) const;

  const SessionPtr session_;
  const Problem problem_;
  const std::vector<int> lengths_;
  const Algorithm algorithm_;
  Buffer dropout_states_, device_lengths_;
  Owned<cudnnDropoutDescriptor_t> dropout_;
  Owned<cudnnRNNDescriptor_t> network_;
  Owned<cudnnRNNDataDescriptor_t> x_, y_;
  Owned<cudnnTensorDescriptor_t> h_, c_;
  std::size_t weight_bytes_ = 0, workspace_bytes_ = 0, reserve_bytes_ = 0;
};

}  // namespace rnntune::reference::cudnn
