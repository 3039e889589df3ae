// SPDX-License-Identifier: Apache-2.0
#include "cuda/graphs.hpp"

#include <algorithm>

namespace rnntune::cuda {

Graphs::~Graphs() {
  for (const Entry& entry : entries_) device_->destroy_graph(entry.graph);
}

Result<gpu::Graph> Graphs::record(const std::function<Status(Stream)>& queue) {
  if (Status status = device_->begin_capture(recorder_); !status.ok()) return status.error();
  const Status queued = queue(recorder_);
  // Whatever came, so that the stream can be used again.
  Result<gpu::Graph> graph = device_->end_capture(recorder_);
  if (queued.ok()) return graph;
  if (graph.ok()) device_->destroy_graph(*graph);
  return queued.error();
}

Status Graphs::run(const Key& key, Stream stream, const std::function<Status(Stream)>& queue) {
  auto entry = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& known) { return known.key == key; });
  if (entry == entries_.end()) {
    const Result<gpu::Graph> graph = record(queue);
    if (!graph.ok()) return graph.error();
    if (entries_.size() == kMost) {
      const auto oldest =
          std::min_element(entries_.begin(), entries_.end(),
                           [](const Entry& a, const Entry& b) { return a.used < b.used; });
      device_->destroy_graph(oldest->graph);
      entries_.erase(oldest);
    }
    entry = entries_.insert(entries_.end(), {key, *graph, 0});
  }
  entry->used = ++uses_;
  return device_->launch(entry->graph, stream);
}

}  // namespace rnntune::cuda
