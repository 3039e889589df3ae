// SPDX-License-Identifier: Apache-2.0
#include "reference/cudnn/values.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>

namespace rnntune::reference::cudnn {
namespace {

template <class T, class Convert>
std::vector<std::byte> encode_as(std::span<const float> values, Convert convert) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = convert(values[i]);
    std::memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
  }
  return bytes;
}

template <class T, class Convert>
std::vector<float> decode_as(std::span<const std::byte> bytes, Convert convert) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, &bytes[i * sizeof(T)], sizeof(T));
    values[i] = convert(value);
  }
  return values;
}

float same(float value) { return value; }

// A dtype of the problem: in memory, to cuDNN, and between the two.
struct Row {
  Dtype dtype;
  std::size_t bytes;
  cudnnDataType_t type;
  std::vector<std::byte> (*encode)(std::span<const float>);
  std::vector<float> (*decode)(std::span<const std::byte>);
};

constexpr auto kEncodeFloat = [](std::span<const float> v) { return encode_as<float>(v, same); };
constexpr auto kDecodeFloat = [](std::span<const std::byte> b) {
  return decode_as<float>(b, same);
};

const Row kRows[] = {
    {Dtype::f32, 4, CUDNN_DATA_FLOAT, kEncodeFloat, kDecodeFloat},
    {Dtype::tf32, 4, CUDNN_DATA_FLOAT, kEncodeFloat, kDecodeFloat},
    {Dtype::f16, 2, CUDNN_DATA_HALF,
     [](std::span<const float> v) {
       return encode_as<__half>(v, [](float value) { return __float2half_rn(value); });
     },
     [](std::span<const std::byte> b) {
       return decode_as<__half>(b, [](__half value) { return __half2float(value); });
     }},
    {Dtype::bf16, 2, CUDNN_DATA_BFLOAT16,
     [](std::span<const float> v) {
       return encode_as<__nv_bfloat16>(v, [](float value) { return __float2bfloat16_rn(value); });
     },
     [](std::span<const std::byte> b) {
       return decode_as<__nv_bfloat16>(b, [](__nv_bfloat16 v) { return __bfloat162float(v); });
     }},
};

const Row& row_of(Dtype dtype) {
  const Row* row = kRows;
  while (row->dtype != dtype) ++row;
  return *row;
}

}  // namespace

std::size_t value_bytes(Dtype dtype) { return row_of(dtype).bytes; }
cudnnDataType_t data_type(Dtype dtype) { return row_of(dtype).type; }

std::vector<std::byte> encode(std::span<const float> values, Dtype dtype) {
  return row_of(dtype).encode(values);
}

std::vector<float> decode(std::span<const std::byte> bytes, Dtype dtype) {
  return row_of(dtype).decode(bytes);
}

}  // namespace rnntune::reference::cudnn
