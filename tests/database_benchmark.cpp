// SPDX-License-Identifier: Apache-2.0
// What a tuning database costs an application: the first plan pays for parsing, every later one for
// a lookup.
#include <benchmark/benchmark.h>

#include "database/cache.hpp"
#include "database/lookup.hpp"
#include "tests/database_samples.hpp"

namespace rnntune {
namespace {

using samples::device;

// Shapes are unlike each other, so that a problem has few neighbours, as in a real database.
std::string numbered(std::int64_t n) {
  return "lstm:T" + std::to_string(1 + n % 7) + ",B" + std::to_string(1 + n % 61) + ",I64,H" +
         std::to_string(8 + n) + ",f32";
}

Database database_of(std::int64_t entries) {
  Database database;
  put(database, device(), samples::entry(numbered(0)));
  for (std::int64_t n = 1; n < entries; ++n)
    database.devices[0].entries.push_back(samples::entry(numbered(n)));
  return database;
}

Kernels accepting() {
  return {[](const Config&) { return std::string(); }, [](const Config&) { return "9f3a"; },
          [] {
            return Result<Config>(Config{"cell", {}});
          }};
}

void parse(benchmark::State& state) {
  const std::string text = write_text(database_of(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(parse_database(text, "x.json").ok());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(parse)->RangeMultiplier(10)->Range(10, 10000)->Unit(benchmark::kMicrosecond);

void write(benchmark::State& state) {
  const Database database = database_of(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(write_text(database));
}
BENCHMARK(write)->RangeMultiplier(10)->Range(10, 10000)->Unit(benchmark::kMicrosecond);

// Rung by the second argument: 1 asks for a problem that is there, 0 for a neighbour of many.
void look_up(benchmark::State& state) {
  const samples::Folder folder;
  samples::write_file(folder / "a.json", write_text(database_of(state.range(0))));
  const bool exact = state.range(1) == 1;
  const Problem problem =
      samples::problem(exact ? numbered(state.range(0) / 2) : "lstm:T3,B7,I65,H77,f32");
  const Kernels kernels = accepting();
  const std::vector<std::string> files{folder / "a.json"};
  const DeviceInfo here = device();
  if (lookup(problem, here, files, {}, kernels)->rung != (exact ? Rung::exact : Rung::nearest))
    return state.SkipWithError("another rung answered");
  for (auto _ : state)
    benchmark::DoNotOptimize(lookup(problem, here, files, {}, kernels)->distance);
}
BENCHMARK(look_up)
    ->ArgsProduct({{100, 1000, 10000}, {1, 0}})
    ->ArgNames({"entries", "exact"})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rnntune

BENCHMARK_MAIN();
