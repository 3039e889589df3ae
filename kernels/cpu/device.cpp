// SPDX-License-Identifier: Apache-2.0
#include "cpu/device.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "cpu/cpu_info.hpp"
#include "cpu/team.hpp"
#include "device/blas.hpp"

namespace rnntune::cpu {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr int kMostThreads = 4096;  // far above any machine; catches garbage in DeviceOptions

std::string join(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

DeviceInfo describe(const CpuInfo& cpu, const DefaultThreads& threads,
                    std::vector<std::string> isa) {
  DeviceInfo info;
  info.backend = "cpu";
  info.name = cpu.name;
  info.architecture = cpu.machine + "/" + isa.front();
  info.threads = threads.count;
  info.threads_from = threads.from;
  info.l1_bytes = cpu.l1_bytes;
  info.l2_bytes = cpu.l2_bytes;
  info.l3_bytes = cpu.l3_bytes;
  info.memory_bytes = cpu.memory_bytes;
  info.properties = {{"vendor", cpu.vendor},
                     {"family", std::to_string(cpu.family)},
                     {"model", std::to_string(cpu.model)},
                     {"isa", join(isa, "+")},
                     {"l1_bytes", std::to_string(cpu.l1_bytes)},
                     {"l2_bytes", std::to_string(cpu.l2_bytes)},
                     {"l3_bytes", std::to_string(cpu.l3_bytes)},
                     {"threads", std::to_string(threads.count)}};
  info.key = "cpu";
  for (const auto& [name, value] : info.properties) info.key += ";" + name + "=" + value;
  // After the key: the stepping tells apart what kernels cannot, but a reader may want it.
  info.properties.emplace_back("stepping", std::to_string(cpu.stepping));
  info.isa = std::move(isa);
  return info;
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(DeviceInfo info) : info_(std::move(info)), blas_(best_blas()) {}

  const DeviceInfo& info() const override { return info_; }

  // Big blocks start on a huge page and ask for them: a step walks hundreds of megabytes.
  Result<void*> allocate(std::size_t bytes) override {
    const std::size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    if (rounded < bytes) return no_memory(bytes);
    void* const memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
    if (memory == nullptr) return no_memory(bytes);
#ifdef MADV_HUGEPAGE
    if (alignment == kHugePage) madvise(memory, rounded, MADV_HUGEPAGE);  // a wish; refusal is fine
#endif
    return memory;
  }

  void release(void* memory) override { std::free(memory); }

  Status to_device(void* device, const void* host, std::size_t bytes, Stream) override {
    return copy(device, host, bytes);
  }
  Status to_host(void* host, const void* device, std::size_t bytes, Stream) override {
    return copy(host, device, bytes);
  }
  Status fill(void* device, unsigned char value, std::size_t bytes, Stream) override {
    if (bytes != 0) std::memset(device, value, bytes);
    return {};
  }
  Status synchronize(Stream) override { return {}; }

  Status gemm(const Gemm& gemm, Stream) override {
    if (blas_ == nullptr) return unsupported("gemm: no BLAS: " + join(absent_blas(), "; "));
    if (Status status = check_gemm(gemm); !status.ok()) return status;
    // Below this many FLOPs per thread a region costs more than it saves.
    constexpr double kWorth = 1e6;
    const double flops = 2.0 * double(gemm.m) * double(gemm.n) * double(gemm.k);
    const int threads = int(std::min(double(info_.threads), flops / kWorth + 1));
    run_team(threads, [&](const Member& member) {
      blas_->sgemm(slice_gemm(gemm, member.count, member.id));
    });
    return {};
  }

 private:
  static Error no_memory(std::size_t bytes) {
    return {ErrorCode::out_of_memory, "allocate: no " + std::to_string(bytes) + " bytes of memory"};
  }
  static Status copy(void* to, const void* from, std::size_t bytes) {
    if (bytes != 0) std::memmove(to, from, bytes);
    return {};
  }

  const DeviceInfo info_;
  const Blas* const blas_;
};

}  // namespace

Result<std::shared_ptr<Device>> open_cpu(const DeviceOptions& options) {
  if (options.threads < 0 || options.threads > kMostThreads) {
    return invalid_argument("threads: expected 0 (the default) to " + std::to_string(kMostThreads) +
                            ", got " + std::to_string(options.threads));
  }
  Result<std::vector<std::string>> isa = instruction_sets(options.isa);
  if (!isa.ok()) return isa.error();
  const DefaultThreads threads =
      options.threads > 0 ? DefaultThreads{options.threads, "the option"} : default_threads();
  return std::shared_ptr<Device>(
      std::make_shared<CpuDevice>(describe(detect_cpu(), threads, std::move(*isa))));
}

}  // namespace rnntune::cpu
