// SPDX-License-Identifier: Apache-2.0
// A training step in cuDNN, as kind to it as a training user can be: the parameters live in cuDNN's
// own weight space and the gradients stay in one of its layout, so no packing is inside a step.
// What is: the zeroing of the gradients, which backward adds to, a training forward, backward data,
// backward weights. Each backward has a forward of its own, since it consumes the reserve.
//
// Unverified without a GPU: that a step gives right results, and any time.
#pragma once

#include <string>
#include <vector>

#include "reference/cudnn/network.hpp"
#include "reference/cudnn/weights.hpp"
#include "reference/opponent.hpp"

namespace rnntune::reference::cudnn {

struct Phases {
  double forward_us = 0, backward_data_us = 0, backward_weights_us = 0;
};

class CudnnRun final : public OpponentRun {
 public:
  // lengths: of the B samples, longest first; empty: all T.
  static Result<std::unique_ptr<CudnnRun>> create(SessionPtr session, const Problem& problem,
                                                  const Inputs& inputs,
                                                  const std::vector<int>& lengths,
                                                  const Algorithm& algorithm);

  Status step() override;
  Result<Outputs<float>> outputs() override;
  std::string algorithm() const override { return name_; }
  std::vector<std::string> notes() const override { return notes_; }
  void set_notes(std::vector<std::string> notes) { notes_ = std::move(notes); }

  // The parts of a step, asynchronous. One that is called out of turn is an error.
  Status forward();
  Status backward_data();
  Status backward_weights();
  // On the device, the fastest of some whole steps for each phase.
  Result<Phases> time_phases(int steps);

 private:
  enum class Reserve { stale, of_forward, of_backward_data };
  struct Memory {
    Buffer x, h_0, c_0, dy, dh_n, dc_n, weights;
    Buffer y, h_n, c_n, dx, dh_0, dc_0, gradients;
    Buffer workspace, reserve;
  };

  CudnnRun(SessionPtr session, const Problem& problem, const std::vector<int>& lengths,
           const Algorithm& algorithm)
      : session_(std::move(session)),
        problem_(problem),
        lengths_(lengths),
        packed_(algorithm.layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED),
        name_(algorithm.name) {}
  // In this order.
  Status load_inputs(const Inputs& inputs);
  Status make_outputs();
  Status load_weights(const Inputs& inputs);
  Status make_scratch();

  Status load(const std::vector<std::byte>& bytes, Buffer& buffer);
  Status load(const std::vector<float>& values, Buffer& buffer);
  Status make(std::size_t bytes, Buffer& buffer);
  Status fetch(const Buffer& buffer, std::vector<std::byte>& bytes) const;
  Status fetch(const Buffer& buffer, std::vector<float>& values) const;
  Status fetch_gradients(std::vector<LayerTensors<float>>& gradients) const;
  Status expect(Reserve state, const char* call) const;

  // Between [T,B,width] and the rows that cuDNN's layout has. Padding is zero.
  std::vector<float> to_rows(const std::vector<float>& values) const;
  std::vector<float> from_rows(const std::vector<float>& rows, std::int64_t width) const;

  const SessionPtr session_;
  const Problem problem_;
  const std::vector<int> lengths_;
  const bool packed_;
  const std::string name_;
  std::vector<std::string> notes_;
  std::unique_ptr<Network> network_;
  std::vector<Place> places_;
  Memory memory_;
  Tensors tensors_{};
  Reserve reserve_ = Reserve::stale;
};

}  // namespace rnntune::reference::cudnn
