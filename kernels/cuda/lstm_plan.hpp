// SPDX-License-Identifier: Apache-2.0
// What the two variants of products and gate kernels, `unfused` and `pointwise`, share: what they
// can compute, and the base of their plans.
//
// Unverified: speed. Results and orchestration are tested on the emulated device; no GPU has run
// them.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "cuda/arguments.hpp"
#include "cuda/queue.hpp"
#include "device/matrix.hpp"
#include "plan_memory.hpp"
#include "variants.hpp"

namespace rnntune::cuda {

// Layers, time, batch, input and hidden size of any LSTM in f32; empty when it can.
std::string why_not_products(const Problem& problem, const DeviceInfo& device);

// Why a kernel is not worth launching, or cannot be, with blocks of this shape: not one of them is
// resident, by threads, registers or shared memory, or threads spill registers. Empty when it is.
// Where resources are not known (simt) nothing is refused.
std::string why_not_resources(const gpu::KernelResources& uses, const gpu::Limits& limits,
                              const gpu::LaunchShape& shape);

// The name of an instance: kernel_id("pointwise.cuh", "pointwise_forward", {"4", "true"}).
gpu::KernelId kernel_id(const char* file, const std::string& name,
                        std::initializer_list<std::string> arguments);
inline std::string argument(bool value) { return value ? "true" : "false"; }

// Blocks of 32 times `rows` threads that cover [rows_all, columns] where a block takes 32 * width
// columns and goes on with other rows.
gpu::LaunchShape grid_of(std::int64_t rows_all, std::int64_t columns, int rows, int width = 1);

// Whether rows of `columns` floats without gaps, at these places, are vectors of four.
bool are_vectors(std::int64_t columns, std::initializer_list<const float*> arrays);

// The states [B,H] of one layer of [L,B,H]; null where the caller has none.
template <class T>
T* layer_of(T* states, std::int64_t layer, std::int64_t size) {
  return states == nullptr ? nullptr : states + layer * size;
}

// One call.
struct Call {
  Extent extent;
  PlanBuffers buffers;
  bool training = true;
  std::int64_t state = 0;  // B * H

  std::int64_t rows() const { return extent.time * extent.batch; }
};

// Buffers and arguments of a call that is rehearsed: addresses that are never touched.
template <class T>
T* nowhere() {
  return reinterpret_cast<T*>(std::uintptr_t{1} << 32);
}

// The weights as they come from the caller, and what passes from layer to layer.
class LstmPlan : public Plan {
 public:
  PlanSizes sizes() const final { return memory_.sizes(); }
  Status pack(const LayerWeights* layers, const PlanBuffers& buffers, Stream stream) final;

 protected:
  struct Layer {
    std::int64_t input = 0;
    Place weight_ih, weight_hh, bias;  // packed: [4H,input], [4H,H], the sum of the biases [4H]
    Place y;                           // reserve: [T,B,H]; of the last layer empty
  };
  using KernelPtr = std::shared_ptr<const gpu::Kernel>;

  // `lanes` sequences of work may run at once.
  LstmPlan(const Problem& problem, std::shared_ptr<gpu::GpuDevice> device, Products products,
           std::size_t lanes);

  // Builds kernels that will be launched in blocks of this shape.
  struct Wanted {
    gpu::KernelId id;
    gpu::LaunchShape block;
    KernelPtr* kernel;
  };
  Status build(std::vector<Wanted> wanted);

  // Once everything else is laid out: prepares the products of all calls and adds their workspaces.
  Status finish();
  // Queues every call at the problem's capacity, in training and inference, on `queue`.
  virtual void rehearse(Queue& queue) = 0;

  Call call_of(Extent extent, const PlanBuffers& buffers, bool training) const {
    return {extent, buffers, training, extent.batch * problem_.hidden};
  }
  Queue queue_on(Stream stream, const Call& call, std::size_t lane, Status& status) const {
    return {*device_, products_, stream, workspaces_[lane].in(call.buffers.workspace), status};
  }
  ConstMatrix weight_ih(const Call& call, const Layer& layer) const {
    return {layer.weight_ih.in(call.buffers.packed), layer.input, false};
  }
  ConstMatrix weight_hh(const Call& call, const Layer& layer) const {
    return {layer.weight_hh.in(call.buffers.packed), problem_.hidden, false};
  }
  const float* bias(const Call& call, const Layer& layer) const {
    return problem_.bias == Bias::none ? nullptr : layer.bias.in(call.buffers.packed);
  }
  // The input [T*B, input] and the output [T,B,H] of layer l, where the call has x and y; and the
  // gradient of the former, where it has dx.
  ConstMatrix input_of(const Call& call, std::int64_t l, const float* x, const float* y) const;
  const float* output_of(const Call& call, std::int64_t l, const float* y) const;
  float* dx_of(const Call& call, std::int64_t l, float* dx) const;

  const Problem problem_;
  const std::shared_ptr<gpu::GpuDevice> device_;
  Products products_;
  PlanMemory memory_;
  std::vector<Layer> layers_;

 private:
  // Workspace: y (inference) or dx between layers, [T,B,H]. Two of them, used in turn, or one per
  // layer where layers run at once; and the memory of the products of each lane.
  std::vector<Place> between_, workspaces_;
  KernelPtr add_;
};

}  // namespace rnntune::cuda
