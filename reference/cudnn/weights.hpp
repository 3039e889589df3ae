// SPDX-License-Identifier: Apache-2.0
// Where cuDNN keeps the parameters of a network: one space of its own layout, which only
// cudnnGetRNNWeightParams knows, with a matrix [rows, columns] and a bias for every gate.
//
//   pseudo-layer  layer * D + direction, our index of layers
//   LSTM          0 to 3: W of i f g o; 4 to 7: R of them; 8: the projection [P,H]
//   GRU           0 to 2: W of r z n; 3 to 5: R of them
//   RNN           0: W; 1: R
//
// Gates come in our order, so each is a block of rows of weight_ih or weight_hh. Unverified without
// a GPU: that a projection is number 8, and that matrices are dense. The values that a network
// computes are compared with the reference before it is used, so a layout that differs is found.
#pragma once

#include <cudnn.h>

#include <string>
#include <vector>

#include "reference/cudnn/session.hpp"
#include "reference/step.hpp"

namespace rnntune::reference::cudnn {

// `count` elements of a tensor of ours, from element `first` on, lie `offset` bytes into the space.
struct Place {
  std::size_t layer;  // layer * D + direction
  std::vector<float> LayerTensors<float>::*tensor;
  std::size_t first, count;
  std::size_t offset;
};

// `space` is only looked at for its address. An error where cuDNN has other parameters than the
// problem.
Result<std::vector<Place>> find_places(const Session& session, const Problem& problem,
                                       cudnnRNNDescriptor_t network, const void* space,
                                       std::size_t bytes);

}  // namespace rnntune::reference::cudnn
