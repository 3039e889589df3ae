// SPDX-License-Identifier: Apache-2.0
#include "reference/cudnn/sweep.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "reference/compare.hpp"
#include "reference/cudnn/run.hpp"
#include "reference/seconds_of.hpp"

namespace rnntune::reference::cudnn {
namespace {

constexpr int kPhaseSteps = 3;

std::string timing_note(const std::string& algorithm, double seconds, const Phases& phases) {
  char text[160];
  std::snprintf(text, sizeof text,
                ": %.1f us a step (on the device: forward %.1f, backward data %.1f, backward "
                "weights %.1f)",
                1e6 * seconds, phases.forward_us, phases.backward_data_us,
                phases.backward_weights_us);
  return algorithm + text;
}

// A run whose second step gave what it should: one that adds to what the first left is as wrong.
Result<std::unique_ptr<CudnnRun>> make_right_run(const SessionPtr& session, const Problem& problem,
                                                 const Inputs& inputs,
                                                 const Outputs<double>& expected,
                                                 const Algorithm& algorithm, bool& wrong) {
  auto run = CudnnRun::create(session, problem, inputs, {}, algorithm);
  if (!run.ok()) return run.error();
  for (int k = 0; k < 2; ++k) {
    if (Status status = (*run)->step(); !status.ok()) return status.error();
  }
  const auto out = (*run)->outputs();
  if (!out.ok()) return out.error();
  const TensorCheck worst = check_outputs(problem, *out, expected).front();
  if (worst.ok) return run;
  wrong = true;
  return Error{ErrorCode::internal, "wrong results: " + worst.tensor + ": " + worst.reason};
}

class CudnnOpponent final : public Opponent {
 public:
  explicit CudnnOpponent(SessionPtr session) : session_(std::move(session)) {}

  std::string name() const override { return "cudnn"; }
  bool on_device() const override { return true; }
  std::string version() const override { return version_of(session_->cudnn()); }
  std::string why_not(const Problem& problem) const override { return cudnn::why_not(problem); }

  Result<std::unique_ptr<OpponentRun>> prepare(const Problem& problem, const Inputs& inputs,
                                               const Outputs<double>& expected, int) override {
    if (std::string reason = why_not(problem); !reason.empty()) return unsupported(reason);
    std::unique_ptr<CudnnRun> best;
    double best_seconds = std::numeric_limits<double>::infinity();
    std::vector<std::string> notes;
    bool wrong = false;
    for (const Algorithm& algorithm : algorithms()) {
      auto run = make_right_run(session_, problem, inputs, expected, algorithm, wrong);
      const Result<double> seconds = run.ok() ? seconds_of(**run) : run.error();
      const Result<Phases> phases =
          seconds.ok() ? (*run)->time_phases(kPhaseSteps) : seconds.error();
      if (!phases.ok()) {
        notes.push_back(std::string(algorithm.name) + ": " + phases.error().message);
        continue;
      }
      notes.push_back(timing_note(algorithm.name, *seconds, *phases));
      if (!(*seconds < best_seconds)) continue;
      best_seconds = *seconds;
      best = std::move(*run);
    }
    if (best) return best->set_notes(notes), std::unique_ptr<OpponentRun>(std::move(best));
    std::string all = "no algorithm serves";
    for (const std::string& note : notes) all += "; " + note;
    // Refused is one thing; another result than the reference's is a fault of one of the two.
    return Error{wrong ? ErrorCode::internal : ErrorCode::unsupported, all};
  }

 private:
  const SessionPtr session_;
};

}  // namespace

std::string why_not(const Problem& p) {
  if (p.cell == Cell::lstm_peephole || p.cell == Cell::lstm_coupled) {
    return std::string("has no cell ") + to_string(p.cell);
  }
  if (std::any_of(p.groups.begin(), p.groups.end(), [](auto g) { return g != 1; })) {
    return "has no grouped weights (G)";
  }
  if (p.rank > 0) return "has no factorised weights (R)";
  if (p.heads != 1) return "has no block-diagonal recurrence (N)";
  if (p.projection == p.hidden) return "takes a projection as wide as the state (P = H) for none";
  const std::int64_t state = p.batch * std::max(p.hidden, p.output());
  for (const std::int64_t size : {p.time, p.input, p.layers, p.directions * p.output(), state}) {
    if (size > std::numeric_limits<int>::max()) return "takes no size beyond 31 bits";
  }
  return reference_why_not(p);
}

Result<std::shared_ptr<Opponent>> make_opponent(const Cudnn& cudnn,
                                                std::shared_ptr<gpu::GpuDevice> device) {
  Result<SessionPtr> session = Session::open(cudnn, std::move(device));
  if (!session.ok()) return session.error();
  return std::shared_ptr<Opponent>(std::make_shared<CudnnOpponent>(std::move(*session)));
}

}  // namespace rnntune::reference::cudnn
