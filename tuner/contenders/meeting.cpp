// SPDX-License-Identifier: Apache-2.0
#include "tuner/contenders/meeting.hpp"

#include <algorithm>

#include "tuner/contenders/finalists.hpp"
#include "tuner/interrupt.hpp"
#include "variants.hpp"

namespace rnntune::tuner {
namespace {

void add_contenders(const Setting& setting, const std::string& name, Meeting& meeting) {
  std::vector<std::string> why;
  Result<std::vector<Contender>> found = find_contenders(setting, name, why);
  if (!found.ok()) {
    meeting.absent.push_back(name);
    meeting.absences.emplace_back(name, std::vector{found.error().message});
    return;
  }
  for (Contender& contender : *found) {
    if (!contender.notes.empty()) meeting.absences.emplace_back(name, contender.notes);
    meeting.contenders.push_back(std::move(contender));
  }
}

// Of each name only the fastest stays: it met under every number of threads.
void keep_fastest(Meeting& meeting) {
  Meeting kept;
  kept.comparison.stop = meeting.comparison.stop;
  for (std::size_t i = 0; i < meeting.contenders.size(); ++i) {
    if (!fastest_of_name(meeting.contenders, meeting.comparison.timings, i)) continue;
    kept.contenders.push_back(std::move(meeting.contenders[i]));
    kept.comparison.timings.push_back(std::move(meeting.comparison.timings[i]));
    kept.comparison.ratios.push_back(meeting.comparison.ratios[i]);
  }
  meeting.contenders = std::move(kept.contenders);
  meeting.comparison = std::move(kept.comparison);
}

}  // namespace

std::vector<std::string> Meeting::news() const {
  std::vector<std::string> lines;
  for (const auto& [name, notes] : absences) {
    const bool none = std::find(absent.begin(), absent.end(), name) != absent.end();
    for (const std::string& note : notes) {
      lines.push_back((none ? "no " : "") + name + ": " + note);
    }
  }
  return lines;
}

Result<Meeting> meet(const Setting& setting, const MeetingRequest& request, const Doing& doing) {
  const Error stopped{ErrorCode::internal, "interrupted"};
  Meeting meeting;
  Record record;
  doing("validating " + to_string(request.config));
  std::optional<Contender> ours = prepare(setting, request.config, record);
  if (!ours) {
    return Error{ErrorCode::internal,
                 std::string(to_string(record.outcome)) + ": " + record.reason};
  }
  ours->name = "rnntune";
  meeting.contenders.push_back(std::move(*ours));
  for (const std::string& name : request.against) {
    if (interrupted()) return stopped;
    doing("preparing " + name);
    add_contenders(setting, name, meeting);
  }
  if (interrupted()) return stopped;
  std::string names;
  std::vector<Step> steps;
  for (const Contender& contender : meeting.contenders) {
    steps.push_back(contender.step);
    if (names.find(contender.name) == names.npos)
      names += (names.empty() ? "" : ", ") + contender.name;
  }
  doing("timing " + names);
  MeasurePolicy policy;
  policy.budget_us = request.budget_s * 1e6 / static_cast<double>(steps.size());
  policy.min_samples = request.min_samples;
  Result<Comparison> comparison = measure_interleaved(steps, policy, setting.clock());
  if (!comparison.ok()) return comparison.error();
  meeting.comparison = std::move(*comparison);
  keep_fastest(meeting);
  return meeting;
}

bool must_meet_apart(const DeviceInfo& device, const std::string& name) {
  return device.backend == "cpu" && find_variant(device.backend, name) == nullptr;
}

Result<Meeting> hold_meeting(const Setting& setting, const MeetingRequest& request,
                             const Doing& doing) {
  const bool apart = std::any_of(
      request.against.begin(), request.against.end(),
      [&](const std::string& name) { return must_meet_apart(setting.device->info(), name); });
  return apart ? meet_apart(setting, request, doing) : meet(setting, request, doing);
}

}  // namespace rnntune::tuner
