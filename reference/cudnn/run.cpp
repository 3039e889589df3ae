// SPDX-License-Identifier: Apache-2.0
#include "reference/cudnn/run.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "reference/compare.hpp"
#include "reference/cudnn/values.hpp"

namespace rnntune::reference::cudnn {
namespace {

std::size_t count_of(const std::vector<int>& lengths) {
  std::size_t rows = 0;
  for (const int length : lengths) rows += std::size_t(length);
  return rows;
}

// Events that live as long as a measurement.
class Events {
 public:
  explicit Events(const Session& session) : session_(session) {}
  Events(const Events&) = delete;
  ~Events() {
    for (gpu::Event event : events_) session_.device().destroy_event(event);
  }

  Status record() {
    Result<gpu::Event> event = session_.device().create_event();
    if (!event.ok()) return event.error();
    events_.push_back(*event);
    return session_.device().record(*event, session_.stream());
  }
  // From the event of that number to the next one; both must have happened.
  Status elapsed(std::size_t number, double& fastest_us) const {
    const Result<double> us = session_.device().elapsed_us(events_[number], events_[number + 1]);
    if (!us.ok()) return us.error();
    fastest_us = std::min(fastest_us, *us);
    return {};
  }

 private:
  const Session& session_;
  std::vector<gpu::Event> events_;
};

}  // namespace

Result<std::unique_ptr<CudnnRun>> CudnnRun::create(SessionPtr session, const Problem& problem,
                                                   const Inputs& inputs,
                                                   const std::vector<int>& lengths,
                                                   const Algorithm& algorithm) {
  const std::vector<int> all(std::size_t(problem.batch), int(problem.time));
  std::unique_ptr<CudnnRun> run(
      new CudnnRun(session, problem, lengths.empty() ? all : lengths, algorithm));
  auto network = Network::create(session, problem, run->lengths_, algorithm);
  if (!network.ok()) return network.error();
  run->network_ = std::move(*network);
  Status status = run->load_inputs(inputs);
  if (status.ok()) status = run->make_outputs();
  if (status.ok()) status = run->load_weights(inputs);
  if (status.ok()) status = run->make_scratch();
  if (!status.ok()) return status.error();
  const Memory& m = run->memory_;
  run->tensors_ = {m.x.data(),    m.h_0.data(),       m.c_0.data(),       m.dy.data(),
                   m.dh_n.data(), m.dc_n.data(),      m.weights.data(),   m.y.data(),
                   m.h_n.data(),  m.c_n.data(),       m.dx.data(),        m.dh_0.data(),
                   m.dc_0.data(), m.gradients.data(), m.workspace.data(), m.reserve.data()};
  return run;
}

Status CudnnRun::load_inputs(const Inputs& in) {
  const struct {
    std::vector<float> values;
    Buffer& buffer;
  } rows[] = {{to_rows(in.x), memory_.x}, {to_rows(in.dy), memory_.dy}, {in.h_0, memory_.h_0},
              {in.c_0, memory_.c_0},      {in.dh_n, memory_.dh_n},      {in.dc_n, memory_.dc_n}};
  for (const auto& row : rows) {
    if (Status status = load(row.values, row.buffer); !status.ok()) return status;
  }
  return {};
}

Status CudnnRun::make_outputs() {
  const std::size_t value = value_bytes(problem_.dtype);
  const TensorCounts counts = tensor_counts(problem_);
  const std::size_t h = std::size_t(counts.h) * value, c = std::size_t(counts.c) * value;
  const std::size_t y = memory_.dy.bytes(), x = memory_.x.bytes();
  const struct {
    std::size_t bytes;
    Buffer& buffer;
  } rows[] = {{y, memory_.y},  {h, memory_.h_n},  {c, memory_.c_n},
              {x, memory_.dx}, {h, memory_.dh_0}, {c, memory_.dc_0}};
  for (const auto& row : rows) {
    Status status = make(row.bytes, row.buffer);
    if (status.ok()) {
      status =
          session_->device().fill(row.buffer.data(), kPoisonByte, row.bytes, session_->stream());
    }
    if (!status.ok()) return status;
  }
  return {};
}

// As one image of the weight space. What belongs to no parameter in it is zero.
Status CudnnRun::load_weights(const Inputs& in) {
  const std::size_t bytes = network_->weight_bytes();
  if (Status status = make(bytes, memory_.weights); !status.ok()) return status;
  auto places =
      find_places(*session_, problem_, network_->descriptor(), memory_.weights.data(), bytes);
  if (!places.ok()) return places.error();
  places_ = std::move(*places);
  std::vector<std::byte> image(bytes);
  for (const Place& place : places_) {
    const std::vector<float>& tensor = in.weights[place.layer].*place.tensor;
    const auto part = encode(std::span(tensor).subspan(place.first, place.count), problem_.dtype);
    std::memcpy(&image[place.offset], part.data(), part.size());
  }
  return load(image, memory_.weights);
}

Status CudnnRun::make_scratch() {
  Status status = make(network_->weight_bytes(), memory_.gradients);
  if (status.ok()) status = make(network_->workspace_bytes(), memory_.workspace);
  if (status.ok()) status = make(network_->reserve_bytes(), memory_.reserve);
  return status;
}

Status CudnnRun::make(std::size_t bytes, Buffer& buffer) {
  Result<Buffer> made = Buffer::allocate(session_, bytes);
  if (!made.ok()) return made.error();
  buffer = std::move(*made);
  return {};
}

Status CudnnRun::load(const std::vector<std::byte>& bytes, Buffer& buffer) {
  if (bytes.empty()) return {};
  if (buffer.data() == nullptr) {
    if (Status status = make(bytes.size(), buffer); !status.ok()) return status;
  }
  Status status =
      session_->device().to_device(buffer.data(), bytes.data(), bytes.size(), session_->stream());
  return status.ok() ? session_->device().synchronize(session_->stream()) : status;
}

Status CudnnRun::load(const std::vector<float>& values, Buffer& buffer) {
  return load(encode(values, problem_.dtype), buffer);
}

Status CudnnRun::fetch(const Buffer& buffer, std::vector<std::byte>& bytes) const {
  bytes.resize(buffer.bytes());
  if (bytes.empty()) return {};
  Status status =
      session_->device().to_host(bytes.data(), buffer.data(), bytes.size(), session_->stream());
  return status.ok() ? session_->device().synchronize(session_->stream()) : status;
}

Status CudnnRun::fetch(const Buffer& buffer, std::vector<float>& values) const {
  std::vector<std::byte> bytes;
  if (Status status = fetch(buffer, bytes); !status.ok()) return status;
  values = decode(bytes, problem_.dtype);
  return {};
}

Status CudnnRun::step() {
  Status status = forward();
  if (status.ok()) status = backward_data();
  if (status.ok()) status = backward_weights();
  return status.ok() ? session_->device().synchronize(session_->stream()) : status;
}

Status CudnnRun::expect(Reserve state, const char* call) const {
  if (reserve_ == state) return {};
  return invalid_argument(std::string(call) +
                          ": expected the reserve that the call before it in a step leaves");
}

Status CudnnRun::forward() {
  reserve_ = Reserve::stale;
  Status status = network_->forward(tensors_);
  if (status.ok()) reserve_ = Reserve::of_forward;
  return status;
}

Status CudnnRun::backward_data() {
  if (Status status = expect(Reserve::of_forward, "backward_data"); !status.ok()) return status;
  reserve_ = Reserve::stale;
  Status status = network_->backward_data(tensors_);
  if (status.ok()) reserve_ = Reserve::of_backward_data;
  return status;
}

Status CudnnRun::backward_weights() {
  if (Status status = expect(Reserve::of_backward_data, "backward_weights"); !status.ok()) {
    return status;
  }
  reserve_ = Reserve::stale;
  const Buffer& gradients = memory_.gradients;
  Status status =
      session_->device().fill(gradients.data(), 0, gradients.bytes(), session_->stream());
  return status.ok() ? network_->backward_weights(tensors_) : status;
}

Result<Phases> CudnnRun::time_phases(int steps) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  constexpr std::array kParts = {&CudnnRun::forward, &CudnnRun::backward_data,
                                 &CudnnRun::backward_weights};
  std::array<double, kParts.size()> fastest_us{kNever, kNever, kNever};
  for (int step = 0; step < steps; ++step) {
    Events events(*session_);
    Status status = events.record();
    for (const auto part : kParts) {
      if (status.ok()) status = (this->*part)();
      if (status.ok()) status = events.record();
    }
    if (status.ok()) status = session_->device().synchronize(session_->stream());
    for (std::size_t part = 0; status.ok() && part < kParts.size(); ++part) {
      status = events.elapsed(part, fastest_us[part]);
    }
    if (!status.ok()) return status.error();
  }
  return Phases{fastest_us[0], fastest_us[1], fastest_us[2]};
}

Result<Outputs<float>> CudnnRun::outputs() {
  Outputs<float> out;
  std::vector<float> y, dx;
  const struct {
    const Buffer& buffer;
    std::vector<float>& values;
  } rows[] = {{memory_.y, y},         {memory_.dx, dx},         {memory_.h_n, out.h_n},
              {memory_.c_n, out.c_n}, {memory_.dh_0, out.dh_0}, {memory_.dc_0, out.dc_0}};
  for (const auto& row : rows) {
    if (Status status = fetch(row.buffer, row.values); !status.ok()) return status.error();
  }
  out.y = from_rows(y, problem_.directions * problem_.output());
  out.dx = from_rows(dx, problem_.input);
  if (Status status = fetch_gradients(out.gradients); !status.ok()) return status.error();
  return out;
}

Status CudnnRun::fetch_gradients(std::vector<LayerTensors<float>>& gradients) const {
  std::vector<std::byte> image;
  if (Status status = fetch(memory_.gradients, image); !status.ok()) return status;
  gradients.resize(std::size_t(problem_.layers * problem_.directions));
  for (const Place& place : places_) {
    std::vector<float>& tensor = gradients[place.layer].*place.tensor;
    const std::size_t bytes = place.count * value_bytes(problem_.dtype);
    const auto part = decode(std::span(image).subspan(place.offset, bytes), problem_.dtype);
    tensor.resize(std::max(tensor.size(), place.first + place.count));
    std::copy(part.begin(), part.end(), tensor.begin() + std::ptrdiff_t(place.first));
  }
  return {};
}

std::vector<float> CudnnRun::to_rows(const std::vector<float>& values) const {
  const auto B = lengths_.size();
  const std::size_t T = std::size_t(problem_.time), width = values.size() / (T * B);
  std::vector<float> rows((packed_ ? count_of(lengths_) : T * B) * width, 0.0f);
  auto to = rows.begin();
  for (std::size_t t = 0; t < T; ++t) {
    for (std::size_t b = 0; b < B; ++b) {
      const bool present = t < std::size_t(lengths_[b]);
      if (present) std::copy_n(&values[(t * B + b) * width], width, to);
      if (present || !packed_) to += std::ptrdiff_t(width);
    }
  }
  return rows;
}

std::vector<float> CudnnRun::from_rows(const std::vector<float>& rows, std::int64_t columns) const {
  const auto B = lengths_.size();
  const std::size_t T = std::size_t(problem_.time), width = std::size_t(columns);
  std::vector<float> values(T * B * width, 0.0f);
  auto from = rows.begin();
  for (std::size_t t = 0; t < T; ++t) {
    for (std::size_t b = 0; b < B; ++b) {
      const bool present = t < std::size_t(lengths_[b]);
      if (present) std::copy_n(from, width, &values[(t * B + b) * width]);
      if (present || !packed_) from += std::ptrdiff_t(width);
    }
  }
  return values;
}

}  // namespace rnntune::reference::cudnn
