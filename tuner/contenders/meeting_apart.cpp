// SPDX-License-Identifier: Apache-2.0
// Both ends of a meeting apart: the process that asks for it, and `rnntune meet`, which holds it.
// Between them go lines of JSON: {"doing": text}, and at the end {"meeting": ...} or {"error":
// text}.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "database/codec.hpp"
#include "tuner/command.hpp"
#include "tuner/contenders/apart.hpp"
#include "tuner/contenders/meeting.hpp"
#include "tuner/interrupt.hpp"
#include "tuner/options.hpp"
#include "variants.hpp"

namespace rnntune::tuner {
namespace {

constexpr double kSilenceS = 300;  // preparing one opponent of a large problem takes a minute
constexpr const char* kTiming = "timing ";
constexpr const char* kPreparing = "preparing ";

Json to_json(const Contender& contender, const Timing& timing) {
  return {{"name", contender.name},
          {"version", contender.version},
          {"algorithm", contender.algorithm},
          {"notes", contender.notes},
          {"config", to_string(contender.config)},
          {"validation", encode(contender.validation)},
          {"sizes", {contender.sizes.packed, contender.sizes.workspace, contender.sizes.reserve}},
          {"threads", contender.threads},
          {"samples_us", timing.samples_us},
          {"cpu_us", timing.cpu_us},
          {"steps_per_sample", timing.steps_per_sample},
          {"cost_us", timing.cost_us}};
}

Json to_json(const Meeting& meeting) {
  Json json = {{"stop", static_cast<int>(meeting.comparison.stop)},
               {"contenders", Json::array()},
               {"absences", meeting.absences},
               {"absent", meeting.absent}};
  for (std::size_t i = 0; i < meeting.contenders.size(); ++i) {
    json["contenders"].push_back(to_json(meeting.contenders[i], meeting.comparison.timings[i]));
  }
  return json;
}

// Of this program's own other end: anything else than what it writes is a broken invariant, and
// throws.
Meeting meeting_from(const Json& json) {
  Meeting meeting;
  meeting.comparison.stop = static_cast<Stop>(json.at("stop").get<int>());
  json.at("absences").get_to(meeting.absences);
  json.at("absent").get_to(meeting.absent);
  for (const Json& row : json.at("contenders")) {
    Contender& contender = meeting.contenders.emplace_back();
    Timing& timing = meeting.comparison.timings.emplace_back();
    row.at("name").get_to(contender.name);
    row.at("version").get_to(contender.version);
    row.at("algorithm").get_to(contender.algorithm);
    row.at("notes").get_to(contender.notes);
    row.at("threads").get_to(contender.threads);
    if (const std::string config = row.at("config"); !config.empty()) {
      contender.config = value_or_throw(parse_config(config));
    }
    decode(row.at("validation"), contender.validation);
    contender.sizes = {row.at("sizes")[0], row.at("sizes")[1], row.at("sizes")[2]};
    row.at("samples_us").get_to(timing.samples_us);
    row.at("cpu_us").get_to(timing.cpu_us);
    row.at("steps_per_sample").get_to(timing.steps_per_sample);
    row.at("cost_us").get_to(timing.cost_us);
    timing.summary = summarize(timing.samples_us);
    timing.stop = meeting.comparison.stop;
    const std::vector<double>& ours = meeting.comparison.timings.front().samples_us;
    meeting.comparison.ratios.push_back(paired_ratio(ours, timing.samples_us));
  }
  return meeting;
}

void print_line(const Json& json) {
  std::printf("%s\n", dump(json).c_str());
  std::fflush(stdout);
}

std::vector<std::string> arguments_of(const Setting& setting, const MeetingRequest& request) {
  const DeviceInfo& device = setting.device->info();
  std::string against;
  for (const std::string& name : request.against) against += (against.empty() ? "" : ",") + name;
  std::vector<std::string> arguments{"rnntune",   "meet",
                                     "--problem", to_string(setting.problem()),
                                     "--config",  to_string(request.config),
                                     "--threads", std::to_string(device.threads),
                                     "--isa",     device.isa.front(),
                                     "--seed",    std::to_string(setting.which->seed),
                                     "--budget",  std::to_string(request.budget_s),
                                     "--samples", std::to_string(request.min_samples)};
  if (!against.empty()) arguments.insert(arguments.end(), {"--against", against});
  return arguments;
}

// What one process said before it ended.
struct Report {
  Ending ending;
  std::string doing;
  Json last;
};

Result<Report> ask(const Setting& setting, const MeetingRequest& request, const Doing& doing) {
  Report report;
  const double silence_s = kSilenceS + 4 * request.budget_s;
  Result<Ending> ending =
      run_apart(arguments_of(setting, request), silence_s, [&](const std::string& line) {
        Json json = Json::parse(line, nullptr, false);
        if (json.is_object() && json.contains("doing")) {
          doing(report.doing = json["doing"]);
        } else {
          report.last = std::move(json);
        }
      });
  if (!ending.ok()) return ending.error();
  report.ending = std::move(*ending);
  return report;
}

// The names to blame: the one that was being prepared, else every library that was being timed.
std::vector<std::string> suspects(const Setting& setting, const MeetingRequest& request,
                                  const std::string& doing) {
  std::vector<std::string> names;
  for (const std::string& name : request.against) {
    const bool library = find_variant(setting.device->info().backend, name) == nullptr;
    if (doing == kPreparing + name || (library && doing.starts_with(kTiming)))
      names.push_back(name);
  }
  return names;
}

struct MeetOptions : Options {
  std::string config;
  int samples = 10;
};

int hold(const MeetOptions& options) {
  end_with_parent();
  watch_interrupts();
  const auto device = open_device(options);
  CaseCache cases;
  const Setting setting{device, cases.get(load_problems(options).front().problem, options.seed)};
  const MeetingRequest request{value_or_throw(parse_config(options.config)), options.against,
                               options.budget_s, options.samples};
  const Result<Meeting> meeting = meet(setting, request, [](const std::string& doing) {
    print_line({{"doing", doing}});
  });
  if (interrupted()) return kInterrupted;
  print_line(meeting.ok() ? Json{{"meeting", to_json(*meeting)}}
                          : Json{{"error", meeting.error().message}});
  return kFine;
}

}  // namespace

Result<Meeting> meet_apart(const Setting& setting, const MeetingRequest& request,
                           const Doing& doing) {
  MeetingRequest asked = request;
  std::vector<std::pair<std::string, std::vector<std::string>>> crashes;
  for (;;) {
    const Result<Report> report = ask(setting, asked, doing);
    if (!report.ok()) return report.error();
    if (interrupted()) return Error{ErrorCode::internal, "interrupted"};
    if (report->ending.fine() && report->last.contains("meeting")) {
      Meeting meeting = meeting_from(report->last["meeting"]);
      for (const auto& [name, notes] : crashes) meeting.absent.push_back(name);
      meeting.absences.insert(meeting.absences.end(), crashes.begin(), crashes.end());
      return meeting;
    }
    if (report->ending.fine() && report->last.contains("error")) {
      return Error{ErrorCode::internal, report->last["error"].get<std::string>()};
    }
    const std::string how = "the process of the comparison " + report->ending.text() +
                            (report->doing.empty() ? "" : ", while " + report->doing);
    const std::vector<std::string> blamed = suspects(setting, asked, report->doing);
    if (blamed.empty()) return Error{ErrorCode::internal, how};
    for (const std::string& name : blamed) {
      crashes.emplace_back(name, std::vector{how});
      std::erase(asked.against, name);
    }
  }
}

extern const Command kMeet;
const Command kMeet{"meet", "Hold one comparison for another rnntune, in a process of its own",
                    [](CLI::App& app) -> Run {
                      auto options = std::make_shared<MeetOptions>();
                      add_device_options(app, *options);
                      add_problem_options(app, *options);
                      add_against_option(app, *options);
                      add_budget_option(app, *options);
                      add_seed_option(app, *options);
                      app.add_option("--config", options->config, "ours")->required();
                      app.add_option("--samples", options->samples, "fewest of each contender");
                      return [=] { return hold(*options); };
                    },
                    true};

}  // namespace rnntune::tuner
