// SPDX-License-Identifier: Apache-2.0
// The library's entry: a recurrent network of one problem on one device, computed by the config
// that the tuning database has for it. Everything is decided in create(); the calls after it only
// run.
//
// A training step is pack, forward(training), backward_data, backward_weights, in this order.
// Shapes are row-major:
//   x [T,B,I]   y [T,B,D*O]   h_0, h_n, dh_0, dh_n [L*D,B,O]   c_0, c_n, dc_0, dc_n [L*D,B,H] (O =
//   P, or H) weight_ih [gates*H,I or D*O]   weight_hh [gates*H,O]   bias_ih, bias_hh [gates*H]
//   weight_hr [P,H]
// Gates are ordered i f g o (r z n for GRU), as in PyTorch and cuDNN. LSTM:
//   i,f,o = sigma(W x + b_ih + R h' + b_hh)   g = tanh(same form)   c = f c' + i g   h = o tanh(c)
//
// All memory is the caller's and on the device; every pointer must be aligned to its element. What
// is not the device's is refused before anything is queued, but memory that the last call of the
// same kind had in the same place is taken to be still there. An Rnn may be used by one thread at a
// time, different ones concurrently. On a device with streams every call is asynchronous on its
// stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rnntune/config.hpp"
#include "rnntune/device.hpp"
#include "rnntune/export.h"
#include "rnntune/problem.hpp"
#include "rnntune/result.hpp"

namespace rnntune {

// Weights of one layer and direction; index layer * D + direction. Null where the problem has no
// such tensor.
struct LayerWeights {
  const float* weight_ih = nullptr;
  const float* weight_hh = nullptr;
  const float* bias_ih = nullptr;
  const float* bias_hh = nullptr;
  const float* weight_hr = nullptr;
};

struct LayerGradients {
  float* weight_ih = nullptr;
  float* weight_hh = nullptr;
  float* bias_ih = nullptr;
  float* bias_hh = nullptr;
  float* weight_hr = nullptr;
};

struct Memory {
  void* data = nullptr;
  std::size_t bytes = 0;
};

// What a call works in. packed: written by pack. reserve: written by a training forward, consumed
// by backward (64-byte aligned, as workspace and packed must be). workspace: scratch; keep it
// untouched from backward_data to backward_weights, in between and elsewhere it may serve other
// plans.
struct Buffers {
  Memory packed;
  Memory workspace;
  Memory reserve;  // not needed for inference
};

enum class Mode { training, inference };

struct Forward {
  std::int64_t time = 0;  // time steps and samples of this call; 0: the problem's T, B
  std::int64_t batch = 0;
  const float* x = nullptr;
  const float* h_0 = nullptr;  // null: zeros
  const float* c_0 = nullptr;
  float* y = nullptr;
  float* h_n = nullptr;  // null: not wanted
  float* c_n = nullptr;
};

struct BackwardData {
  const float* x = nullptr;  // x, h_0, c_0, y as forward had them
  const float* h_0 = nullptr;
  const float* c_0 = nullptr;
  const float* y = nullptr;
  const float* dy = nullptr;
  const float* dh_n = nullptr;  // null: zeros
  const float* dc_n = nullptr;
  float* dx = nullptr;  // null: not wanted
  float* dh_0 = nullptr;
  float* dc_0 = nullptr;
};

struct BackwardWeights {
  const float* x = nullptr;  // as forward had them
  const float* h_0 = nullptr;
  const float* y = nullptr;
  const LayerGradients* gradients = nullptr;  // L * D of them; gradients are added to what is there
};

// Which rung of the lookup answered, and why not a better one.
enum class Rung { given, exact, stale, nearest, architecture, built_in };
RNNTUNE_EXPORT const char* to_string(
    Rung rung);  // "given", "exact", "stale", "nearest", "architecture", "default"

struct RNNTUNE_EXPORT Explanation {
  Rung rung = Rung::built_in;
  Config config;
  std::string problem;             // of the entry used; empty for given and built_in
  double distance = 0;             // nearest: weighted |log2 ratio| of the shapes
  std::vector<std::string> notes;  // entries passed over, files refused, each with its reason

  std::string text() const;  // one line: rung, config, entry and distance, notes
};

struct RnnOptions {
  std::vector<std::string>
      databases;  // files asked in order; a missing or damaged one is noted and passed over
  bool default_databases =
      true;       // then the user's own, then the databases shipped with the library
  Config config;  // a config to use instead of a lookup (variant empty: look up)
  std::function<void(const std::string&)> log;  // gets each warning once
};

class RNNTUNE_EXPORT Rnn {
 public:
  static Result<Rnn> create(const Problem& problem, std::shared_ptr<Device> device,
                            const RnnOptions& options = {});
  Rnn(Rnn&&) noexcept;
  Rnn& operator=(Rnn&&) noexcept;
  ~Rnn();

  const Problem& problem() const;
  const Config& config() const;
  const Explanation& explain() const;

  std::size_t packed_bytes() const;
  std::size_t workspace_bytes() const;
  std::size_t reserve_bytes() const;

  // layers: L * D entries. Call whenever weights changed: in training, each step.
  Status pack(const LayerWeights* layers, Memory packed, Stream stream = nullptr);
  Status forward(Mode mode, const Forward& args, const Buffers& buffers, Stream stream = nullptr);
  // Consumes the reserve: one backward_data per training forward.
  Status backward_data(const BackwardData& args, const Buffers& buffers, Stream stream = nullptr);
  Status backward_weights(const BackwardWeights& args, const Buffers& buffers,
                          Stream stream = nullptr);

 private:
  struct State;
  explicit Rnn(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

RNNTUNE_EXPORT const char* version();  // "0.1.0"

}  // namespace rnntune
