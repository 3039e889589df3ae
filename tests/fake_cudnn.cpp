// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_cudnn.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/fake_cudnn_network.hpp"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace rnntune::fakes {
namespace {

FakeCudnn* current = nullptr;

// Runs a call unless the test wants it to fail.
#define ENTER(...)                                                                              \
  if (const cudnnStatus_t status = current->enter(__VA_ARGS__); status != CUDNN_STATUS_SUCCESS) \
  return status
#define EXPECT_OR_REFUSE(condition) \
  if (!(condition)) return current->refuse(#condition)

template <class T>
cudnnStatus_t make(T** object) {
  *object = new T();
  ++current->objects;
  return CUDNN_STATUS_SUCCESS;
}
template <class T>
cudnnStatus_t destroy(T* object) {
  delete object;
  --current->objects;
  return CUDNN_STATUS_SUCCESS;
}

std::size_t get_version() { return current->version; }

const char* error_string(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    default:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}

void last_error_string(char* text, std::size_t size) {
  std::snprintf(text, size, "%s", current->last_error.c_str());
}

cudnnStatus_t create_handle(cudnnHandle_t* handle) {
  ENTER("cudnnCreate");
  return make(handle);
}
cudnnStatus_t destroy_handle(cudnnHandle_t handle) {
  ENTER("cudnnDestroy");
  return destroy(handle);
}
cudnnStatus_t set_stream(cudnnHandle_t handle, cudaStream_t stream) {
  ENTER("cudnnSetStream");
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t create_tensor(cudnnTensorDescriptor_t* tensor) {
  ENTER("cudnnCreateTensorDescriptor");
  return make(tensor);
}
cudnnStatus_t destroy_tensor(cudnnTensorDescriptor_t tensor) { return destroy(tensor); }
cudnnStatus_t set_tensor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int count,
                         const int* sizes, const int* strides) {
  ENTER("cudnnSetTensorNdDescriptor");
  EXPECT_OR_REFUSE(count == 3);
  *tensor = {type, {sizes, sizes + count}, {strides, strides + count}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t get_tensor(const cudnnTensorDescriptor_t tensor, int requested, cudnnDataType_t* type,
                         int* count, int* sizes, int* strides) {
  ENTER("cudnnGetTensorNdDescriptor");
  *type = tensor->type;
  *count = int(tensor->sizes.size());
  std::copy_n(tensor->sizes.begin(), std::min(requested, *count), sizes);
  std::copy_n(tensor->strides.begin(), std::min(requested, *count), strides);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t create_dropout(cudnnDropoutDescriptor_t* dropout) {
  ENTER("cudnnCreateDropoutDescriptor");
  return make(dropout);
}
cudnnStatus_t destroy_dropout(cudnnDropoutDescriptor_t dropout) { return destroy(dropout); }
cudnnStatus_t dropout_bytes(cudnnHandle_t, std::size_t* bytes) {
  ENTER("cudnnDropoutGetStatesSize");
  *bytes = 4096;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t set_dropout(cudnnDropoutDescriptor_t dropout, cudnnHandle_t, float rate, void* states,
                          std::size_t bytes, unsigned long long) {
  ENTER("cudnnSetDropoutDescriptor");
  EXPECT_OR_REFUSE(states != nullptr && bytes == 4096);
  *dropout = {rate, states, bytes};
  current->dropouts.push_back(*dropout);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t create_network(cudnnRNNDescriptor_t* network) {
  ENTER("cudnnCreateRNNDescriptor");
  return make(network);
}
cudnnStatus_t destroy_network(cudnnRNNDescriptor_t network) { return destroy(network); }
cudnnStatus_t set_network(cudnnRNNDescriptor_t network, cudnnRNNAlgo_t algo, cudnnRNNMode_t cell,
                          cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
                          cudnnRNNInputMode_t input_mode, cudnnDataType_t data_type,
                          cudnnDataType_t math_precision, cudnnMathType_t math, std::int32_t input,
                          std::int32_t hidden, std::int32_t projection, std::int32_t layers,
                          cudnnDropoutDescriptor_t dropout, std::uint32_t flags) {
  *network = {algo, cell,  bias,   direction,  input_mode, data_type, math_precision,
              math, input, hidden, projection, layers,     dropout,   flags};
  ENTER("cudnnSetRNNDescriptor_v8", network);
  EXPECT_OR_REFUSE(projection <= hidden);
  EXPECT_OR_REFUSE(algo == CUDNN_RNN_ALGO_STANDARD || bias == CUDNN_RNN_DOUBLE_BIAS);
  current->networks.push_back(*network);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t build_dynamic(cudnnHandle_t, cudnnRNNDescriptor_t network, int batch) {
  ENTER("cudnnBuildRNNDynamic", network);
  network->dynamic_batch = batch;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t create_data(cudnnRNNDataDescriptor_t* data) {
  ENTER("cudnnCreateRNNDataDescriptor");
  return make(data);
}
cudnnStatus_t destroy_data(cudnnRNNDataDescriptor_t data) { return destroy(data); }
cudnnStatus_t set_data(cudnnRNNDataDescriptor_t data, cudnnDataType_t type,
                       cudnnRNNDataLayout_t layout, int time, int batch, int width,
                       const int* lengths, void* padding) {
  ENTER("cudnnSetRNNDataDescriptor");
  *data = {type, layout, time, batch, width, {lengths, lengths + batch}};
  EXPECT_OR_REFUSE(padding != nullptr);
  EXPECT_OR_REFUSE(*std::max_element(lengths, lengths + batch) <= time);
  EXPECT_OR_REFUSE(layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED ||
                   std::is_sorted(lengths, lengths + batch, std::greater<>()));
  current->data.push_back(*data);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t weight_bytes(cudnnHandle_t, cudnnRNNDescriptor_t network, std::size_t* bytes) {
  ENTER("cudnnGetRNNWeightSpaceSize", network);
  *bytes = WeightSpace(*network).bytes();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t weight_params(cudnnHandle_t, cudnnRNNDescriptor_t network, std::int32_t pseudo_layer,
                            std::size_t bytes, const void* space, std::int32_t number,
                            cudnnTensorDescriptor_t matrix, void** matrix_address,
                            cudnnTensorDescriptor_t bias, void** bias_address) {
  ENTER("cudnnGetRNNWeightParams", network);
  const WeightSpace weights(*network);
  EXPECT_OR_REFUSE(bytes == weights.bytes());
  char* base = static_cast<char*>(const_cast<void*>(space));
  const auto put = [&](const Slot* slot, cudnnTensorDescriptor_t tensor, void** address) {
    *tensor = {network->data_type, {}, {}};
    *address = nullptr;
    if (slot == nullptr || slot->number == current->missing_number) return;
    *tensor = {
        network->data_type, {1, slot->rows, slot->columns}, {slot->count(), slot->columns, 1}};
    *address = base + slot->offset + current->misplaced_bytes;
  };
  put(weights.find(pseudo_layer, number, false), matrix, matrix_address);
  put(weights.find(pseudo_layer, number, true), bias, bias_address);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t temp_bytes(cudnnHandle_t, cudnnRNNDescriptor_t network, cudnnForwardMode_t mode,
                         cudnnRNNDataDescriptor_t x, std::size_t* workspace, std::size_t* reserve) {
  ENTER("cudnnGetRNNTempSpaceSizes", network);
  EXPECT_OR_REFUSE(mode == CUDNN_FWD_MODE_TRAINING);
  *workspace = 64;
  *reserve = reserve_bytes(*network, *x);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t refuse_unless(const std::string& why) {
  return why.empty() ? CUDNN_STATUS_SUCCESS : current->refuse(why);
}

cudnnStatus_t forward(cudnnHandle_t handle, cudnnRNNDescriptor_t network, cudnnForwardMode_t mode,
                      const std::int32_t* lengths, cudnnRNNDataDescriptor_t x_data, const void* x,
                      cudnnRNNDataDescriptor_t y_data, void* y, cudnnTensorDescriptor_t h,
                      const void* h_0, void* h_n, cudnnTensorDescriptor_t c, const void* c_0,
                      void* c_n, std::size_t weight_size, const void* weights, std::size_t,
                      void* workspace, std::size_t reserve_size, void* reserve) {
  ENTER("cudnnRNNForward", network);
  EXPECT_OR_REFUSE(handle->stream != nullptr && mode == CUDNN_FWD_MODE_TRAINING);
  EXPECT_OR_REFUSE(workspace != nullptr && weight_size == WeightSpace(*network).bytes());
  EXPECT_OR_REFUSE(reserve_size == reserve_bytes(*network, *x_data));
  std::this_thread::sleep_for(std::chrono::microseconds(current->delay_us[network->algo]));
  return refuse_unless(Step{*network, lengths, *x_data, *y_data, *h, *c, reserve}.forward(
      {x, h_0, c_0, weights}, {y, h_n, c_n}, current->errors[network->algo]));
}

cudnnStatus_t backward_data(cudnnHandle_t, cudnnRNNDescriptor_t network,
                            const std::int32_t* lengths, cudnnRNNDataDescriptor_t y_data,
                            const void* y, const void* dy, cudnnRNNDataDescriptor_t x_data,
                            void* dx, cudnnTensorDescriptor_t h, const void* h_0, const void* dh_n,
                            void* dh_0, cudnnTensorDescriptor_t c, const void* c_0,
                            const void* dc_n, void* dc_0, std::size_t, const void* weights,
                            std::size_t, void*, std::size_t, void* reserve) {
  ENTER("cudnnRNNBackwardData_v8", network);
  return refuse_unless(Step{*network, lengths, *x_data, *y_data, *h, *c, reserve}.backward_data(
      {y, dy, h_0, dh_n, c_0, dc_n, weights}, {dx, dh_0, dc_0}));
}

cudnnStatus_t backward_weights(cudnnHandle_t, cudnnRNNDescriptor_t network, cudnnWgradMode_t mode,
                               const std::int32_t* lengths, cudnnRNNDataDescriptor_t x_data,
                               const void* x, cudnnTensorDescriptor_t h, const void* h_0,
                               cudnnRNNDataDescriptor_t y_data, const void* y, std::size_t,
                               void* gradients, std::size_t, void*, std::size_t, void* reserve) {
  ENTER("cudnnRNNBackwardWeights_v8", network);
  EXPECT_OR_REFUSE(mode == CUDNN_WGRAD_MODE_ADD);
  return refuse_unless(Step{*network, lengths, *x_data, *y_data, *h, *h, reserve}.backward_weights(
      {x, h_0, y}, gradients));
}

}  // namespace

FakeCudnn::FakeCudnn() { current = this; }
FakeCudnn::~FakeCudnn() { current = nullptr; }

cudnnStatus_t FakeCudnn::enter(const char* call, const cudnnRNNStruct* network) {
  calls.push_back(call);
  if (!in_context()) ++outside_context;
  last_error.clear();
  if (network != nullptr) {
    const auto refusal = refusals.find(network->algo);
    if (refusal != refusals.end() && refusal->second.call == call) {
      last_error = "no such thing";
      return refusal->second.status;
    }
  }
  const auto failure = failures.find(call);
  return failure == failures.end() ? CUDNN_STATUS_SUCCESS : failure->second;
}

cudnnStatus_t FakeCudnn::refuse(const std::string& why) {
  last_error = "expected " + why;
  return CUDNN_STATUS_BAD_PARAM;
}

Cudnn FakeCudnn::table() const {
  Cudnn table;
  table.cudnnGetVersion = get_version;
  table.cudnnGetErrorString = error_string;
  table.cudnnGetLastErrorString = last_error_string;
  table.cudnnCreate = create_handle;
  table.cudnnDestroy = destroy_handle;
  table.cudnnSetStream = set_stream;
  table.cudnnCreateTensorDescriptor = create_tensor;
  table.cudnnSetTensorNdDescriptor = set_tensor;
  table.cudnnGetTensorNdDescriptor = get_tensor;
  table.cudnnDestroyTensorDescriptor = destroy_tensor;
  table.cudnnCreateDropoutDescriptor = create_dropout;
  table.cudnnSetDropoutDescriptor = set_dropout;
  table.cudnnDestroyDropoutDescriptor = destroy_dropout;
  table.cudnnDropoutGetStatesSize = dropout_bytes;
  table.cudnnCreateRNNDescriptor = create_network;
  table.cudnnSetRNNDescriptor_v8 = set_network;
  table.cudnnDestroyRNNDescriptor = destroy_network;
  table.cudnnBuildRNNDynamic = build_dynamic;
  table.cudnnCreateRNNDataDescriptor = create_data;
  table.cudnnSetRNNDataDescriptor = set_data;
  table.cudnnDestroyRNNDataDescriptor = destroy_data;
  table.cudnnGetRNNWeightSpaceSize = weight_bytes;
  table.cudnnGetRNNWeightParams = weight_params;
  table.cudnnGetRNNTempSpaceSizes = temp_bytes;
  table.cudnnRNNForward = forward;
  table.cudnnRNNBackwardData_v8 = backward_data;
  table.cudnnRNNBackwardWeights_v8 = backward_weights;
  return table;
}

}  // namespace rnntune::fakes
