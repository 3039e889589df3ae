// SPDX-License-Identifier: Apache-2.0
#include "tuner/inspect/gpus.hpp"

#include <string>

#include "cuda/usage.hpp"

namespace rnntune::tuner {
namespace {

constexpr GpuRecord kGpus[] = {
    {"v100", "Tesla V100 SXM2", "sm_70", 80, 16,
     "NVIDIA Tesla V100 GPU Architecture (whitepaper WP-08608-001), table 1"},
    {"a100", "A100 SXM4 40 GB", "sm_80", 108, 40,
     "NVIDIA A100 Tensor Core GPU Architecture (whitepaper), table of data center GPUs"},
    {"rtx3090", "GeForce RTX 3090", "sm_86", 82, 24,
     "NVIDIA Ampere GA102 GPU Architecture (whitepaper), table 2"},
    {"rtx4090", "GeForce RTX 4090", "sm_89", 128, 24,
     "NVIDIA Ada GPU Architecture (whitepaper), table 1"},
    {"h100", "H100 SXM5", "sm_90", 132, 80,
     "https://developer.nvidia.com/blog/nvidia-hopper-architecture-in-depth/"},
    {"h200", "H200 SXM", "sm_90", 132, 141,
     "https://www.nvidia.com/en-us/data-center/h200/ for the memory; multiprocessors as of the "
     "H100, whose peak rates it shares there"},
    {"b200", "B200", "sm_100", 148, 180,
     "device query in https://github.com/pytorch/ao/pull/4002 for the multiprocessors; "
     "https://www.nvidia.com/en-us/data-center/dgx-b200/ for the memory"},
    {"rtx5090", "GeForce RTX 5090", "sm_120", 170, 32,
     "NVIDIA RTX Blackwell GPU Architecture (whitepaper), table of GeForce RTX 5090"},
};

}  // namespace

std::span<const GpuRecord> gpu_records() { return kGpus; }

const GpuRecord* find_gpu(std::string_view name) {
  for (const GpuRecord& record : kGpus) {
    if (name == record.name) return &record;
  }
  return nullptr;
}

DeviceInfo info_of(const GpuRecord& record) {
  DeviceInfo info;
  info.backend = "cuda";
  info.name = record.product;
  info.architecture = record.architecture;
  info.key = std::string("record of ") + record.name;
  info.memory_bytes = std::int64_t{record.memory_gb} * 1'000'000'000;
  return info;
}

gpu::Limits limits_of(const GpuRecord& record) {
  gpu::Limits limits = *cuda::limits_of(record.architecture);
  limits.multiprocessors = record.multiprocessors;
  return limits;
}

}  // namespace rnntune::tuner
