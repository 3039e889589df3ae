// SPDX-License-Identifier: Apache-2.0
// What the two variants on a BLAS, `unfused` and `pointwise`, share: what they can compute, their
// common parameters, how a team cuts a time step, and the base of their plans.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cpu/elementwise.hpp"
#include "cpu/matrix.hpp"
#include "cpu/team.hpp"
#include "plan_memory.hpp"
#include "variants.hpp"

namespace rnntune::cpu {

// Layers, time, batch, input and hidden size of any LSTM in f32; empty when it can.
std::string why_not_blas(const Problem& problem, const DeviceInfo& device);

// threads (1, powers of two, the limit), blas and products: a team that cuts each product by
// itself, or the threads of the library.
std::vector<Parameter> blas_parameters(const DeviceInfo& device);
std::vector<Constraint> blas_constraints();
// The values that are a fair guess without tuning, in the order of blas_parameters.
std::vector<std::pair<std::string, std::string>> blas_guess(const Problem& problem,
                                                            const DeviceInfo& device);

// Which library computes which products. "mixed" gives each the products that it is faster at where
// both were measured on an EPYC 9004: activations times weights on OpenBLAS forward and for weight
// gradients, gradients times weights on oneDNN (H 650, B 20: 69, 88 and 55 GFLOP/s a core against
// 39, 46 and 36 of the other).
struct BlasChoice {
  const Blas* forward = nullptr;
  const Blas* data = nullptr;
  const Blas* weights = nullptr;
};
BlasChoice choose_blas(std::string_view value);

// How the threads of a team share a time step: hidden units, with a barrier between steps, or
// samples, with none, since no sample needs another. Where the threads are the library's, one
// thread walks the step alone: it calls the products whole, and opens a region for what `each` is
// given.
struct TeamShare {
  Member member;
  bool by_batch = false;
  int region = 0;  // threads of the library; 0: a team

  // work(part) for this thread's part of [samples, width], see of.
  template <class Work>
  void each(std::int64_t samples, std::int64_t width, Work&& work) const {
    if (region == 0) return work(of(samples, width));
    run_team(region, [&](const Member& one) { work(TeamShare{one}.of(samples, width)); });
  }

  // This thread's part of [samples, width], for any width a multiple of which is cut by units.
  Block of(std::int64_t samples, std::int64_t width) const {
    if (by_batch) return {split(samples, member.count, member.id), {0, width}};
    return {{0, samples}, split(width, member.count, member.id, kLine)};
  }
  // The same threads with units to share, whatever the time steps are shared by.
  TeamShare by_units() const { return {member, false, region}; }
  // Between two operations of a time step of which the second reads what other units wrote.
  void wait_for_units() const {
    if (!by_batch) member.wait();
  }

  static constexpr std::int64_t kLine = 16;  // floats of a cache line
};

struct TeamConfig {
  int threads = 1;
  bool by_batch = false;
  bool library_threads = false;
  BlasChoice blas;

  static TeamConfig from(const Config& config);

  // body(share) on every thread of the team, or on one where the threads are the library's.
  template <class Body>
  void run(Body&& body) const {
    if (library_threads) {
      const ThreadLimit limit(threads);
      Barrier alone;
      return body(TeamShare{{0, 1, &alone}, false, threads});
    }
    run_team(threads, [&](const Member& member) { body(TeamShare{member, by_batch}); });
  }
};

// to[block] = from[block], both by rows; zeros where from is null.
void copy_block(const float* from, float* to, std::int64_t ld, Block block);

// The states [B,H] of one layer of [L,B,H]; null where the caller has none.
template <class T>
T* layer_of(T* states, std::int64_t layer, std::int64_t size) {
  return states == nullptr ? nullptr : states + layer * size;
}

// The weights as they come from the caller, and what passes from layer to layer.
class BlasPlan : public Plan {
 public:
  PlanSizes sizes() const final { return memory_.sizes(); }
  Status pack(const LayerWeights* layers, const PlanBuffers& buffers, Stream stream) final;

 protected:
  struct Layer {
    std::int64_t input = 0;
    Place weight_ih, weight_hh, bias;  // packed: [4H,input], [4H,H], the sum of the biases [4H]
    Place gates, c;                    // placed by the variant
    Place y;                           // reserve: [T,B,H]; of the last layer empty
  };

  BlasPlan(const Problem& problem, const Elementwise& kernels, const TeamConfig& team);

  // The input [T*B, input] and the output [T,B,H] of layer l, where the call has x and y.
  ConstMatrix input_of(std::int64_t l, const float* x, const float* y, const PlanBuffers& buffers,
                       bool training) const;
  const float* output_of(std::int64_t l, const float* y, const PlanBuffers& buffers,
                         bool training) const;

  Problem problem_;
  Elementwise kernels_;
  TeamConfig team_;
  PlanMemory memory_;
  std::vector<Layer> layers_;
  // Workspace: y (inference) or dx between layers, [T,B,H], used in turn; db [4H].
  std::array<Place, 2> between_;
  Place db_;
};

}  // namespace rnntune::cpu
