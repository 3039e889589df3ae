// SPDX-License-Identifier: Apache-2.0
// What the fake cuDNN computes, and the layout of its weight space.
#pragma once

#include <string>
#include <vector>

#include "reference/step.hpp"
#include "tests/fake_cudnn.hpp"

namespace rnntune::fakes {

// A matrix or bias of one gate.
struct Slot {
  int pseudo_layer, number;
  bool bias;
  int rows, columns;
  std::size_t offset;

  int count() const { return rows * columns; }
};

// Biases before matrices, last layers first, gates in an order of its own, gaps in between.
class WeightSpace {
 public:
  explicit WeightSpace(const cudnnRNNStruct& network);

  std::size_t bytes() const { return bytes_; }
  const std::vector<Slot>& slots() const { return slots_; }
  const Slot* find(int pseudo_layer, int number, bool bias) const;  // null: there is none

 private:
  void add(int pseudo_layer, int number, bool bias, int rows, int columns);

  std::size_t value_bytes_;
  std::size_t bytes_ = 0;
  std::vector<Slot> slots_;
};

std::size_t reserve_bytes(const cudnnRNNStruct& network, const cudnnRNNDataStruct& x);

// The calls of a training step. What they return is why the arguments are wrong, or nothing.
struct Step {
  struct ForwardIn {
    const void *x, *h_0, *c_0, *weights;
  };
  struct ForwardOut {
    void *y, *h_n, *c_n;
  };
  struct DataIn {
    const void *y, *dy, *h_0, *dh_n, *c_0, *dc_n, *weights;
  };
  struct DataOut {
    void *dx, *dh_0, *dc_0;
  };
  struct WeightsIn {
    const void *x, *h_0, *y;
  };

  const cudnnRNNStruct& network;
  const std::int32_t* lengths;  // on the device
  const cudnnRNNDataStruct& x;
  const cudnnRNNDataStruct& y;
  const cudnnTensorStruct& h;
  const cudnnTensorStruct& c;
  void* reserve;

  std::string forward(const ForwardIn& in, const ForwardOut& out, float error) const;
  std::string backward_data(const DataIn& in, const DataOut& out) const;
  std::string backward_weights(const WeightsIn& in, void* gradients) const;
};

}  // namespace rnntune::fakes
