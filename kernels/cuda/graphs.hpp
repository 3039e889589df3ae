// SPDX-License-Identifier: Apache-2.0
// Calls as graphs: what a call queues is recorded the first time that it comes with these arguments
// and launched as a whole from then on. A graph costs one launch instead of one per kernel; it
// holds the addresses of its call, so that a caller who passes new ones each time pays for a
// recording each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "device/gpu.hpp"

namespace rnntune::cuda {

class Graphs {
 public:
  static constexpr std::size_t kMost = 32;  // the one not used for longest gives way

  // Everything that changes what a call queues: its kind, sizes and pointers.
  using Key = std::vector<std::uint64_t>;

  // `recorder` is a stream for nothing else.
  Graphs(std::shared_ptr<gpu::GpuDevice> device, Stream recorder)
      : device_(std::move(device)), recorder_(recorder) {}
  Graphs(const Graphs&) = delete;
  ~Graphs();

  // `queue` puts the call on the stream that it is given.
  Status run(const Key& key, Stream stream, const std::function<Status(Stream)>& queue);

  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Key key;
    gpu::Graph graph;
    std::uint64_t used;
  };

  Result<gpu::Graph> record(const std::function<Status(Stream)>& queue);

  const std::shared_ptr<gpu::GpuDevice> device_;
  const Stream recorder_;
  std::vector<Entry> entries_;
  std::uint64_t uses_ = 0;
};

}  // namespace rnntune::cuda
