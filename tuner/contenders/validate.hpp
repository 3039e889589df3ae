// SPDX-License-Identifier: Apache-2.0
// Whether a config computes what it should: every output and gradient against the float64
// reference, and nothing else written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "plan.hpp"
#include "reference/compare.hpp"
#include "reference/step.hpp"
#include "tuner/records/record.hpp"

namespace rnntune::tuner {

// A problem with seeded inputs and what a step must make of them.
struct Case {
  Problem problem;
  std::uint64_t seed = 1;
  reference::Inputs inputs;
  reference::Outputs<double> expected;
  std::string reference;  // "oracle", "blas64"
  // Gradients are added to what is there: one run starts each of them from a value of the size of
  // the gradient itself, and must give `accumulated`, which holds gradients only.
  std::map<std::string, float> gradient_starts;
  reference::Outputs<double> accumulated;
};

std::shared_ptr<const Case> make_case(const Problem& problem, std::uint64_t seed);

// A call that leaves out all it may: no initial states, no gradients of last states, and neither
// last states nor gradients of x and initial states wanted.
std::shared_ptr<const Case> make_bare_case(const Problem& problem, std::uint64_t seed);

// Keeps the cases of the last problem, since every config of it is judged by them.
class CaseCache {
 public:
  std::shared_ptr<const Case> get(const Problem& problem, std::uint64_t seed);

 private:
  std::shared_ptr<const Case> last_;
};

struct Verdict {
  Outcome outcome = Outcome::ok;
  std::string reason;
  bool repeatable = true;  // bitwise
  Validation validation;   // of the worst tensor
  bool ok() const { return outcome == Outcome::ok; }
};

// Runs the plan as a caller would, on poisoned outputs and scratch between guard bytes: twice from
// zero gradients, once onto a given value, and once in inference mode. `which.problem` may have
// fewer time steps and samples than the plan's.
Verdict validate(Plan& plan, std::shared_ptr<Device> device, const Case& which);

}  // namespace rnntune::tuner
