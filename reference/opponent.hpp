// SPDX-License-Identifier: Apache-2.0
// An opponent: what a user would pick instead of rnntune, as second reference and as the other side
// of a ratio.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reference/step.hpp"

namespace rnntune::reference {

// One problem prepared in an opponent: memory allocated, primitives created, inputs loaded.
class OpponentRun {
 public:
  virtual ~OpponentRun() = default;
  // A whole training step, synchronous: weight reorders, forward training, backward with weight
  // gradients (from zero).
  virtual void step() = 0;
  virtual Outputs<float> outputs() = 0;  // of the last step, in rnntune's shapes and gate order
  virtual std::string algorithm() const = 0;  // what the library says it runs
};

class Opponent {
 public:
  virtual ~Opponent() = default;
  virtual std::string name() const = 0;                           // "onednn"
  virtual std::string version() const = 0;                        // "3.13.1 (TBB)"
  virtual std::string why_not(const Problem& problem) const = 0;  // empty when it can
  virtual Result<std::unique_ptr<OpponentRun>> prepare(const Problem& problem, const Inputs& inputs,
                                                       int threads) = 0;
};

// Every opponent of that name that loads here: "onednn" may give two (distribution and newest).
// Reasons for those that do not go to `absent`. An unknown name is an error that lists the known
// ones.
Result<std::vector<std::shared_ptr<Opponent>>> find_opponents(std::string_view name,
                                                              std::vector<std::string>& absent);

}  // namespace rnntune::reference
