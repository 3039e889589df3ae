// SPDX-License-Identifier: Apache-2.0
// A oneDNN plugin without oneDNN: the oracle stands in, and RNNTUNE_TEST_PLUGIN says what is wrong
// with it: "prepare abort", "step N abort", "step N exit", "step N segv", or "wrong".
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "reference/onednn/plugin.hpp"
#include "reference/oracle.hpp"

namespace {

using namespace rnntune;
using namespace rnntune::reference;

struct Fault {
  std::string where, how;
  int step = 0;

  static Fault asked() {
    Fault fault;
    const char* text = std::getenv("RNNTUNE_TEST_PLUGIN");
    std::istringstream words(text ? text : "");
    words >> fault.where;
    if (fault.where == "step") words >> fault.step;
    words >> fault.how;
    return fault;
  }

  void happen() const {
    std::fputs("a broken library\n", stderr);
    std::fflush(stderr);
    if (how == "exit") std::exit(0);
    if (how == "segv") std::raise(SIGSEGV);
    std::abort();
  }
};

std::vector<float> rounded(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

class OracleRun final : public OpponentRun {
 public:
  OracleRun(const Problem& problem, const Inputs& inputs) : problem_(problem), inputs_(inputs) {}

  Status step() override {
    static int steps = 0;
    const Fault fault = Fault::asked();
    if (++steps == fault.step) fault.happen();
    out_ = oracle_step(problem_, inputs_);
    if (fault.where == "wrong") out_.y.front() += 1;
    return {};
  }

  Result<Outputs<float>> outputs() override {
    Outputs<float> out{rounded(out_.y),
                       rounded(out_.h_n),
                       rounded(out_.c_n),
                       rounded(out_.dx),
                       rounded(out_.dh_0),
                       rounded(out_.dc_0),
                       {}};
    for (const auto& g : out_.gradients) {
      out.gradients.push_back({rounded(g.weight_ih), rounded(g.weight_hh), rounded(g.bias_ih),
                               rounded(g.bias_hh), rounded(g.weight_hr)});
    }
    return out;
  }

  std::string algorithm() const override { return "oracle"; }

 private:
  Problem problem_;
  Inputs inputs_;
  Outputs<double> out_;
};

std::unique_ptr<OpponentRun> prepare(const Problem& problem, const Inputs& inputs, int,
                                     std::string&) {
  if (const Fault fault = Fault::asked(); fault.where == "prepare") fault.happen();
  return std::make_unique<OracleRun>(problem, inputs);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) bool rnntune_onednn_plugin(OnednnPlugin& plugin,
                                                                             std::string&) {
  plugin = {"0.0 (broken)", prepare};
  return true;
}
