// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs: how the calls on them order the work of a WorkQueue, by the rules of
// the CUDA driver.
//
// The null stream is an ordinary one that always exists and cannot be captured: a plan's streams do
// not wait for it, as those that the CUDA device makes with CU_STREAM_NON_BLOCKING.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "device/gpu.hpp"
#include "simt/work.hpp"

namespace rnntune::simt {

class Streams {
 public:
  explicit Streams(std::uint64_t seed);

  WorkQueue& queue() { return queue_; }

  Stream create_stream();
  void destroy_stream(Stream stream);  // its work is done before
  gpu::Event create_event();
  void destroy_event(gpu::Event event);

  // Behind what the stream holds; into its graph while it is captured.
  Status add(Stream stream, Task task);
  // A call failed that would have become part of a capture: the capture fails too.
  void spoil(Stream stream, const std::string& why);
  // What a call may not do during a capture, where this thread has begun one; it spoils that.
  Status not_in_capture(const std::string& what);
  // What it may not do on a stream that is captured.
  Status not_captured(Stream stream, const std::string& what);

  Status synchronize(Stream stream);
  Status record(gpu::Event event, Stream stream);
  Status wait(Stream stream, gpu::Event event);
  Result<double> elapsed_us(gpu::Event from, gpu::Event to);

  Status begin_capture(Stream stream);
  Result<gpu::Graph> end_capture(Stream stream);
  Status launch(gpu::Graph graph, Stream stream);
  void destroy_graph(gpu::Graph graph);

 private:
  struct Node : Task {
    std::vector<std::size_t> after;
  };
  struct StreamState;
  struct Capture {
    StreamState* origin = nullptr;
    std::thread::id thread;
    std::vector<Node> nodes;
    std::set<StreamState*> members;
    std::string broken;  // why it fails
  };
  struct StreamState {
    std::vector<WorkPtr> tail;  // what the next work waits for
    std::shared_ptr<Capture> capture;
    std::vector<std::size_t> captured_tail;
  };
  struct EventState {
    WorkPtr work;                      // that it stands for; null: never recorded
    std::shared_ptr<Capture> capture;  // it was recorded in, and there stands for these nodes
    std::vector<std::size_t> nodes;
  };
  struct GraphState {
    std::vector<Node> nodes;
    std::vector<WorkPtr> last;  // of its last launch: one graph does not overlap with itself
  };

  Result<StreamState*> find(Stream stream);
  Result<EventState*> find_event(gpu::Event event);
  void put(StreamState& stream, Task task);
  Error break_capture(Capture& capture, std::string why);
  void leave_capture(Capture& capture);

  WorkQueue queue_;
  std::map<Stream, std::unique_ptr<StreamState>> streams_;
  std::map<gpu::Event, std::unique_ptr<EventState>> events_;
  std::map<gpu::Graph, std::unique_ptr<GraphState>> graphs_;
};

}  // namespace rnntune::simt
