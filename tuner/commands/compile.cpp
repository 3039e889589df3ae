// SPDX-License-Identifier: Apache-2.0
// rnntune compile: every CUDA kernel for any architecture, without a GPU, and what each takes.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cuda/compile_all.hpp"
#include "cuda/instances.hpp"
#include "database/codec.hpp"
#include "paths.hpp"
#include "tuner/command.hpp"
#include "tuner/inspect/inspect_view.hpp"
#include "tuner/options.hpp"
#include "tuner/progress.hpp"

namespace rnntune::tuner {
namespace {

using cuda::Compiled;

struct CompileCommand {
  Options options;
  std::vector<std::string> architectures{"sm_80", "sm_90", "sm_120"};
  int block_threads = 256;
  bool list = false;
};

std::vector<gpu::KernelId> chosen_kernels(const Options& options) {
  std::vector<gpu::KernelId> kernels = cuda::kernel_instances();
  if (options.filter.empty()) return kernels;
  const auto matches = finder(options.filter);
  std::erase_if(kernels, [&](const gpu::KernelId& kernel) {
    return !matches(kernel.file + ":" + kernel.expression);
  });
  if (kernels.empty()) throw BadInput("--filter: no kernel matches '" + options.filter + "'");
  return kernels;
}

Json row_json(const Compiled& row) {
  Json json = {{"file", row.kernel.file}, {"kernel", row.kernel.expression}};
  json.update(to_json(row));
  if (!row.error.empty()) return json;
  json["from_cache"] = row.from_cache;
  json["compile_s"] = row.seconds;
  return json;
}

void print_row(const Compiled& row) {
  std::printf("%-7s %-18s %s\n        ", row.architecture.c_str(), row.kernel.file.c_str(),
              row.kernel.expression.c_str());
  if (!row.error.empty()) {
    std::printf("failed: %s\n", row.error.c_str());
    return;
  }
  std::printf("%d registers, %d B spilled, %d B stack, %d B shared", row.usage.registers,
              row.usage.spill_store_bytes, row.usage.stack_bytes, row.usage.static_shared_bytes);
  if (row.resident_blocks >= 0) {
    std::printf(", %d blocks a multiprocessor, occupancy %.0f%%", row.resident_blocks,
                100 * row.resident_share);
  }
  std::printf(", %s\n",
              row.from_cache ? "cached" : (std::to_string(int(row.seconds * 1e3)) + " ms").c_str());
}

// Of one architecture, or of all.
struct Summary {
  int kernels = 0, failed = 0, cached = 0, spilling = 0, unlaunchable = 0, registers = 0;
};

Summary summarize(const std::vector<Compiled>& rows, const std::string& architecture) {
  Summary sum;
  for (const Compiled& row : rows) {
    if (row.architecture != architecture) continue;
    ++sum.kernels;
    sum.failed += !row.error.empty();
    sum.cached += row.from_cache;
    sum.spilling += row.usage.spill_store_bytes + row.usage.spill_load_bytes > 0;
    sum.unlaunchable += row.error.empty() && row.resident_blocks == 0;
    sum.registers = std::max(sum.registers, row.usage.registers);
  }
  return sum;
}

int compile(const CompileCommand& command) {
  const std::vector<gpu::KernelId> kernels = chosen_kernels(command.options);
  if (command.list) {
    for (const gpu::KernelId& kernel : kernels) {
      std::printf("%s\t%s\n", kernel.file.c_str(), kernel.expression.c_str());
    }
    return kFine;
  }
  std::vector<cuda::ToCompile> wanted;
  for (const gpu::KernelId& kernel : kernels) wanted.push_back({kernel, command.block_threads});
  Progress progress(command.options.quiet);
  const std::size_t count = kernels.size() * command.architectures.size();
  std::size_t done = 0;
  const std::vector<Compiled> rows = value_or_throw(
      cuda::compile_all(wanted,
                        {.architectures = command.architectures,
                         .threads = command.options.threads,
                         .data_folder = data_folder(),
                         .cache_folder = cache_folder()},
                        [&](const Compiled& row) {
                          progress.show("compile", double(++done) / double(count),
                                        row.architecture + " " + row.kernel.expression);
                        }));
  progress.clear();
  Json json = {{"kernels", Json::array()}};
  int failed = 0;
  for (const Compiled& row : rows) {
    failed += !row.error.empty();
    if (command.options.json) json["kernels"].push_back(row_json(row));
    if (!command.options.json) print_row(row);
  }
  if (command.options.json) std::printf("%s\n", dump(json).c_str());
  for (const std::string& architecture : command.architectures) {
    const Summary sum = summarize(rows, architecture);
    progress.say(architecture + ": " + std::to_string(sum.kernels - sum.failed) + " of " +
                 std::to_string(sum.kernels) + " compiled, " + std::to_string(sum.cached) +
                 " cached, " + std::to_string(sum.spilling) + " spill, at most " +
                 std::to_string(sum.registers) + " registers; " + std::to_string(sum.unlaunchable) +
                 " cannot launch " + std::to_string(command.block_threads) + " threads");
  }
  return failed == 0 ? kFine : kCheckFailed;
}

Run setup(CLI::App& app) {
  auto command = std::make_shared<CompileCommand>();
  app.add_option("--architecture", command->architectures, "such as sm_90")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--filter", command->options.filter,
                 "only kernels FILE:NAME that this regex finds");
  app.add_option("--block", command->block_threads, "threads of a block, for the occupancy")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--threads", command->options.threads, "compile so many at once; default: cores")
      ->check(CLI::Range(1, 1 << 10));
  app.add_flag("--list", command->list, "list the kernels and compile nothing");
  add_output_options(app, command->options);
  return [=] { return compile(*command); };
}

}  // namespace

extern const Command kCompile;
const Command kCompile{
    "compile", "Compile every CUDA kernel for any architecture, and say what each takes", setup};

}  // namespace rnntune::tuner
