// SPDX-License-Identifier: Apache-2.0
// The plan of the `pointwise` variant: products of cuBLAS(Lt), all gate arithmetic of a time step
// in one kernel. The input product takes a chunk of time steps at once, the weight gradients all.
//
// Order of the arrays inside, for each side of its own: forward (gates, c), backward data and
// backward weights (gradients of the pre-activations).
//   tbh   [T*B, 4H] by rows: the time step and sample is a row
//   thb   [4H, T*B] by rows of the capacity's T*B, of which a call uses the first columns
// x, y, h, the gradients between layers and those of h are [T,B,W] in both. Where the sides differ,
// the kernel that has a value in a register writes it in the order that is read, or in both.
//
// Reserve: c, 4 bytes per unit, sample, time step and layer, y below the last layer, and 16 bytes
// of gates: activated (gates), or as the products left them, which saves forward's writing them
// back (preactivations), or none (recompute: backward does the forward products of a chunk again).
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/graphs.hpp"
#include "cuda/lstm_plan.hpp"

namespace rnntune::cuda {

enum class Keep { gates, preactivations, recompute };

struct PointwiseChoice {
  bool forward_thb = false, data_thb = false, weights_thb = false;
  std::int64_t chunk = 0;  // time steps of an input product; 0: all
  Keep keep = Keep::gates;
  bool wavefront = false;  // layers run at once, each a chunk behind the one below
  bool graph = false;
  bool atomic_bias = false;
  int rows = 8;    // of a block of a gate kernel, 32 threads each
  int vector = 1;  // floats that a thread takes at once, in a gate kernel that is tbh throughout
  int step_gemm = 0, sequence_gemm = 0;  // choices of GpuDevice::prepare

  static PointwiseChoice from(const Config& config);

  // The order of the gradients that backward writes: that of forward, the other one, or both.
  bool direct() const { return data_thb == forward_thb || weights_thb == forward_thb; }
  bool turned() const { return data_thb != forward_thb || weights_thb != forward_thb; }
  bool plain() const { return !forward_thb && !turned(); }
};

class PointwisePlan final : public LstmPlan {
 public:
  static Result<std::unique_ptr<Plan>> make(const Problem& problem,
                                            std::shared_ptr<gpu::GpuDevice> device,
                                            const PointwiseChoice& choice);

  Status forward(Mode mode, Extent extent, const Forward& args, const PlanBuffers& buffers,
                 Stream stream) override;
  Status backward_data(Extent extent, const BackwardData& args, const PlanBuffers& buffers,
                       Stream stream) override;
  Status backward_weights(Extent extent, const BackwardWeights& args, const PlanBuffers& buffers,
                          Stream stream) override;

 private:
  // Gates or their gradients, [rows, 4H]: of the whole sequence, or of the chunk at hand only.
  struct Gates {
    Matrix data;
    bool whole = true;
  };
  // A call in chunks of time steps.
  struct Chunked : Call {
    std::int64_t chunk = 1;

    std::int64_t count() const { return (extent.time + chunk - 1) / chunk; }
    std::int64_t first(std::int64_t s) const { return s * chunk; }
    std::int64_t steps(std::int64_t s) const { return std::min(chunk, extent.time - first(s)); }
  };
  // The part of the workspace that work on one layer at a time needs.
  struct Lane {
    Place gates;   // of a chunk, where no sequence of them is kept
    Place turned;  // of a chunk, where only backward data reads them
    Place c, c_0;  // [B,H]: the state of an inference; c_0 in thb
    Place dh, dc;
  };
  struct Kernels {
    KernelPtr forward_training, forward_inference, backward, sums, transpose;
  };
  enum class Order { upwards, downwards, independent };

  PointwisePlan(const Problem& problem, std::shared_ptr<gpu::GpuDevice> device,
                const PointwiseChoice& choice);
  void lay_out();
  Status build_kernels();
  Status create_streams();
  void rehearse(Queue& queue) override;

  Chunked chunked(Extent extent, const PlanBuffers& buffers, bool training) const;
  const Lane& lane_of(std::int64_t layer) const {
    return lanes_[static_cast<std::size_t>(layer) % lanes_.size()];
  }
  // Memory for `rows` rows of gates.
  Matrix gate_memory(float* data, bool thb, std::int64_t rows) const;
  Gates forward_gates(const Chunked& call, std::int64_t layer) const;
  Gates direct_gates(const Chunked& call, std::int64_t layer) const;
  Gates turned_gates(const Chunked& call, std::int64_t layer) const;
  Gates gradients_in(const Chunked& call, std::int64_t layer, bool thb) const;
  Matrix chunk_of(const Chunked& call, const Gates& gates, std::int64_t s) const;
  Matrix step_of(const Chunked& call, const Gates& gates, std::int64_t t) const;
  float* c_at(const Call& call, std::int64_t layer, std::int64_t t) const;
  const float* c_before(const Call& call, std::int64_t layer, std::int64_t t,
                        const float* c_0) const;

  // Runs a call, or queues it as the schedule says: chunk(queue, layer, s) for each of `count`
  // chunks of each layer.
  template <class QueueAll>
  Status run(Stream stream, const QueueAll& queue_all);
  template <class Chunk>
  Status queue_chunks(const Chunked& call, Order order, std::int64_t count, Stream stream,
                      const Chunk& chunk) const;
  template <class Chunk>
  void visit(Queue& queue, Order order, std::int64_t count, const Chunk& chunk) const;

  void forward_chunk(Queue& queue, const Chunked& call, const Forward& args, std::int64_t layer,
                     std::int64_t s) const;
  void forward_step(Queue& queue, const Chunked& call, const Forward& args, std::int64_t layer,
                    std::int64_t t) const;
  void forward_gate_kernel(Queue& queue, const Chunked& call, const Forward& args,
                           std::int64_t layer, std::int64_t t) const;
  void backward_chunk(Queue& queue, const Chunked& call, const BackwardData& args,
                      std::int64_t layer, std::int64_t s) const;
  void backward_step(Queue& queue, const Chunked& call, const BackwardData& args,
                     std::int64_t layer, std::int64_t t) const;
  void backward_gate_kernel(Queue& queue, const Chunked& call, const BackwardData& args,
                            std::int64_t layer, std::int64_t t) const;
  void recompute_chunk(Queue& queue, const Chunked& call, const BackwardData& args,
                       std::int64_t layer, std::int64_t s) const;
  void weights_layer(Queue& queue, const Chunked& call, const BackwardWeights& args,
                     std::int64_t layer) const;
  void bias_gradient(Queue& queue, const Chunked& call, const Matrix& dgates,
                     const LayerGradients& to) const;
  void turn(Queue& queue, const float* from, float* to, std::int64_t rows,
            std::int64_t columns) const;

  const PointwiseChoice choice_;
  Kernels kernels_;
  std::int64_t training_rows_ = 0, lane_rows_ = 0;  // of a chunk; of the gates of a lane
  // By layer. Reserve: gates, c. Workspace: gates that are recomputed; gradients in the other order
  // than forward's that last until backward_weights.
  std::vector<Place> gates_, c_, recomputed_, turned_;
  std::vector<Lane> lanes_;
  Handles handles_;
  std::optional<Graphs> graphs_;
  Graphs::Key key_;  // of the call at hand
};

}  // namespace rnntune::cuda
