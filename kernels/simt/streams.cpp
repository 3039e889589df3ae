// SPDX-License-Identifier: Apache-2.0
#include "simt/streams.hpp"

#include <algorithm>
#include <utility>

namespace rnntune::simt {
namespace {

// So much may wait; beyond it the oldest of it has had its time.
constexpr std::size_t kMostQueued = 4096;

template <class State>
void* insert(std::map<void*, std::unique_ptr<State>>& states) {
  auto state = std::make_unique<State>();
  void* const handle = state.get();
  states[handle] = std::move(state);
  return handle;
}

void add_to(std::vector<std::size_t>& nodes, const std::vector<std::size_t>& more) {
  nodes.insert(nodes.end(), more.begin(), more.end());
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

}  // namespace

Streams::Streams(std::uint64_t seed) : queue_(seed) {
  streams_[nullptr] = std::make_unique<StreamState>();
}

Stream Streams::create_stream() { return insert(streams_); }
gpu::Event Streams::create_event() { return insert(events_); }
void Streams::destroy_event(gpu::Event event) { events_.erase(event); }
void Streams::destroy_graph(gpu::Graph graph) { graphs_.erase(graph); }

void Streams::destroy_stream(Stream stream) {
  const Result<StreamState*> state = find(stream);
  if (!state.ok() || stream == nullptr) return;
  if ((*state)->capture) {
    Capture& capture = *(*state)->capture;
    break_capture(capture, "one of its streams was destroyed");
    capture.members.erase(*state);
    if (capture.origin == *state) leave_capture(capture);
  }
  for (const WorkPtr& work : (*state)->tail) queue_.run_until_done(*work);
  streams_.erase(stream);
}

Result<Streams::StreamState*> Streams::find(Stream stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return invalid_argument("stream: is none of this device");
  return found->second.get();
}

Result<Streams::EventState*> Streams::find_event(gpu::Event event) {
  const auto found = events_.find(event);
  if (found == events_.end()) return invalid_argument("event: is none of this device");
  return found->second.get();
}

void Streams::put(StreamState& stream, Task task) {
  stream.tail = {queue_.add(std::move(task), stream.tail)};
  if (queue_.size() > kMostQueued) queue_.run_down_to(kMostQueued / 2);
}

Status Streams::add(Stream stream, Task task) {
  const Result<StreamState*> state = find(stream);
  if (!state.ok()) return state.error();
  if (!(*state)->capture) {
    put(**state, std::move(task));
    return {};
  }
  Capture& capture = *(*state)->capture;
  if (!capture.broken.empty()) return break_capture(capture, "");
  capture.nodes.push_back({std::move(task), std::move((*state)->captured_tail)});
  (*state)->captured_tail = {capture.nodes.size() - 1};
  return {};
}

Status Streams::synchronize(Stream stream) {
  if (Status status = not_captured(stream, "synchronize"); !status.ok()) return status;
  const Result<StreamState*> state = find(stream);
  if (!state.ok()) return state.error();
  for (const WorkPtr& work : (*state)->tail) queue_.run_until_done(*work);
  (*state)->tail.clear();
  return queue_.take_fault();
}

// ---- events

Status Streams::record(gpu::Event event, Stream stream) {
  const Result<EventState*> state = find_event(event);
  if (!state.ok()) return state.error();
  const Result<StreamState*> on = find(stream);
  if (!on.ok()) return on.error();
  if ((*on)->capture) {
    if (!(*on)->capture->broken.empty()) return break_capture(*(*on)->capture, "");
    **state = {nullptr, (*on)->capture, (*on)->captured_tail};
    return {};
  }
  put(**on, {"event", nullptr});
  **state = {(*on)->tail.front(), nullptr, {}};
  return {};
}

// An event stands for what its last record did; without one there is nothing to wait for.
Status Streams::wait(Stream stream, gpu::Event event) {
  const Result<EventState*> state = find_event(event);
  if (!state.ok()) return state.error();
  const Result<StreamState*> on = find(stream);
  if (!on.ok()) return on.error();
  const std::shared_ptr<Capture>& from = (*state)->capture;
  const std::shared_ptr<Capture>& into = (*on)->capture;
  if (into && !into->broken.empty()) return break_capture(*into, "");
  if (!from) {
    if (into && (*state)->work) {
      return break_capture(*into, "wait for an event that was recorded outside of it");
    }
    if ((*state)->work) (*on)->tail.push_back((*state)->work);
    return {};
  }
  if (from->members.empty()) {
    const std::string what = "event: was recorded in a capture that has ended";
    return into ? break_capture(*into, what) : invalid_argument(what);
  }
  if (into && into != from) {
    break_capture(*from, "one of its events was waited for by another capture");
    return break_capture(*into, "wait for an event of another capture");
  }
  if (!into && stream == nullptr) {
    return break_capture(*from, "the null stream waits for one of its events");
  }
  if (!into) {
    (*on)->capture = from;
    from->members.insert(*on);
  }
  add_to((*on)->captured_tail, (*state)->nodes);
  return {};
}

Result<double> Streams::elapsed_us(gpu::Event from, gpu::Event to) {
  const WorkPtr* ends[2];
  const gpu::Event events[] = {from, to};
  for (int i = 0; i < 2; ++i) {
    const Result<EventState*> state = find_event(events[i]);
    if (!state.ok()) return state.error();
    const std::string name = i == 0 ? "elapsed_us: from" : "elapsed_us: to";
    ends[i] = &(*state)->work;
    if (!*ends[i]) return invalid_argument(name + ": was not recorded outside of a capture");
    if (!(*ends[i])->done) return invalid_argument(name + ": has not happened yet");
  }
  const std::chrono::duration<double, std::micro> time = (*ends[1])->ended - (*ends[0])->ended;
  return time.count();
}

// ---- captures and graphs

Error Streams::break_capture(Capture& capture, std::string why) {
  if (capture.broken.empty()) capture.broken = std::move(why);
  return {ErrorCode::invalid_argument, "capture failed: " + capture.broken};
}

void Streams::spoil(Stream stream, const std::string& why) {
  const Result<StreamState*> state = find(stream);
  if (state.ok() && (*state)->capture) break_capture(*(*state)->capture, why);
}

Status Streams::not_captured(Stream stream, const std::string& what) {
  const Result<StreamState*> state = find(stream);
  if (!state.ok()) return state.error();
  if (!(*state)->capture) return {};
  return break_capture(*(*state)->capture, what + " on a stream that is captured");
}

Status Streams::not_in_capture(const std::string& what) {
  for (const auto& [handle, state] : streams_) {
    if (state->capture && state->capture->thread == std::this_thread::get_id()) {
      return break_capture(*state->capture, what + " during a capture");
    }
  }
  return {};
}

void Streams::leave_capture(Capture& capture) {
  const std::set<StreamState*> members = std::exchange(capture.members, {});
  for (StreamState* member : members) {
    member->captured_tail.clear();
    member->capture.reset();  // the last of them ends it
  }
}

Status Streams::begin_capture(Stream stream) {
  const Result<StreamState*> state = find(stream);
  if (!state.ok()) return state.error();
  if (stream == nullptr) return invalid_argument("capture: expected a stream, got the null stream");
  if ((*state)->capture) return break_capture(*(*state)->capture, "it was begun twice");
  const auto capture = std::make_shared<Capture>();
  capture->origin = *state;
  capture->thread = std::this_thread::get_id();
  capture->members = {*state};
  (*state)->capture = capture;
  return {};
}

Result<gpu::Graph> Streams::end_capture(Stream stream) {
  const Result<StreamState*> state = find(stream);
  if (!state.ok()) return state.error();
  const std::shared_ptr<Capture> capture = (*state)->capture;
  if (!capture) return invalid_argument("capture: none was begun on this stream");
  if (capture->origin != *state) {
    return break_capture(*capture, "it was ended on another stream than it began on");
  }
  // All nodes that are not waited for by others must be what the origin would wait for next.
  std::vector<bool> joined(capture->nodes.size(), false);
  for (const std::size_t node : (*state)->captured_tail) joined[node] = true;
  for (const Node& node : capture->nodes) {
    for (const std::size_t before : node.after) joined[before] = true;
  }
  const auto loose = std::find(joined.begin(), joined.end(), false);
  if (loose != joined.end()) {
    const Node& node = capture->nodes[static_cast<std::size_t>(loose - joined.begin())];
    break_capture(*capture, "the stream that it began on does not wait for " + node.what +
                                " of another stream");
  }
  leave_capture(*capture);
  if (!capture->broken.empty()) return break_capture(*capture, "");
  gpu::Graph graph = insert(graphs_);
  graphs_[graph]->nodes = std::move(capture->nodes);
  return graph;
}

Status Streams::launch(gpu::Graph graph, Stream stream) {
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return invalid_argument("graph: is none of this device");
  if (Status status = not_captured(stream, "launch of a graph"); !status.ok()) return status;
  const Result<StreamState*> state = find(stream);
  if (!state.ok()) return state.error();
  GraphState& graphs = *found->second;
  std::vector<WorkPtr> start = (*state)->tail;
  start.insert(start.end(), graphs.last.begin(), graphs.last.end());
  std::vector<WorkPtr> works, after;
  std::vector<bool> followed(graphs.nodes.size(), false);
  for (const Node& node : graphs.nodes) {
    after.clear();
    for (const std::size_t before : node.after) {
      after.push_back(works[before]);
      followed[before] = true;
    }
    works.push_back(queue_.add(node, node.after.empty() ? start : after));
  }
  if (works.empty()) return {};
  graphs.last.clear();
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (!followed[i]) graphs.last.push_back(works[i]);
  }
  (*state)->tail = graphs.last;
  if (queue_.size() > kMostQueued) queue_.run_down_to(kMostQueued / 2);
  return {};
}

}  // namespace rnntune::simt
