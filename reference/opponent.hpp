// SPDX-License-Identifier: Apache-2.0
// An opponent: what a user would pick instead of rnntune, as second reference and as the other side
// of a ratio.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reference/step.hpp"
#include "rnntune/device.hpp"

namespace rnntune::reference {

// One problem prepared in an opponent: memory allocated, primitives created, inputs loaded.
class OpponentRun {
 public:
  virtual ~OpponentRun() = default;
  // A whole training step, synchronous: weight reorders, forward training, backward with weight
  // gradients (from zero).
  virtual Status step() = 0;
  // Of the last step, in rnntune's shapes and gate order.
  virtual Result<Outputs<float>> outputs() = 0;
  virtual std::string algorithm() const = 0;  // what the library says it runs
  // What else was tried: times of the slower ways, and why others were refused.
  virtual std::vector<std::string> notes() const { return {}; }
};

class Opponent {
 public:
  virtual ~Opponent() = default;
  virtual std::string name() const = 0;                           // "onednn"
  virtual bool on_device() const { return false; }                // else it runs on the host
  virtual std::string version() const = 0;                        // "3.13.1 (TBB)"
  virtual std::string why_not(const Problem& problem) const = 0;  // empty when it can
  // expected: what the inputs give. A library with several ways passes over those that differ;
  // `internal` where one did and none was right.
  virtual Result<std::unique_ptr<OpponentRun>> prepare(const Problem& problem, const Inputs& inputs,
                                                       const Outputs<double>& expected,
                                                       int threads) = 0;
};

// Where opponents run, and where libraries may lie beside the loader's path.
struct OpponentSite {
  std::shared_ptr<Device> device;
  std::string data_folder;  // of the user, for wheels with CUDA libraries; empty: nowhere
};

// An unknown name is an error that lists the known ones. Loads nothing.
Status check_opponent_name(std::string_view name);

// Every opponent of that name that loads here: "onednn" may give two (distribution and newest).
// Reasons for those that do not go to `absent`. An unknown name is an error.
Result<std::vector<std::shared_ptr<Opponent>>> find_opponents(std::string_view name,
                                                              const OpponentSite& site,
                                                              std::vector<std::string>& absent);

}  // namespace rnntune::reference
