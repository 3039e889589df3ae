// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_cudnn_network.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "reference/cudnn/values.hpp"

namespace rnntune::fakes {
namespace {

using reference::Inputs;
using reference::LayerTensors;
using reference::Outputs;
using reference::cudnn::decode;
using reference::cudnn::encode;

constexpr std::size_t kGapBytes = 48;

struct Kind {
  cudnnRNNMode_t mode;
  Cell cell;
  int gates;
};
constexpr Kind kKinds[] = {{CUDNN_LSTM, Cell::lstm, 4},
                           {CUDNN_GRU, Cell::gru, 3},
                           {CUDNN_RNN_TANH, Cell::rnn_tanh, 1},
                           {CUDNN_RNN_RELU, Cell::rnn_relu, 1}};

const Kind& kind_of(const cudnnRNNStruct& network) {
  const Kind* kind = kKinds;
  while (kind->mode != network.cell) ++kind;
  return *kind;
}

int directions_of(const cudnnRNNStruct& n) { return n.direction == CUDNN_BIDIRECTIONAL ? 2 : 1; }

Dtype dtype_of(cudnnDataType_t type) {
  if (type == CUDNN_DATA_FLOAT) return Dtype::f32;
  return type == CUDNN_DATA_HALF ? Dtype::f16 : Dtype::bf16;
}

std::size_t value_bytes(cudnnDataType_t type) {
  return reference::cudnn::value_bytes(dtype_of(type));
}

Problem problem_of(const cudnnRNNStruct& network, std::int64_t time, std::int64_t batch) {
  Problem p;
  p.cell = kind_of(network).cell;
  p.layers = network.layers;
  p.time = time;
  p.batch = batch;
  p.input = network.input;
  p.hidden = network.hidden;
  p.projection = network.projection == network.hidden ? 0 : network.projection;
  p.directions = directions_of(network);
  p.bias = network.bias == CUDNN_RNN_NO_BIAS
               ? Bias::none
               : (network.bias == CUDNN_RNN_DOUBLE_BIAS ? Bias::two : Bias::one);
  return p;
}

std::vector<float> read(const void* from, std::size_t count, cudnnDataType_t type) {
  if (from == nullptr) return std::vector<float>(count, 0.0f);
  return decode({static_cast<const std::byte*>(from), count * value_bytes(type)}, dtype_of(type));
}

void write(void* to, std::span<const float> values, cudnnDataType_t type) {
  const auto bytes = encode(values, dtype_of(type));
  if (to != nullptr) std::memcpy(to, bytes.data(), bytes.size());
}

bool packed(const cudnnRNNDataStruct& data) {
  return data.layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
}

// visit(row in memory, row of [T,B], whether it is there): every row that memory has.
template <class Visit>
void each_row(const cudnnRNNDataStruct& data, Visit visit) {
  std::size_t row = 0;
  for (int t = 0; t < data.time; ++t) {
    for (int b = 0; b < data.batch; ++b) {
      const bool present = t < data.lengths[std::size_t(b)];
      if (!present && packed(data)) continue;
      visit(row++, std::size_t(t * data.batch + b), present);
    }
  }
}

std::vector<float> read_rows(const cudnnRNNDataStruct& data, const void* from) {
  const auto width = std::size_t(data.width);
  const std::size_t bytes = width * value_bytes(data.type);
  std::vector<float> values(std::size_t(data.time * data.batch) * width);
  each_row(data, [&](std::size_t row, std::size_t to, bool present) {
    if (!present) return;
    const auto part = read(static_cast<const char*>(from) + row * bytes, width, data.type);
    std::copy(part.begin(), part.end(), values.begin() + std::ptrdiff_t(to * width));
  });
  return values;
}

void write_rows(const cudnnRNNDataStruct& data, std::span<const float> values, void* to) {
  const auto width = std::size_t(data.width);
  const std::size_t bytes = width * value_bytes(data.type);
  const std::vector<float> padding(width, 0.0f);
  each_row(data, [&](std::size_t row, std::size_t from, bool present) {
    const auto part =
        present ? values.subspan(from * width, width) : std::span<const float>(padding);
    write(static_cast<char*>(to) + row * bytes, part, data.type);
  });
}

// The tensor of ours that a slot is a block of, and where in it.
struct Block {
  std::vector<float> LayerTensors<float>::*to;
  std::vector<double> LayerTensors<double>::*from;
  std::size_t first;
};

Block block_of(const cudnnRNNStruct& network, const Slot& slot) {
  using F = LayerTensors<float>;
  using D = LayerTensors<double>;
  const int gates = kind_of(network).gates;
  const std::size_t first = std::size_t(slot.number % gates) * std::size_t(slot.count());
  if (slot.number == 2 * gates) return {&F::weight_hr, &D::weight_hr, 0};
  const bool input = slot.number < gates;
  if (slot.bias && input) return {&F::bias_ih, &D::bias_ih, first};
  if (slot.bias) return {&F::bias_hh, &D::bias_hh, first};
  if (input) return {&F::weight_ih, &D::weight_ih, first};
  return {&F::weight_hh, &D::weight_hh, first};
}

std::vector<LayerTensors<float>> read_weights(const cudnnRNNStruct& network, const void* space) {
  std::vector<LayerTensors<float>> layers(std::size_t(network.layers * directions_of(network)));
  const WeightSpace weights(network);
  for (const Slot& slot : weights.slots()) {
    const Block block = block_of(network, slot);
    std::vector<float>& tensor = layers[std::size_t(slot.pseudo_layer)].*block.to;
    const auto count = std::size_t(slot.count());
    const auto part = read(static_cast<const char*>(space) + slot.offset, count, network.data_type);
    tensor.resize(std::max(tensor.size(), block.first + count));
    std::copy(part.begin(), part.end(), tensor.begin() + std::ptrdiff_t(block.first));
  }
  return layers;
}

// Copies, or adds, sample `b` of a [rows,B,width] to or from the only one of [rows,1,width].
template <class A, class B>
void sample_in(const std::vector<A>& all, std::size_t b, std::size_t batch, std::size_t width,
               std::size_t rows, std::vector<B>& one) {
  one.resize(rows * width);
  for (std::size_t r = 0; r < rows && !all.empty(); ++r) {
    std::copy_n(&all[(r * batch + b) * width], width, &one[r * width]);
  }
}
template <class A>
void sample_out(const std::vector<A>& one, std::size_t b, std::size_t batch, std::size_t width,
                std::vector<A>& all) {
  for (std::size_t r = 0; width > 0 && r < one.size() / width; ++r) {
    std::copy_n(&one[r * width], width, &all[(r * batch + b) * width]);
  }
}

// The oracle, sample by sample: each has a length of its own.
Outputs<double> compute(const cudnnRNNStruct& network, const std::vector<int>& lengths,
                        std::int64_t time, const Inputs& in) {
  const std::size_t batch = lengths.size();
  const Problem whole = problem_of(network, time, std::int64_t(batch));
  const std::size_t I = std::size_t(whole.input), H = std::size_t(whole.hidden);
  const std::size_t O = std::size_t(whole.output()), D = std::size_t(whole.directions);
  const std::size_t states = std::size_t(whole.layers) * D;
  const bool has_c = whole.cell == Cell::lstm;
  Outputs<double> out;
  out.y.resize(std::size_t(time) * batch * D * O);
  out.dx.resize(std::size_t(time) * batch * I);
  for (auto* h : {&out.h_n, &out.dh_0}) h->resize(states * batch * O);
  for (auto* c : {&out.c_n, &out.dc_0}) c->resize(has_c ? states * batch * H : 0);
  for (std::size_t b = 0; b < batch; ++b) {
    const std::size_t T = std::size_t(lengths[b]);
    Inputs one;
    one.weights = in.weights;
    sample_in(in.x, b, batch, I, T, one.x);
    sample_in(in.dy, b, batch, D * O, T, one.dy);
    sample_in(in.h_0, b, batch, O, states, one.h_0);
    sample_in(in.dh_n, b, batch, O, states, one.dh_n);
    sample_in(in.c_0, b, batch, H, has_c ? states : 0, one.c_0);
    sample_in(in.dc_n, b, batch, H, has_c ? states : 0, one.dc_n);
    const Outputs<double> part =
        reference::oracle_step(problem_of(network, std::int64_t(T), 1), one);
    sample_out(part.y, b, batch, D * O, out.y);
    sample_out(part.dx, b, batch, I, out.dx);
    sample_out(part.h_n, b, batch, O, out.h_n);
    sample_out(part.dh_0, b, batch, O, out.dh_0);
    sample_out(part.c_n, b, batch, H, out.c_n);
    sample_out(part.dc_0, b, batch, H, out.dc_0);
    if (b == 0) {
      out.gradients = part.gradients;
      continue;
    }
    Outputs<double> sum;
    sum.gradients = part.gradients;
    Outputs<double> before;
    before.gradients = std::move(out.gradients);
    reference::each_output(sum, before, [](const std::string&, auto& to, const auto& from) {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
    });
    out.gradients = std::move(sum.gradients);
  }
  return out;
}

std::vector<float> narrow(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

// A reserve: what forward leaves for backward data, and that for backward weights.
enum Stage : std::int32_t { kOfForward = 0x0f04, kOfBackwardData = 0x0bd4, kConsumed = 0x0dead };

struct Reserve {
  Stage& stage;
  std::span<float> x, y, gradients;

  Reserve(const cudnnRNNStruct& network, const cudnnRNNDataStruct& data, void* memory)
      : stage(*static_cast<Stage*>(memory)) {
    const std::size_t rows = std::size_t(data.time) * std::size_t(data.batch);
    const Problem p = problem_of(network, data.time, data.batch);
    float* at = static_cast<float*>(memory) + 4;
    x = {at, rows * std::size_t(p.input)};
    y = {x.data() + x.size(), rows * std::size_t(p.directions * p.output())};
    std::size_t count = 0;
    const WeightSpace weights(network);
    for (const Slot& slot : weights.slots()) count += std::size_t(slot.count());
    gradients = {y.data() + y.size(), count};
  }
};

std::string check(const Step& s, bool has_c_descriptor) {
  const Problem p = problem_of(s.network, s.x.time, s.x.batch);
  const auto state = [&](const cudnnTensorStruct& d, std::int64_t width) {
    const int B = s.x.batch, W = int(width);
    return d.type == s.network.data_type &&
           d.sizes == std::vector<int>{int(p.layers * p.directions), B, W} &&
           d.strides == std::vector<int>{B * W, W, 1};
  };
  const std::vector<int> lengths(s.lengths, s.lengths + s.x.batch);
  if (lengths != s.x.lengths || lengths != s.y.lengths) return "the same lengths everywhere";
  if (s.x.type != s.network.data_type || s.y.type != s.x.type) return "one data type";
  if (s.x.width != p.input || s.y.width != p.directions * p.output()) return "widths of x and y";
  if (s.x.layout != s.y.layout) return "one layout";
  if (packed(s.x) == (s.network.flags == CUDNN_RNN_PADDED_IO_ENABLED)) return "padded if unpacked";
  if (!state(s.h, p.output())) return "h [L*D,B,O]";
  if (has_c_descriptor && !state(s.c, p.hidden)) return "c [L*D,B,H]";
  if (s.network.algo == CUDNN_RNN_ALGO_PERSIST_DYNAMIC && s.network.dynamic_batch != s.x.batch) {
    return "kernels built for this batch";
  }
  return {};
}

std::size_t state_count(const Step& s, std::int64_t width) {
  return std::size_t(s.network.layers * directions_of(s.network) * s.x.batch) * std::size_t(width);
}

}  // namespace

WeightSpace::WeightSpace(const cudnnRNNStruct& network)
    : value_bytes_(value_bytes(network.data_type)) {
  const Problem p = problem_of(network, 1, 1);
  const int gates = kind_of(network).gates, D = directions_of(network);
  const int H = network.hidden, O = int(p.output());
  for (const bool bias : {true, false}) {
    for (int layer = network.layers * D - 1; layer >= 0; --layer) {
      // 7 has no divisor in common with 8, 6 and 2.
      for (int k = 0; k < 2 * gates; ++k) {
        const int number = 7 * (k + 1) % (2 * gates);
        const bool input = number < gates;
        const bool has_bias = network.bias == CUDNN_RNN_DOUBLE_BIAS ||
                              (network.bias == CUDNN_RNN_SINGLE_INP_BIAS && input);
        if (bias && has_bias) add(layer, number, true, H, 1);
        if (!bias) add(layer, number, false, H, input ? int(p.layer_input(layer / D)) : O);
      }
      if (!bias && p.projection > 0) add(layer, 2 * gates, false, O, H);
    }
  }
}

void WeightSpace::add(int pseudo_layer, int number, bool bias, int rows, int columns) {
  bytes_ += kGapBytes;
  slots_.push_back({pseudo_layer, number, bias, rows, columns, bytes_});
  bytes_ += std::size_t(rows * columns) * value_bytes_;
}

const Slot* WeightSpace::find(int pseudo_layer, int number, bool bias) const {
  for (const Slot& slot : slots_) {
    if (slot.pseudo_layer == pseudo_layer && slot.number == number && slot.bias == bias) {
      return &slot;
    }
  }
  return nullptr;
}

std::size_t reserve_bytes(const cudnnRNNStruct& network, const cudnnRNNDataStruct& x) {
  alignas(float) char nowhere[16];
  const Reserve reserve(network, x, nowhere);
  return 16 + sizeof(float) * (reserve.x.size() + reserve.y.size() + reserve.gradients.size());
}

std::string Step::forward(const ForwardIn& in, const ForwardOut& out, float error) const {
  if (std::string why = check(*this, true); !why.empty()) return why;
  const Problem p = problem_of(network, x.time, x.batch);
  Inputs inputs;
  inputs.x = read_rows(x, in.x);
  inputs.h_0 = read(in.h_0, state_count(*this, p.output()), network.data_type);
  inputs.c_0 = read(in.c_0, state_count(*this, p.hidden), network.data_type);
  inputs.weights = read_weights(network, in.weights);
  const Outputs<double> result = compute(network, x.lengths, x.time, inputs);
  std::vector<float> values = narrow(result.y);
  const Reserve kept(network, x, reserve);
  kept.stage = kOfForward;
  std::copy(inputs.x.begin(), inputs.x.end(), kept.x.begin());
  values[0] += error;
  write_rows(y, values, out.y);
  const std::vector<float> written = read_rows(y, out.y);
  std::copy(written.begin(), written.end(), kept.y.begin());
  write(out.h_n, narrow(result.h_n), network.data_type);
  write(out.c_n, narrow(result.c_n), network.data_type);
  return {};
}

std::string Step::backward_data(const DataIn& in, const DataOut& out) const {
  if (std::string why = check(*this, true); !why.empty()) return why;
  const Reserve kept(network, x, reserve);
  if (kept.stage != kOfForward) return "the reserve of a training forward";
  const std::vector<float> given = read_rows(y, in.y);
  if (!std::equal(given.begin(), given.end(), kept.y.begin())) return "the y of forward";
  const Problem p = problem_of(network, x.time, x.batch);
  Inputs inputs;
  inputs.x.assign(kept.x.begin(), kept.x.end());
  inputs.dy = read_rows(y, in.dy);
  inputs.h_0 = read(in.h_0, state_count(*this, p.output()), network.data_type);
  inputs.dh_n = read(in.dh_n, state_count(*this, p.output()), network.data_type);
  inputs.c_0 = read(in.c_0, state_count(*this, p.hidden), network.data_type);
  inputs.dc_n = read(in.dc_n, state_count(*this, p.hidden), network.data_type);
  inputs.weights = read_weights(network, in.weights);
  const Outputs<double> result = compute(network, x.lengths, x.time, inputs);
  kept.stage = kOfBackwardData;
  write_rows(x, narrow(result.dx), out.dx);
  write(out.dh_0, narrow(result.dh_0), network.data_type);
  write(out.dc_0, narrow(result.dc_0), network.data_type);
  float* to = kept.gradients.data();
  const WeightSpace weights(network);
  for (const Slot& slot : weights.slots()) {
    const Block block = block_of(network, slot);
    const auto& tensor = result.gradients[std::size_t(slot.pseudo_layer)].*block.from;
    for (int k = 0; k < slot.count(); ++k) *to++ = float(tensor[block.first + std::size_t(k)]);
  }
  return {};
}

std::string Step::backward_weights(const WeightsIn& in, void* gradients) const {
  if (std::string why = check(*this, false); !why.empty()) return why;
  const Reserve kept(network, x, reserve);
  if (kept.stage != kOfBackwardData) return "the reserve of backward data";
  const std::vector<float> x_given = read_rows(x, in.x), y_given = read_rows(y, in.y);
  if (!std::equal(x_given.begin(), x_given.end(), kept.x.begin())) return "the x of forward";
  if (!std::equal(y_given.begin(), y_given.end(), kept.y.begin())) return "the y of forward";
  kept.stage = kConsumed;
  const float* from = kept.gradients.data();
  const WeightSpace weights(network);
  for (const Slot& slot : weights.slots()) {
    char* at = static_cast<char*>(gradients) + slot.offset;
    std::vector<float> sum = read(at, std::size_t(slot.count()), network.data_type);
    for (float& value : sum) value += *from++;
    write(at, sum, network.data_type);
  }
  return {};
}

}  // namespace rnntune::fakes
