// SPDX-License-Identifier: Apache-2.0
// One plan with everything a training step needs around it: device memory, inputs, arguments.
// Validation and measurement run the same step through it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plan.hpp"
#include "reference/step.hpp"
#include "tuner/contenders/guarded.hpp"

namespace rnntune::tuner {

// Where the caller's tensors lie: on a cache line as an allocator gives them, or aligned to their
// element only, which is all that the library may ask for.
enum class Placement { aligned, element };

class StepRun {
 public:
  // `problem` may be of fewer time steps and samples than the plan's; states that `inputs` lacks
  // are passed as null. `plan` and `inputs` must outlive the run.
  static Result<std::unique_ptr<StepRun>> create(Plan& plan, std::shared_ptr<Device> device,
                                                 const Problem& problem,
                                                 const reference::Inputs& inputs,
                                                 Placement placement);

  // Loads the inputs again and poisons all that a step writes, scratch included; each gradient
  // starts from the value of its name, else from zero.
  Status reset(const std::map<std::string, float>& gradient_starts = {});

  // A whole training step, queued on the device. Gradients are zeroed first when `zero_gradients`:
  // the timed step, since a training user pays for that.
  Status queue(bool zero_gradients);
  // The same, complete on return.
  Status step(bool zero_gradients);
  Status pack();
  Status forward(Mode mode);
  Status backward_data();
  Status backward_weights();

  Result<reference::Outputs<float>> outputs() const;

  // What was written that must not be: bytes outside a buffer, or an input. Empty: nothing.
  Result<std::string> damage() const;

  PlanSizes sizes() const { return sizes_; }

  // What the calls are given, for a call of one's own.
  const Forward& forward_arguments() const { return forward_; }
  const PlanBuffers& plan_buffers() const { return buffers_; }

 private:
  struct Tensor {
    std::string name;
    Guarded memory;
    const std::vector<float>* host;  // inputs: what they must hold; outputs: their shape
    bool input;
    bool gradient;
  };

  StepRun(Plan& plan, std::shared_ptr<Device> device, const Problem& problem,
          const reference::Inputs& inputs, Placement placement);
  Status allocate();
  Status add(const std::string& name, const std::vector<float>& host, bool input);
  Status add_scratch(const std::string& name, std::size_t bytes);
  std::byte* scratch(std::size_t index) const;
  float* find(const std::string& name) const;  // null where the problem has no such tensor
  void connect();
  LayerWeights layer_weights(std::size_t layer) const;
  LayerGradients layer_gradients(std::size_t layer) const;

  Plan& plan_;
  std::shared_ptr<Device> device_;
  Problem problem_;
  const reference::Inputs& inputs_;
  reference::Outputs<float> shapes_;  // the outputs' sizes
  Placement placement_;
  PlanSizes sizes_;
  std::vector<Tensor> tensors_;
  std::vector<std::pair<std::string, Guarded>> scratch_;  // packed, workspace, reserve
  std::vector<LayerWeights> weights_;
  std::vector<LayerGradients> gradients_;
  PlanBuffers buffers_;
  Forward forward_;
  BackwardData backward_data_;
  BackwardWeights backward_weights_;
};

}  // namespace rnntune::tuner
