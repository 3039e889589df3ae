// SPDX-License-Identifier: Apache-2.0
#include "tuner/commands/bench_results.hpp"

#include <benchmark/benchmark.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>

#include "tuner/measure/environment.hpp"

namespace rnntune::tuner {
namespace {

using Run = benchmark::BenchmarkReporter::Run;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double center = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - center) * (value - center);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

std::string label(const BenchRow& row) {
  Json json = {{"problem", to_string(row.problem)}};
  const Contender& contender = row.contender;
  if (!contender.config.variant.empty()) json["config"] = encode(contender.config);
  if (!row.rung.empty()) json["rung"] = row.rung;
  if (!contender.version.empty()) json["version"] = contender.version;
  json["algorithm"] = contender.algorithm;
  if (!contender.notes.empty()) json["notes"] = contender.notes;
  if (row.counters) {
    json["gpu"] = {{"chip", row.counters->chip}, {"passes", row.counters->passes}};
  }
  json["stop"] = to_string(row.timing.stop);
  return dump(json);
}

benchmark::UserCounters counters(const BenchRow& row, double peak_gflops) {
  const double gflops = step_flops(row.problem) / row.timing.summary.median * 1e-3;
  const Contender& contender = row.contender;
  benchmark::UserCounters counters{
      {"gflops", gflops},
      {"ratio", row.ratio.median},
      {"validation_error", contender.validation.error},
      {"validation_bound", contender.validation.bound},
  };
  if (peak_gflops > 0) counters["fraction_of_peak"] = gflops / peak_gflops;
  if (row.ratio.interval) {
    counters["ratio_low"] = row.ratio.interval->low;
    counters["ratio_high"] = row.ratio.interval->high;
  }
  if (!contender.config.variant.empty()) {
    counters["workspace_bytes"] = static_cast<double>(contender.sizes.workspace);
    counters["reserve_bytes"] = static_cast<double>(contender.sizes.reserve);
  }
  if (row.counters) {
    for (const auto& [name, value] : row.counters->values) counters[kGpuPrefix + name] = value;
  }
  return counters;
}

// What all runs of a row have in common. The reporter divides times by `iterations`.
Run common(const BenchRow& row, std::size_t family, double peak_gflops) {
  Run run;
  run.run_name.function_name = row.problem_name + "/" + row.contender.name;
  run.family_index = static_cast<std::int64_t>(family);
  run.per_family_instance_index = 0;
  run.repetitions = static_cast<std::int64_t>(row.timing.samples_us.size());
  run.repetition_index = Run::no_repetition_index;
  run.time_unit = benchmark::kMicrosecond;
  run.report_label = label(row);
  run.counters = counters(row, peak_gflops);
  run.statistics = nullptr;
  return run;
}

struct Aggregate {
  const char* name;
  benchmark::StatisticUnit unit;
  double real_us;
  double cpu_us;
};

void add_aggregates(std::vector<Run>& runs, const BenchRow& row, const Run& base) {
  const std::vector<double>& real = row.timing.samples_us;
  const std::vector<double>& cpu = row.timing.cpu_us;
  const double real_deviation = deviation(real), cpu_deviation = deviation(cpu);
  for (const Aggregate& aggregate :
       {Aggregate{"mean", benchmark::kTime, mean(real), mean(cpu)},
        Aggregate{"median", benchmark::kTime, median(real), median(cpu)},
        Aggregate{"stddev", benchmark::kTime, real_deviation, cpu_deviation},
        Aggregate{"cv", benchmark::kPercentage, 1e6 * real_deviation / mean(real),
                  1e6 * cpu_deviation / mean(cpu)}}) {
    Run run = base;
    run.run_type = Run::RT_Aggregate;
    run.aggregate_name = aggregate.name;
    run.aggregate_unit = aggregate.unit;
    run.iterations = run.repetitions;
    // A percentage is written as it stands, a time is divided by the iterations.
    const double scale = aggregate.unit == benchmark::kTime ? double(run.iterations) : 1.0;
    run.real_accumulated_time = aggregate.real_us * 1e-6 * scale;
    run.cpu_accumulated_time = aggregate.cpu_us * 1e-6 * scale;
    runs.push_back(run);
  }
}

std::vector<Run> runs_of(const BenchRow& row, std::size_t family, double peak_gflops) {
  const Run base = common(row, family, peak_gflops);
  std::vector<Run> runs;
  for (std::size_t i = 0; i < row.timing.samples_us.size(); ++i) {
    Run run = base;
    run.repetition_index = static_cast<std::int64_t>(i);
    run.iterations = row.timing.steps_per_sample;
    const double seconds = 1e-6 * static_cast<double>(run.iterations);
    run.real_accumulated_time = row.timing.samples_us[i] * seconds;
    run.cpu_accumulated_time = row.timing.cpu_us[i] * seconds;
    runs.push_back(run);
  }
  add_aggregates(runs, row, base);
  return runs;
}

}  // namespace

void write_results(std::ostream& out, const std::vector<BenchRow>& rows, const DeviceInfo& device,
                   const Environment& environment, double peak_gflops) {
  benchmark::AddCustomContext("rnntune_device", dump(encode(device)));
  benchmark::AddCustomContext("rnntune_environment", dump(encode(environment)));
  benchmark::AddCustomContext("rnntune_library", version());
  benchmark::JSONReporter reporter;
  reporter.SetOutputStream(&out);
  reporter.ReportContext(benchmark::BenchmarkReporter::Context());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    reporter.ReportRuns(runs_of(rows[i], i, peak_gflops));
  }
  reporter.Finalize();
}

}  // namespace rnntune::tuner
