// SPDX-License-Identifier: Apache-2.0
#include "reference/cudnn/weights.hpp"

#include "reference/cudnn/values.hpp"

namespace rnntune::reference::cudnn {
namespace {

using Tensor = std::vector<float> LayerTensors<float>::*;

// What one number of cuDNN's ("linLayerID") means for a layer.
struct Linear {
  std::int32_t number;
  std::int64_t gate;  // block of rows in our tensors
  std::int64_t rows, columns;
  Tensor matrix, bias;  // bias null: none
};

std::vector<Linear> linears_of(const Problem& p, std::int64_t layer) {
  using Layer = LayerTensors<float>;
  const Tensor bias_ih = p.bias == Bias::none ? nullptr : &Layer::bias_ih;
  const Tensor bias_hh = p.bias == Bias::two ? &Layer::bias_hh : nullptr;
  const std::int64_t H = p.hidden, gates = p.gates();
  std::vector<Linear> linears;
  for (std::int64_t gate = 0; gate < gates; ++gate) {
    linears.push_back(
        {std::int32_t(gate), gate, H, p.layer_input(layer), &Layer::weight_ih, bias_ih});
    linears.push_back(
        {std::int32_t(gates + gate), gate, H, p.output(), &Layer::weight_hh, bias_hh});
  }
  if (p.projection > 0) {
    linears.push_back({std::int32_t(2 * gates), 0, p.output(), H, &Layer::weight_hr, nullptr});
  }
  return linears;
}

class Finder {
 public:
  Finder(const Session& session, const Problem& problem, cudnnRNNDescriptor_t network,
         const void* space, std::size_t bytes)
      : session_(session), problem_(problem), network_(network), space_(space), bytes_(bytes) {}

  Result<std::vector<Place>> run() {
    for (Owned<cudnnTensorDescriptor_t>* descriptor : {&matrix_, &bias_}) {
      Status status = create(session_, "cudnnCreateTensorDescriptor",
                             session_.cudnn().cudnnCreateTensorDescriptor,
                             session_.cudnn().cudnnDestroyTensorDescriptor, *descriptor);
      if (!status.ok()) return status.error();
    }
    const std::int64_t D = problem_.directions;
    for (std::int64_t n = 0; n < problem_.layers * D; ++n) {
      for (const Linear& linear : linears_of(problem_, n / D)) {
        if (Status status = find(n, linear); !status.ok()) return status.error();
      }
    }
    return std::move(places_);
  }

 private:
  Status find(std::int64_t layer, const Linear& linear) {
    void* matrix = nullptr;
    void* bias = nullptr;
    Status status = RNNTUNE_CUDNN_CALL(session_, cudnnGetRNNWeightParams, session_.handle(),
                                       network_, std::int32_t(layer), bytes_, space_, linear.number,
                                       matrix_.get(), &matrix, bias_.get(), &bias);
    if (!status.ok()) return status;
    status = add(layer, linear, linear.matrix, linear.rows * linear.columns, matrix, matrix_.get());
    if (!status.ok() || linear.bias == nullptr) return status;
    return add(layer, linear, linear.bias, linear.rows, bias, bias_.get());
  }

  Status add(std::int64_t layer, const Linear& linear, Tensor tensor, std::int64_t count,
             const void* address, cudnnTensorDescriptor_t descriptor) {
    cudnnDataType_t type{};
    int dimensions = 0, sizes[CUDNN_DIM_MAX] = {}, strides[CUDNN_DIM_MAX] = {};
    Status status = RNNTUNE_CUDNN_CALL(session_, cudnnGetTensorNdDescriptor, descriptor, 3, &type,
                                       &dimensions, sizes, strides);
    if (!status.ok()) return status;
    std::int64_t came = address == nullptr || dimensions == 0 ? 0 : 1;
    for (int d = 0; d < dimensions && d < 3; ++d) came *= sizes[d];
    const auto offset =
        std::size_t(static_cast<const char*>(address) - static_cast<const char*>(space_));
    const std::size_t bytes = std::size_t(count) * value_bytes(problem_.dtype);
    if (came != count || bytes > bytes_ || offset > bytes_ - bytes) {
      return unsupported("cudnnGetRNNWeightParams: pseudo-layer " + std::to_string(layer) +
                         ", linear layer " + std::to_string(linear.number) + ": expected " +
                         std::to_string(count) + " elements in the weight space, got " +
                         std::to_string(came) + " at " + std::to_string(offset) + " of " +
                         std::to_string(bytes_) + " bytes");
    }
    places_.push_back(
        {std::size_t(layer), tensor, std::size_t(linear.gate * count), std::size_t(count), offset});
    return {};
  }

  const Session& session_;
  const Problem& problem_;
  const cudnnRNNDescriptor_t network_;
  const void* const space_;
  const std::size_t bytes_;
  Owned<cudnnTensorDescriptor_t> matrix_, bias_;
  std::vector<Place> places_;
};

}  // namespace

Result<std::vector<Place>> find_places(const Session& session, const Problem& problem,
                                       cudnnRNNDescriptor_t network, const void* space,
                                       std::size_t bytes) {
  return Finder(session, problem, network, space, bytes).run();
}

}  // namespace rnntune::reference::cudnn
