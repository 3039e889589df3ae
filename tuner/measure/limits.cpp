// SPDX-License-Identifier: Apache-2.0
#include "tuner/measure/limits.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>

#include "cpu/team.hpp"
#include "paths.hpp"
#include "tuner/measure/environment.hpp"
#include "tuner/measure/limits_kernels.hpp"
#include "tuner/measure/measure.hpp"

namespace rnntune::tuner {
namespace {

constexpr double kSampleUs = 20e3;  // long enough for a clock to reach its boost
constexpr int kSamples = 5;         // the best counts: a limit is what nothing may exceed
constexpr std::size_t kGrain = 1024;

constexpr int kMostSamples = 25;  // where other work has the cores
constexpr double kQuiet = 0.9;    // of the time the threads ran, at least

double thread_cpu_us() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) * 1e6 + static_cast<double>(spent.tv_nsec) * 1e-3;
}

struct Rate {
  double best = 0;       // units a microsecond, all threads running
  double ran_share = 0;  // most of a sample's time that the threads had a core
  bool busy() const { return ran_share < kQuiet; }
};

// The rate of `work` (units), all threads running it at once, over the time that each of them ran:
// a thread that waits for a core does not make the machine slower.
template <class Work>
Rate best_rate(int threads, Work work) {
  struct alignas(64) Share {
    double units = 0, cpu_us = 0;
  };
  Rate rate;
  std::int64_t rounds = 1;
  for (int sample = 0; sample < kMostSamples && (sample < kSamples || rate.busy());) {
    std::vector<Share> shares(static_cast<std::size_t>(threads));
    double start = 0;
    int team = 1;
    cpu::run_team(threads, [&](const cpu::Member& member) {
      member.wait();
      if (member.id == 0) {
        start = steady_clock().now_us();
        team = member.count;
      }
      Share& share = shares[static_cast<std::size_t>(member.id)];
      const double cpu_start = thread_cpu_us();
      share.units = work(member.id, rounds);
      share.cpu_us = thread_cpu_us() - cpu_start;
      member.wait();
    });
    const double time = steady_clock().now_us() - start;
    if (time < kSampleUs) {
      rounds *= 2;
      continue;
    }
    ++sample;
    if (team != threads) continue;
    double sum = 0, ran_us = 0;
    for (const Share& share : shares) {
      sum += share.cpu_us > 0 ? share.units / share.cpu_us : 0;
      ran_us += share.cpu_us;
    }
    rate.best = std::max(rate.best, sum);
    rate.ran_share = std::max(rate.ran_share, ran_us / (threads * time));
  }
  return rate;
}

Rate fma_peak(const LimitKernels& kernels, int threads) {
  std::vector<float> sinks(static_cast<std::size_t>(threads) * 64);
  const auto work = [&](int id, std::int64_t rounds) {
    return kernels.fma(1000 * rounds, &sinks[static_cast<std::size_t>(id) * 64]);
  };
  return best_rate(threads, work);
}

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};

Rate bandwidth(const LimitKernels& kernels, int threads, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  std::vector<std::unique_ptr<float, Free>> data(static_cast<std::size_t>(threads));
  for (auto& part : data) {
    part.reset(static_cast<float*>(std::aligned_alloc(256, bytes)));
    if (!part) throw std::bad_alloc();
  }
  // Each thread touches its part first, so that it lies in the thread's own memory. The byte makes
  // floats of an ordinary size.
  cpu::run_team(threads, [&](const cpu::Member& member) {
    std::memset(data[static_cast<std::size_t>(member.id)].get(), 0x3f, bytes);
  });
  std::vector<float> sinks(static_cast<std::size_t>(threads) * 64);
  const auto work = [&](int id, std::int64_t rounds) {
    const auto i = static_cast<std::size_t>(id);
    return kernels.read(data[i].get(), count, rounds, &sinks[i * 64]);
  };
  return best_rate(threads, work);
}

// One working set in the middle of each level of the memory, in whole grains.
std::vector<std::size_t> working_sets(const DeviceInfo& device, int threads) {
  const std::int64_t l1 = std::max<std::int64_t>(device.l1_bytes, 32 << 10);
  const std::int64_t l2 = std::max<std::int64_t>(device.l2_bytes, 4 * l1);
  const std::int64_t l3 = device.l3_bytes / threads;
  std::vector<std::size_t> sizes;
  for (const std::int64_t bytes : {l1 / 2, l2 / 2, l3 / 2, std::max(2 * l3, 8 * l2)}) {
    const auto grain = static_cast<std::int64_t>(kGrain * sizeof(float));
    const std::int64_t whole = bytes / grain * grain;
    if (whole > 0 && (sizes.empty() || whole > static_cast<std::int64_t>(sizes.back()))) {
      sizes.push_back(static_cast<std::size_t>(whole));
    }
  }
  return sizes;
}

std::string file_of(const std::string& device_key) {
  const std::string folder = cache_folder();
  if (folder.empty()) return folder;
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const unsigned char byte : device_key) hash = (hash ^ byte) * 0x100000001b3u;
  char name[48];
  std::snprintf(name, sizeof name, "/limits-%016llx.json", static_cast<unsigned long long>(hash));
  return folder + name;
}

MachineLimits from_json(const Json& json) {
  MachineLimits limits{json.at("device"), json.at("time"), {}, false};
  if (json.at("format") != "rnntune-limits" || json.at("version") != 1) return {};
  for (const Json& row : json.at("limits")) {
    ThreadLimits& one = limits.limits.emplace_back();
    one.threads = row.at("threads");
    one.fma_peak_f32_gflops = row.at("fma_peak_f32_gflops");
    for (const Json& point : row.at("read_bandwidth")) {
      one.read_bandwidth.push_back({point.at("working_set_bytes"), point.at("gbytes_per_s")});
    }
  }
  return limits;
}

}  // namespace

double MachineLimits::peak_gflops(int threads) const {
  double peak = 0;
  for (const ThreadLimits& row : limits) {
    peak = std::max(peak, row.fma_peak_f32_gflops / row.threads);
  }
  return peak * threads;
}

void MachineLimits::raise(int threads, double gflops) {
  for (ThreadLimits& row : limits) {
    row.fma_peak_f32_gflops = std::max(row.fma_peak_f32_gflops, gflops / threads * row.threads);
  }
}

MachineLimits measure_limits(const DeviceInfo& device) {
  const LimitKernels kernels = limit_kernels(device.isa.empty() ? "" : device.isa.front());
  MachineLimits limits{device.key, utc_now(), {}, false};
  std::vector<int> counts{1};
  if (device.threads > 1) counts.push_back(device.threads);
  for (const int threads : counts) {
    ThreadLimits& row = limits.limits.emplace_back();
    row.threads = threads;
    const auto add = [&limits](const Rate& rate) {
      limits.busy = limits.busy || rate.busy();
      return rate.best * 1e-3;
    };
    row.fma_peak_f32_gflops = add(fma_peak(kernels, threads));
    for (const std::size_t bytes : working_sets(device, threads)) {
      row.read_bandwidth.push_back(
          {static_cast<std::int64_t>(bytes), add(bandwidth(kernels, threads, bytes))});
    }
  }
  return limits;
}

Result<MachineLimits> load_limits(const DeviceInfo& device) {
  const std::string path = file_of(device.key);
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return Error{ErrorCode::not_found, "no measured limits of this device yet"};
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  try {
    MachineLimits limits = from_json(Json::parse(text));
    if (limits.device == device.key && limits.peak_gflops(1) > 0) return limits;
  } catch (const Json::exception&) {
  }
  return Error{ErrorCode::bad_file, path + ": no machine limits of this device"};
}

Status save_limits(const MachineLimits& limits) {
  namespace fs = std::filesystem;
  const std::string path = file_of(limits.device);
  if (limits.busy) {
    return Error{ErrorCode::internal, "other work had the cores while they were measured"};
  }
  if (path.empty()) return Error{ErrorCode::not_found, "no cache folder: HOME is not set"};
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  // Another process may write the same file: each has its own temporary one.
  const std::string temporary = path + "." + std::to_string(getpid());
  std::ofstream stream(temporary);
  stream << to_json(limits).dump(1) << "\n";
  stream.close();
  if (stream) fs::rename(temporary, path, error);
  if (!stream || error) {
    fs::remove(temporary, error);
    return Error{ErrorCode::bad_file, "cannot write " + path};
  }
  return {};
}

MachineLimits limits_of(const DeviceInfo& device) {
  if (device.backend != "cpu") return {};
  if (Result<MachineLimits> cached = load_limits(device); cached.ok()) return *cached;
  MachineLimits limits = measure_limits(device);
  static_cast<void>(save_limits(limits));
  return limits;
}

Json to_json(const MachineLimits& limits) {
  Json json = {{"format", "rnntune-limits"},
               {"version", 1},
               {"device", limits.device},
               {"time", limits.time},
               {"limits", Json::array()}};
  for (const ThreadLimits& row : limits.limits) {
    Json points = Json::array();
    for (const Bandwidth& point : row.read_bandwidth) {
      points.push_back(
          {{"working_set_bytes", point.working_set_bytes}, {"gbytes_per_s", point.gbytes_per_s}});
    }
    json["limits"].push_back({{"threads", row.threads},
                              {"fma_peak_f32_gflops", row.fma_peak_f32_gflops},
                              {"read_bandwidth", points}});
  }
  return json;
}

}  // namespace rnntune::tuner
