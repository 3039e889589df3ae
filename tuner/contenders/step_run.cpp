// SPDX-License-Identifier: Apache-2.0
#include "tuner/contenders/step_run.hpp"

#include <cstring>
#include <utility>

namespace rnntune::tuner {
namespace {

using reference::Inputs;
using reference::LayerTensors;
using reference::Outputs;

constexpr std::size_t kElement = sizeof(float);

std::string indexed(const char* name, std::size_t layer) {
  return std::string(name) + "[" + std::to_string(layer) + "]";
}

// Every output has the shape of the input that it is the gradient or the successor of. Without
// initial states it is a bare call, which does not want dx either.
Outputs<float> output_shapes(const Inputs& inputs) {
  const auto& dx = inputs.h_0.empty() ? inputs.h_0 : inputs.x;
  return {inputs.dy, inputs.h_0, inputs.c_0, dx, inputs.h_0, inputs.c_0, inputs.weights};
}

// Calls visit(name, tensor) for every input tensor that the problem has.
template <class Visit>
void each_input(const Inputs& inputs, Visit visit) {
  auto present = [&](const std::string& name, const std::vector<float>& tensor) {
    if (!tensor.empty()) visit(name, tensor);
  };
  present("x", inputs.x);
  present("h_0", inputs.h_0);
  present("c_0", inputs.c_0);
  present("dy", inputs.dy);
  present("dh_n", inputs.dh_n);
  present("dc_n", inputs.dc_n);
  for (std::size_t l = 0; l < inputs.weights.size(); ++l) {
    const LayerTensors<float>& layer = inputs.weights[l];
    present(indexed("W_ih", l), layer.weight_ih);
    present(indexed("W_hh", l), layer.weight_hh);
    present(indexed("b_ih", l), layer.bias_ih);
    present(indexed("b_hh", l), layer.bias_hh);
    present(indexed("W_hr", l), layer.weight_hr);
  }
}

bool is_gradient(const std::string& name) { return name.back() == ']'; }

}  // namespace

StepRun::StepRun(Plan& plan, std::shared_ptr<Device> device, const Problem& problem,
                 const Inputs& inputs, Placement placement)
    : plan_(plan),
      device_(std::move(device)),
      problem_(problem),
      inputs_(inputs),
      shapes_(output_shapes(inputs)),
      placement_(placement),
      sizes_(plan.sizes()) {}

Result<std::unique_ptr<StepRun>> StepRun::create(Plan& plan, std::shared_ptr<Device> device,
                                                 const Problem& problem, const Inputs& inputs,
                                                 Placement placement) {
  std::unique_ptr<StepRun> run(new StepRun(plan, std::move(device), problem, inputs, placement));
  if (Status status = run->allocate(); !status.ok()) return status.error();
  run->connect();
  if (Status status = run->reset(); !status.ok()) return status.error();
  return run;
}

Status StepRun::allocate() {
  Status status;
  each_input(inputs_, [&](const std::string& name, const std::vector<float>& tensor) {
    if (status.ok()) status = add(name, tensor, true);
  });
  reference::each_output(shapes_, shapes_, [&](const std::string& name, auto& tensor, auto&) {
    if (status.ok()) status = add(name, tensor, false);
  });
  if (status.ok()) status = add_scratch("packed", sizes_.packed);
  if (status.ok()) status = add_scratch("workspace", sizes_.workspace);
  if (status.ok()) status = add_scratch("reserve", sizes_.reserve);
  return status;
}

Status StepRun::add(const std::string& name, const std::vector<float>& host, bool input) {
  const std::size_t shift = placement_ == Placement::element ? kElement : 0;
  Result<Guarded> memory = Guarded::allocate(device_, host.size() * kElement, shift);
  if (!memory.ok()) return memory.error();
  const bool gradient = !input && is_gradient(name);
  tensors_.push_back({name, std::move(memory.value()), &host, input, gradient});
  return {};
}

Status StepRun::add_scratch(const std::string& name, std::size_t bytes) {
  Result<Guarded> memory = Guarded::allocate(device_, bytes, 0);
  if (!memory.ok()) return memory.error();
  scratch_.emplace_back(name, std::move(memory.value()));
  return {};
}

float* StepRun::find(const std::string& name) const {
  for (const Tensor& tensor : tensors_) {
    if (tensor.name == name) return tensor.memory.floats();
  }
  return nullptr;
}

LayerWeights StepRun::layer_weights(std::size_t layer) const {
  return {find(indexed("W_ih", layer)), find(indexed("W_hh", layer)), find(indexed("b_ih", layer)),
          find(indexed("b_hh", layer)), find(indexed("W_hr", layer))};
}

LayerGradients StepRun::layer_gradients(std::size_t layer) const {
  return {find(indexed("dW_ih", layer)), find(indexed("dW_hh", layer)),
          find(indexed("db_ih", layer)), find(indexed("db_hh", layer)),
          find(indexed("dW_hr", layer))};
}

void StepRun::connect() {
  for (std::size_t l = 0; l < inputs_.weights.size(); ++l) {
    weights_.push_back(layer_weights(l));
    gradients_.push_back(layer_gradients(l));
  }
  buffers_ = {scratch_[0].second.data(), scratch_[1].second.data(), scratch_[2].second.data()};
  forward_ = {problem_.time, problem_.batch, find("x"),   find("h_0"),
              find("c_0"),   find("y"),      find("h_n"), find("c_n")};
  backward_data_ = {find("x"),    find("h_0"),  find("c_0"), find("y"),    find("dy"),
                    find("dh_n"), find("dc_n"), find("dx"),  find("dh_0"), find("dc_0")};
  backward_weights_ = {find("x"), find("h_0"), find("y"), gradients_.data()};
}

Status StepRun::reset(const std::map<std::string, float>& gradient_starts) {
  for (auto& [name, memory] : scratch_) {
    if (Status status = memory.guard(); !status.ok()) return status;
    if (Status status = memory.poison(); !status.ok()) return status;
  }
  for (Tensor& tensor : tensors_) {
    if (Status status = tensor.memory.guard(); !status.ok()) return status;
    const auto found = gradient_starts.find(tensor.name);
    const std::vector<float> start(tensor.gradient ? tensor.host->size() : 0,
                                   found == gradient_starts.end() ? 0 : found->second);
    const Status status = tensor.gradient ? tensor.memory.load(start.data())
                          : tensor.input  ? tensor.memory.load(tensor.host->data())
                                          : tensor.memory.poison();
    if (!status.ok()) return status;
  }
  return device_->synchronize();
}

Status StepRun::pack() {
  return plan_.pack(weights_.data(), {buffers_.packed, nullptr, nullptr}, nullptr);
}

Status StepRun::forward(Mode mode) {
  PlanBuffers buffers = buffers_;
  if (mode == Mode::inference) buffers.reserve = nullptr;
  return plan_.forward(mode, {problem_.time, problem_.batch}, forward_, buffers, nullptr);
}

Status StepRun::backward_data() {
  return plan_.backward_data({problem_.time, problem_.batch}, backward_data_, buffers_, nullptr);
}

Status StepRun::backward_weights() {
  return plan_.backward_weights({problem_.time, problem_.batch}, backward_weights_, buffers_,
                                nullptr);
}

Status StepRun::queue(bool zero_gradients) {
  if (zero_gradients) {
    for (Tensor& tensor : tensors_) {
      if (!tensor.gradient) continue;
      const Status status = device_->fill(tensor.memory.data(), 0, tensor.memory.bytes());
      if (!status.ok()) return status;
    }
  }
  if (Status status = pack(); !status.ok()) return status;
  if (Status status = forward(Mode::training); !status.ok()) return status;
  if (Status status = backward_data(); !status.ok()) return status;
  return backward_weights();
}

Status StepRun::step(bool zero_gradients) {
  if (Status status = queue(zero_gradients); !status.ok()) return status;
  return device_->synchronize();
}

Result<Outputs<float>> StepRun::outputs() const {
  Outputs<float> out = shapes_;
  Status status;
  reference::each_output(out, out, [&](const std::string& name, auto& tensor, auto&) {
    for (const Tensor& source : tensors_) {
      if (source.name == name && status.ok()) status = source.memory.store(tensor.data());
    }
  });
  if (!status.ok()) return status.error();
  return out;
}

Result<std::string> StepRun::damage() const {
  auto outside = [](const std::string& name, const Guarded& memory) -> Result<std::string> {
    Result<std::string> breach = memory.breach();
    if (breach.ok() && !breach->empty()) return "wrote outside " + name + ", " + *breach;
    return breach;
  };
  for (const auto& [name, memory] : scratch_) {
    if (Result<std::string> found = outside(name, memory); !found.ok() || !found->empty()) {
      return found;
    }
  }
  std::vector<float> copy;
  for (const Tensor& tensor : tensors_) {
    if (Result<std::string> found = outside(tensor.name, tensor.memory);
        !found.ok() || !found->empty()) {
      return found;
    }
    if (!tensor.input) continue;
    copy.resize(tensor.host->size());
    if (Status status = tensor.memory.store(copy.data()); !status.ok()) return status.error();
    if (std::memcmp(copy.data(), tensor.host->data(), tensor.memory.bytes()) != 0) {
      return "modified its input " + tensor.name;
    }
  }
  return std::string();
}

}  // namespace rnntune::tuner
