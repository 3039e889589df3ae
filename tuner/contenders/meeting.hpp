// SPDX-License-Identifier: Apache-2.0
// A meeting: a config of ours and those that a user would pick instead, timed in turns.
//
// An opponent is somebody else's library, which may crash whoever is to blame. On a CPU, meetings
// with libraries are therefore held apart, in a process of their own with everyone in it: what
// crashes there costs this one comparison, and all still share one clock and one set of caches.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/contenders/contender.hpp"

namespace rnntune::tuner {

struct Meeting {
  std::vector<Contender> contenders;  // ours first, then the fastest of each name that came
  Comparison comparison;              // of these; ratios are over ours
  // By name of --against: why it, or some version of it, did not come.
  std::vector<std::pair<std::string, std::vector<std::string>>> absences;
  std::vector<std::string> absent;  // names of which none came

  // For people: "no onednn: why".
  std::vector<std::string> news() const;
};

struct MeetingRequest {
  Config config;
  std::vector<std::string> against;
  double budget_s = 1;  // of the timing, all contenders together
  int min_samples = 10;
};

// What it is doing, for the progress line.
using Doing = std::function<void(const std::string&)>;

// Here, in this process. The error is that of our own config, or of the measurement.
Result<Meeting> meet(const Setting& setting, const MeetingRequest& request, const Doing& doing);

// In a process of its own; contenders come back without steps. A library that takes the process
// down is named in `absences`, with what became of the process, and the others meet without it.
Result<Meeting> meet_apart(const Setting& setting, const MeetingRequest& request,
                           const Doing& doing);

// Whether this name of --against must be kept apart: a library, on a CPU.
bool must_meet_apart(const DeviceInfo& device, const std::string& name);

// Apart where one of them must be, else here.
Result<Meeting> hold_meeting(const Setting& setting, const MeetingRequest& request,
                             const Doing& doing);

}  // namespace rnntune::tuner
