// SPDX-License-Identifier: Apache-2.0
#include "tuner/gpu/step_counters.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "device/gpu.hpp"
#include "device/shared_library.hpp"
#include "paths.hpp"
#include "tuner/interrupt.hpp"

namespace rnntune::tuner {
namespace {

std::optional<double> value_of(const StepCounters& counters, std::string_view name) {
  for (const auto& [known, value] : counters.values) {
    if (known == name) return value;
  }
  return std::nullopt;
}

std::optional<double> fraction_of(const StepCounters& counters, std::string_view name) {
  const std::optional<double> percent = value_of(counters, name);
  return percent ? std::optional(*percent / 100) : std::nullopt;
}

// "long scoreboard" of "stall_long_scoreboard_count"; empty where it counts no stall.
std::string stall_of(std::string_view name) {
  constexpr std::string_view kBefore = "stall_", kAfter = "_count";
  if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) return {};
  name.remove_prefix(kBefore.size());
  name.remove_suffix(kAfter.size());
  std::string reason(name);
  std::replace(reason.begin(), reason.end(), '_', ' ');
  return reason;
}

}  // namespace

Json to_json(const StepCounters& counters) {
  Json values = Json::object();
  for (const auto& [name, value] : counters.values) values[name] = value;
  return {{"contender", counters.contender},
          {"chip", counters.chip},
          {"passes", counters.passes},
          {"values", values}};
}

std::string from_json(const Json& json, StepCounters& counters) {
  if (!json.is_object()) return ": expected an object";
  for (const auto& [field, value] :
       {std::pair("contender", &counters.contender), std::pair("chip", &counters.chip)}) {
    if (!json.contains(field) || !json[field].is_string()) {
      return std::string(".") + field + ": expected a string";
    }
    *value = json[field];
  }
  const auto passes = json.find("passes");
  if (passes != json.end() && passes->is_number_integer()) counters.passes = *passes;
  if (!json.contains("values") || !json["values"].is_object()) return ".values: expected an object";
  for (const auto& [name, value] : json["values"].items()) {
    if (value.is_number()) counters.values.emplace_back(name, value);
  }
  return {};
}

reports::GpuCounters to_report(const StepCounters& counters) {
  reports::GpuCounters report;
  report.contender = counters.contender;
  report.chip = counters.chip;
  report.dram_read_bytes = value_of(counters, "dram_read_bytes");
  report.dram_write_bytes = value_of(counters, "dram_write_bytes");
  report.l2_bytes = value_of(counters, "l2_bytes");
  report.dram_throughput = fraction_of(counters, "dram_throughput_percent");
  report.tensor_pipe = fraction_of(counters, "tensor_pipe_percent");
  report.fma_pipe = fraction_of(counters, "fma_pipe_percent");
  report.occupancy = fraction_of(counters, "occupancy_percent");
  // Both are warps, summed over the cycles of every scheduler.
  const double active = value_of(counters, "warps_active_count").value_or(0);
  for (const auto& [name, value] : counters.values) {
    const std::string reason = stall_of(name);
    if (!reason.empty() && active > 0) report.stalls.emplace_back(reason, value / active);
  }
  std::stable_sort(report.stalls.begin(), report.stalls.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return report;
}

std::vector<StepCounters> StepCounting::count(std::span<const CountedStep> steps) {
  std::vector<StepCounters> counted;
  if (!count_) return counted;
  clock_->set_aside([&] {
    for (const CountedStep& step : steps) {
      if (!count_ || interrupted()) return;
      if (auto counters = count(step)) counted.push_back(std::move(*counters));
    }
  });
  return counted;
}

std::optional<StepCounters> StepCounting::count(const CountedStep& counted) {
  const Result<CounterReport> report = count_([&]() -> Status {
    const Status queued = counted.step();
    Status complete = device_->synchronize();
    return queued.ok() ? complete : queued;
  });
  if (!report.ok()) {
    news_ = "no GPU counters: " + report.error().message;
    count_ = nullptr;
    return std::nullopt;
  }
  StepCounters counters{counted.contender, report->chip, std::int64_t(report->passes), {}};
  for (const CounterValue& value : report->values) {
    if (std::isfinite(value.value)) counters.values.emplace_back(value.name, value.value);
  }
  return counters;
}

StepCounting open_counting(std::shared_ptr<Device> device, std::shared_ptr<Clock> clock,
                           bool wanted) {
  StepCounting::Count count;
  if (wanted && device->info().backend == "cuda") {
    count = [ordinal = gpu::gpu(*device).ordinal()](const Probe& step) {
      return count_step(ordinal, cuda_library_folders(data_folder()), step);
    };
  }
  return {std::move(count), std::move(device), std::move(clock)};
}

}  // namespace rnntune::tuner
