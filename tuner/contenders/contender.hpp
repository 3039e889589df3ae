// SPDX-License-Identifier: Apache-2.0
// Something that computes the training step of a problem and has passed validation, so that it may
// be timed: a config of ours, or an opponent library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan.hpp"
#include "rnntune/rnn.hpp"
#include "tuner/contenders/validate.hpp"
#include "tuner/measure/measure.hpp"
#include "tuner/records/record.hpp"

namespace rnntune::tuner {

// What all contenders of a comparison share.
struct Setting {
  std::shared_ptr<Device> device;
  std::shared_ptr<const Case> which;
  std::shared_ptr<Clock> own_clock = nullptr;  // of the device; null: the machine's

  const Problem& problem() const { return which->problem; }
  Clock& clock() const { return own_clock ? *own_clock : steady_clock(); }
};

struct Contender {
  std::string name;                // "rnntune", a variant, a library
  std::string version;             // of a library
  std::string algorithm;           // the config, or what the library says it runs
  std::vector<std::string> notes;  // of a library: what else it tried
  Config config;                   // of ours; variant empty: a library
  Validation validation;
  PlanSizes sizes;
  int threads = 0;        // of the host that it runs on; 0: it runs on a GPU
  bool on_device = true;  // its work is the setting's device's, not the host's
  Step step;              // of the setting's clock; owns all it runs on
  // Of ours: runs the step once more, from poisoned outputs, and compares them.
  std::function<Status()> recheck;
};

// The plan of a config, having passed validation. Null when it failed; the record says how, and in
// any case what was found and what it cost.
std::unique_ptr<Plan> make_valid_plan(const Setting& setting, const Config& config, Record& record);

// The same, set up for timing.
std::optional<Contender> prepare(const Setting& setting, const Config& config, Record& record);

// The contenders of a name for --against: a variant in its fastest config, or the fastest of all
// versions of a library, for each number of threads that is worth a turn in the race, the fastest
// one first. Which one is the opponent is for the race to say (`fastest_of_name`): two threads lose
// to one in seconds in which a core is busy. Reasons for those that cannot take part go to `notes`;
// an unknown name, and a name none of whose versions can, is an error.
Result<std::vector<Contender>> find_contenders(const Setting& setting, const std::string& name,
                                               std::vector<std::string>& notes);

// The names of --against or, where none were asked for, the usual ones of the device. BadInput for
// names that can never be found, before any work is done.
std::vector<std::string> contender_names(const std::vector<std::string>& asked,
                                         const DeviceInfo& device);

}  // namespace rnntune::tuner
