// SPDX-License-Identifier: Apache-2.0
// rnntune inspect: what a config takes and does, on a GPU that need not be here.
#include "tuner/inspect/inspect.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "tuner/command.hpp"
#include "tuner/inspect/gpus.hpp"
#include "tuner/inspect/inspect_view.hpp"
#include "tuner/options.hpp"

namespace rnntune::tuner {
namespace {

constexpr const char* kDefaultGpu = "h100";  // whose multiprocessor the emulated device has

struct InspectOptions : Options {
  std::optional<std::string> gpu;
  std::string config;
};

std::string gpu_names() {
  std::string names;
  for (const GpuRecord& record : gpu_records()) {
    names += (names.empty() ? "" : ", ") + std::string(record.name);
  }
  return names;
}

std::string text_of(const DeviceInfo& info, const gpu::Limits& limits) {
  return info.name + ", " + info.architecture + ", " + std::to_string(limits.multiprocessors) +
         " multiprocessors";
}

struct Chosen {
  InspectedGpu gpu;
  std::string text;
  Json json;
};

Chosen record_chosen(const std::string& name) {
  const GpuRecord* const record = find_gpu(name);
  if (record == nullptr) {
    throw BadInput("--gpu: expected one of " + gpu_names() + ", got '" + name + "'");
  }
  Chosen chosen{{info_of(*record), limits_of(*record)}, {}, {{"name", record->name}}};
  chosen.text = name + ": " + text_of(chosen.gpu.info, chosen.gpu.limits) + ", " +
                std::to_string(record->memory_gb) + " GB";
  chosen.json["memory_gb"] = record->memory_gb;
  chosen.json["source"] = record->source;
  return chosen;
}

Chosen device_chosen(const Options& options) {
  const auto device = open_device(options);
  const gpu::Limits& limits = gpu::gpu(*device).limits();
  Chosen chosen{{device->info(), limits, device}, {}, {{"name", options.device}}};
  chosen.text = options.device + ": " + text_of(device->info(), limits);
  return chosen;
}

Chosen choose_gpu(const InspectOptions& options) {
  const bool emulated = options.device.starts_with("simt");
  if (!emulated && options.gpu.has_value()) {
    throw BadInput("--gpu names a GPU that is not here, --device " + options.device +
                   " one that is: give one of them");
  }
  if (emulated) open_device(options);  // refuses what it does not know
  Chosen chosen =
      !emulated ? device_chosen(options) : record_chosen(options.gpu.value_or(kDefaultGpu));
  const gpu::Limits& limits = chosen.gpu.limits;
  chosen.json["product"] = chosen.gpu.info.name;
  chosen.json["architecture"] = chosen.gpu.info.architecture;
  chosen.json["multiprocessors"] = limits.multiprocessors;
  chosen.json["max_threads_per_multiprocessor"] = limits.max_threads_per_multiprocessor;
  chosen.json["registers_per_multiprocessor"] = limits.registers_per_multiprocessor;
  chosen.json["shared_bytes_per_multiprocessor"] = limits.shared_bytes_per_multiprocessor;
  return chosen;
}

void finish(const Options& options, Json json) {
  if (options.json) std::printf("%s\n", dump(json).c_str());
}

// A CPU has no kernels to launch; of a plan there are its sizes to tell.
int inspect_cpu(const InspectOptions& options) {
  if (options.gpu.has_value()) {
    throw BadInput("--gpu names a GPU, --device cpu is none: give one of them");
  }
  const auto device = open_device(options);
  Json results = Json::array();
  for (const NamedProblem& named : load_problems(options)) {
    const Explanation choice =
        chosen_config(named.problem, device->info(), options, options.config);
    const Rnn rnn = value_or_throw(make_rnn(named.problem, choice, device));
    const InspectedPlan plan{
        named.problem, choice, {rnn.packed_bytes(), rnn.workspace_bytes(), rnn.reserve_bytes()}};
    if (!options.json) std::printf("%s", to_text(plan, device->info().name).c_str());
    results.push_back(to_json(plan));
  }
  finish(options, {{"format", "rnntune-inspection"},
                   {"version", 1},
                   {"device", encode(device->info())},
                   {"results", std::move(results)}});
  return kFine;
}

int inspect_gpu(const InspectOptions& options) {
  const std::vector<NamedProblem> problems = load_problems(options);
  const Chosen chosen = choose_gpu(options);
  Json results = Json::array();
  for (const NamedProblem& named : problems) {
    if (!options.json && &named != &problems.front()) std::printf("\n");
    const Explanation choice =
        chosen_config(named.problem, chosen.gpu.info, options, options.config);
    const Inspection found =
        value_or_throw(inspect(named.problem, choice, chosen.gpu, options.threads));
    if (!options.json) std::printf("%s", to_text(found, chosen.text).c_str());
    results.push_back(to_json(found));
  }
  finish(options, {{"format", "rnntune-inspection"},
                   {"version", 1},
                   {"gpu", chosen.json},
                   {"results", std::move(results)}});
  return kFine;
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  options->device = "simt";
  add_device_options(app, *options);
  app.add_option("--gpu", options->gpu,
                 "a GPU that need not be here: " + gpu_names() + "; default: " + kDefaultGpu);
  add_problem_options(app, *options);
  app.add_option("--config", options->config, "this config; default: what a lookup finds");
  add_db_option(app, *options);
  app.add_flag("--json", options->json, "results as JSON");
  return [=] { return options->device == "cpu" ? inspect_cpu(*options) : inspect_gpu(*options); };
}

}  // namespace

extern const Command kInspect;
const Command kInspect{
    "inspect", "What a config takes and does on a GPU: resources, launches, memory accesses",
    setup};

}  // namespace rnntune::tuner
