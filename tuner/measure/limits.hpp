// SPDX-License-Identifier: Apache-2.0
// What the machine can do at most, measured: the roofline that times are judged by. Kept in the
// user's cache folder (docs/formats.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "database/codec.hpp"
#include "rnntune/device.hpp"

namespace rnntune::tuner {

struct Bandwidth {
  std::int64_t working_set_bytes = 0;  // of each thread
  double gbytes_per_s = 0;             // of all threads together, reading
};

struct ThreadLimits {
  int threads = 1;
  double fma_peak_f32_gflops = 0;
  std::vector<Bandwidth> read_bandwidth;
};

struct MachineLimits {
  std::string device;  // DeviceInfo::key
  std::string time;
  std::vector<ThreadLimits> limits;
  bool busy = false;  // other work had the cores meanwhile: not to be kept as limits

  // What `threads` threads cannot exceed: the best rate of a thread in any row, times their number.
  // 0 where nothing was measured.
  double peak_gflops(int threads) const;

  // What so many threads were seen to reach, where that is more: the peak was measured too low.
  void raise(int threads, double gflops);
};

// For 1 thread and for all of the device's; takes about a second. The peak is counted by the time
// that the threads really ran, so that other work on the cores takes little from it; bandwidth is
// shared with that work, and not what the machine can do.
MachineLimits measure_limits(const DeviceInfo& device);

// The cached figures, or not_found where `devices --measure` has not been run on this device.
Result<MachineLimits> load_limits(const DeviceInfo& device);
// Limits of a busy machine are refused.
Status save_limits(const MachineLimits& limits);

// The cached figures, else measured now and cached where they may be; a cache that cannot be
// written is no failure. Of a CPU; of another device none.
MachineLimits limits_of(const DeviceInfo& device);

Json to_json(const MachineLimits& limits);

}  // namespace rnntune::tuner
