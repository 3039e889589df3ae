// SPDX-License-Identifier: Apache-2.0
// Counters by given tables of CUPTI's and the driver's functions: the libraries', or a test's own.
// The host's half knows every chip's counters and works without a GPU and without a driver.
#pragma once

#include <cstdint>

#include "device/cuda_driver.hpp"
#include "device/cupti.hpp"
#include "tuner/gpu/counters.hpp"

namespace rnntune::tuner {

// The host's half of CUPTI for one chip: which metrics it has, and in how many passes they come.
class CounterHost {
 public:
  // `availability`: what the device at hand says it can count; empty where there is none.
  static Result<CounterHost> open(const CuptiCounters& cupti, const std::string& chip,
                                  const std::vector<std::uint8_t>& availability);
  CounterHost(CounterHost&& other) noexcept;
  CounterHost(const CounterHost&) = delete;
  ~CounterHost();

  // What is counted on this chip: of counters() those that it has.
  const std::vector<CounterValue>& planned() const { return planned_; }
  const std::vector<std::string>& absent() const { return absent_; }
  const std::vector<std::uint8_t>& config() const { return config_; }
  std::size_t passes() const { return passes_; }
  std::vector<const char*> metrics() const;

  // The counters with their values of the first range of a decoded image.
  Result<std::vector<CounterValue>> evaluate(const std::vector<std::uint8_t>& image) const;

 private:
  CounterHost(const CuptiCounters& cupti, CUpti_Profiler_Host_Object* host)
      : cupti_(cupti), host_(host) {}
  Status plan();
  Status make_config();

  CuptiCounters cupti_;
  CUpti_Profiler_Host_Object* host_;
  std::vector<CounterValue> planned_;
  std::vector<std::string> absent_;
  std::vector<std::uint8_t> config_;
  std::size_t passes_ = 0;
};

// Initialises the driver before anything of CUPTI that needs it.
Result<CounterReport> count_step(const CudaDriver& driver, const CuptiCounters& cupti, int ordinal,
                                 const Probe& step);

}  // namespace rnntune::tuner
