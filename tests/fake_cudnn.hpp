// SPDX-License-Identifier: Apache-2.0
// A cuDNN of its own, in host memory, that really computes: its descriptors are those of the real
// headers, its weight space has an invented layout, its results are the oracle's. It is strict
// where cuDNN's documentation is: lengths, sizes, padding, what a reserve is good for.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "device/cudnn.hpp"

// cuDNN's own descriptors, which its headers leave open.
struct cudnnRNNStruct {
  cudnnRNNAlgo_t algo;
  cudnnRNNMode_t cell;
  cudnnRNNBiasMode_t bias;
  cudnnDirectionMode_t direction;
  cudnnRNNInputMode_t input_mode;
  cudnnDataType_t data_type, math_precision;
  cudnnMathType_t math;
  std::int32_t input, hidden, projection, layers;
  cudnnDropoutDescriptor_t dropout;
  std::uint32_t flags;
  int dynamic_batch = 0;  // of cudnnBuildRNNDynamic
};
struct cudnnRNNDataStruct {
  cudnnDataType_t type;
  cudnnRNNDataLayout_t layout;
  int time, batch, width;
  std::vector<int> lengths;
};
struct cudnnTensorStruct {
  cudnnDataType_t type;
  std::vector<int> sizes, strides;
};
struct cudnnDropoutStruct {
  float rate;
  void* states;
  std::size_t bytes;
};

namespace rnntune::fakes {

class FakeCudnn {
 public:
  // One at a time: the functions of a table have no other way to find it.
  FakeCudnn();
  FakeCudnn(const FakeCudnn&) = delete;
  ~FakeCudnn();
  Cudnn table() const;

  // What it does.
  struct Refusal {
    std::string call;
    cudnnStatus_t status;
  };
  std::size_t version = 91900;
  std::map<std::string, cudnnStatus_t> failures;  // by call
  std::map<cudnnRNNAlgo_t, Refusal> refusals;
  std::map<cudnnRNNAlgo_t, int> delay_us;  // of forward
  std::map<cudnnRNNAlgo_t, float> errors;  // added to y
  std::size_t misplaced_bytes = 0;         // added to where parameters are said to be
  int missing_number = -1;                 // a linear layer without a matrix
  std::function<bool()> in_context = [] { return true; };

  // What was done with it.
  std::vector<std::string> calls;
  std::vector<cudnnRNNStruct> networks;
  std::vector<cudnnRNNDataStruct> data;
  std::vector<cudnnDropoutStruct> dropouts;
  int objects = 0;          // handles and descriptors that live
  int outside_context = 0;  // calls of which in_context() was false

  // For the functions of the table.
  cudnnStatus_t enter(const char* call, const cudnnRNNStruct* network = nullptr);
  cudnnStatus_t refuse(const std::string& why);  // CUDNN_STATUS_BAD_PARAM
  std::string last_error;
};

}  // namespace rnntune::fakes
