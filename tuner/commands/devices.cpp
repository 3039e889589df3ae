// SPDX-License-Identifier: Apache-2.0
// rnntune devices: what is here, and with --measure what it can do.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "paths.hpp"
#include "reference/cudnn/cudnn.hpp"
#include "tuner/command.hpp"
#include "tuner/inspect/probe.hpp"
#include "tuner/measure/limits.hpp"
#include "tuner/options.hpp"

namespace rnntune::tuner {
namespace {

void print_info(const DeviceInfo& info) {
  std::printf("%s: %s\n", info.backend.c_str(), info.name.c_str());
  std::printf("  architecture  %s\n  key           %s\n", info.architecture.c_str(),
              info.key.c_str());
  for (const auto& [name, value] : info.properties) {
    std::printf("  %-13s %s\n", name.c_str(), value.c_str());
  }
  if (info.isa.empty()) return;
  std::string isa;
  for (const std::string& set : info.isa) isa += (isa.empty() ? "" : ", ") + set;
  std::printf("  threads       %d, from %s\n  isa           %s\n", info.threads,
              info.threads_from.c_str(), isa.c_str());
}

void print_limits(const MachineLimits& limits) {
  std::printf("  measured      %s\n", limits.time.c_str());
  for (const ThreadLimits& row : limits.limits) {
    std::printf("  %d thread%s: f32 multiply-add peak %.1f GFLOP/s\n", row.threads,
                row.threads == 1 ? "" : "s", row.fma_peak_f32_gflops);
    for (const Bandwidth& point : row.read_bandwidth) {
      std::printf("    reads of %9.1f KiB a thread %8.1f GB/s\n",
                  static_cast<double>(point.working_set_bytes) / 1024, point.gbytes_per_s);
    }
  }
}

Json device_json(const DeviceInfo& info) {
  Json json = encode(info);
  json["threads"] = info.threads;
  if (!info.threads_from.empty()) json["threads_from"] = info.threads_from;
  json["isa"] = info.isa;
  json["l1_bytes"] = info.l1_bytes;
  json["l2_bytes"] = info.l2_bytes;
  json["l3_bytes"] = info.l3_bytes;
  json["memory_bytes"] = info.memory_bytes;
  return json;
}

// The devices that the options name, or every one there is; `absent`: the back ends that have none.
std::vector<BackendDevices> chosen(const Options& options, std::vector<BackendDevices>& absent) {
  if (!options.device.empty()) {
    const DeviceInfo info = open_device(options)->info();
    return {{info.backend, {info}, {}}};
  }
  std::vector<BackendDevices> here;
  for (BackendDevices& row :
       value_or_throw(list_devices({.threads = options.threads, .isa = options.isa}))) {
    (row.devices.empty() ? absent : here).push_back(std::move(row));
  }
  return here;
}

// Of the CPU only: a GPU's figures are its own counters'.
Result<MachineLimits> limits_here(const DeviceInfo& info, bool measure) {
  if (info.backend != "cpu") return unsupported("not of this device");
  if (!measure) return load_limits(info);
  MachineLimits limits = measure_limits(info);
  const Status saved = save_limits(limits);
  if (!saved.ok()) std::fprintf(stderr, "not cached: %s\n", saved.error().message.c_str());
  return limits;
}

// What CUDA devices are timed against; it loads with no device at hand.
void show_cudnn(bool as_json, Json& json) {
  const Result<std::string> version = reference::cudnn_version(data_folder());
  const std::string& text = version.ok() ? *version : version.error().message;
  json["cudnn"] = {{version.ok() ? "version" : "reason", text}};
  if (!as_json) std::printf("cudnn: %s%s\n", version.ok() ? "" : "none: ", text.c_str());
}

bool is_gpu(const DeviceInfo& info) { return info.backend == "cuda" || info.backend == "simt"; }

// Each answer is printed as it is found: the next one may take the GPU down.
bool probe(const Options& options, const DeviceInfo& info, Json& json) {
  json["answers"] = Json::array();
  if (info.backend == "simt" && !options.json) {
    std::printf("  times of the emulator, which say nothing about a GPU:\n");
  }
  return probe_gpu(options, [&](const Answer& answer) {
    Json row = {{"question", answer.question}, {"of", answer.of}};
    if (answer.unit.empty()) {
      row[answer.failed ? "error" : "text"] = answer.text;
    } else {
      row["value"] = answer.value;
      row["unit"] = answer.unit;
    }
    json["answers"].push_back(std::move(row));
    if (options.json) return;
    std::printf("  %s%s: %s: ", answer.failed ? "FAILED " : "", answer.question.c_str(),
                answer.of.c_str());
    if (answer.unit.empty()) {
      std::printf("%s\n", answer.text.c_str());
    } else {
      std::printf("%.4g %s\n", answer.value, answer.unit.c_str());
    }
    std::fflush(stdout);
  });
}

int devices(const Options& options, bool measure) {
  if (!options.filter.empty() && !(measure && !options.device.empty())) {
    throw BadInput("--filter: names what --measure measures of a GPU (--device cuda:0)");
  }
  bool fine = true;
  std::vector<BackendDevices> absent;
  Json json = {{"devices", Json::array()}, {"absent", Json::array()}};
  for (const BackendDevices& backend : chosen(options, absent)) {
    for (const DeviceInfo& info : backend.devices) {
      const Result<MachineLimits> limits = limits_here(info, measure);
      json["devices"].push_back(device_json(info));
      if (limits.ok()) json["devices"].back()["limits"] = to_json(*limits)["limits"];
      if (!options.json) print_info(info);
      if (measure && !options.device.empty() && is_gpu(info)) {
        fine = probe(options, info, json["devices"].back());
      }
      if (options.json) continue;
      if (limits.ok()) {
        print_limits(*limits);
      } else if (info.backend == "cpu") {
        std::printf("  limits        not measured yet: rnntune devices --measure\n");
      }
    }
  }
  for (const BackendDevices& backend : absent) {
    json["absent"].push_back({{"backend", backend.backend}, {"reason", backend.absent}});
    if (!options.json)
      std::printf("%s: none: %s\n", backend.backend.c_str(), backend.absent.c_str());
  }
  if (options.device.empty()) show_cudnn(options.json, json);
  if (options.json) std::printf("%s\n", dump(json).c_str());
  return fine ? kFine : kCheckFailed;
}

}  // namespace

extern const Command kDevices;
const Command kDevices{"devices", "What devices are here and, with --measure, what they can do",
                       [](CLI::App& app) -> Run {
                         auto options = std::make_shared<Options>();
                         auto measure = std::make_shared<bool>(false);
                         options->device.clear();  // every one
                         add_device_options(app, *options);
                         app.add_flag(
                             "--measure", *measure,
                             "of the CPU measure peak and bandwidth, and keep them; of a GPU "
                             "that --device names what barriers, launches and the like "
                             "cost, and what cuDNN serves");
                         app.add_option("--filter", options->filter,
                                        "of a GPU only the questions that this regex finds");
                         app.add_flag("--json", options->json, "results as JSON");
                         return [=] { return devices(*options, *measure); };
                       }};

}  // namespace rnntune::tuner
