// SPDX-License-Identifier: Apache-2.0
// The variant table: every fusion strategy the library has, one row each. A new variant is a source
// file that defines its row, and the row's name in variants.cpp; space, plans, tuner and tests find
// it there.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan.hpp"
#include "rnntune/config.hpp"
#include "rnntune/device.hpp"
#include "rnntune/problem.hpp"

namespace rnntune {

// One parameter of a variant and the values worth trying on this problem and device; never empty.
struct Parameter {
  std::string name;
  std::string help;
  std::vector<std::string> values;
};

// A named rule that a config must keep; returns why it does not, or an empty string.
struct Constraint {
  const char* name;
  std::string (*why_not)(const Problem&, const DeviceInfo&, const Config&);
};

struct Variant {
  const char* name;
  const char* backend;  // "cpu", or "cuda", whose emulation is "simt"
  const char* help;
  const char* kernel_hash;  // identifies the text of its kernels; entries of another text are stale
  // Why this variant cannot compute the problem on the device; empty when it can.
  std::string (*why_not)(const Problem&, const DeviceInfo&);
  std::vector<Parameter> (*parameters)(const Problem&, const DeviceInfo&);
  std::vector<Constraint> constraints;
  // A config that is always valid and a fair guess without tuning.
  Config (*built_in)(const Problem&, const DeviceInfo&);
  // Only called with a config that the space accepts.
  Result<std::unique_ptr<Plan>> (*make)(const Problem&, std::shared_ptr<Device>, const Config&);
  // Whether a config gives the same bits each time; null: all do. Two runs that agree are no proof.
  bool (*repeatable)(const Config&) = nullptr;
};

// Names are unique within a back end. What runs on a CUDA device runs on its emulation.
std::span<const Variant* const> variants();
bool runs_on(const Variant& variant, std::string_view device_backend);
const Variant* find_variant(std::string_view device_backend, std::string_view name);

// Layers, time, batch, input and hidden size of any LSTM in f32; empty when the problem is one.
std::string why_not_lstm(const Problem& problem);

}  // namespace rnntune
