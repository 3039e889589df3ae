// SPDX-License-Identifier: Apache-2.0
// The LSTM training step in oneDNN, as kind to it as a training user can be:
//
// - The user's master weights lie in oneDNN's own gate layout (ldigo), and gradients stay in the
//   layout that oneDNN writes; only what changes with every optimizer step is inside step(): the
//   reorders of the weights into the layouts that forward and backward ask for, the sum of the two
//   biases (oneDNN knows one), and the zeroing of weight gradients, which backward adds to.
// - Layers of one width run as one primitive where that is faster, else as a chain; prepare() times
//   the splits that are possible and keeps the best.
//
// Shapes: src_layer [T,B,I] tnc, states [layers,1,B,H] ldnc, weights [layers,1,I or H,4,H] ldigo,
// gates i f c~ o, which is our i f g o.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "reference/onednn/api.hpp"
#include "reference/onednn/plugin.hpp"
#include "reference/onednn/threads.hpp"
#include "reference/seconds_of.hpp"

namespace rnntune::reference::onednn {
namespace {

using dnnl::memory;
using Index = std::int64_t;
using Tag = memory::format_tag;
using Arguments = std::unordered_map<int, memory>;

constexpr auto kF32 = memory::data_type::f32;

memory::desc plain(const memory::dims& dims, Tag tag) { return {dims, kF32, tag}; }
memory::desc any(const memory::dims& dims) { return {dims, kF32, Tag::any}; }

struct Context {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};

  memory make(const memory::desc& desc) const {
    return desc.get_size() ? memory(desc, engine) : memory();
  }
  // Between a host tensor of a plain layout and a primitive's memory.
  void load(memory to, const float* from, const memory::dims& dims, Tag tag) {
    memory plain_memory = make(plain(dims, tag));
    float* host = plain_memory.map_data<float>();
    std::copy_n(from, plain_memory.get_desc().get_size() / sizeof(float), host);
    plain_memory.unmap_data(host);
    dnnl::reorder(plain_memory, to).execute(stream, plain_memory, to);
    stream.wait();
  }
  void store(memory from, float* to, const memory::dims& dims, Tag tag) {
    memory plain_memory = make(plain(dims, tag));
    dnnl::reorder(from, plain_memory).execute(stream, from, plain_memory);
    stream.wait();
    const float* host = plain_memory.map_data<float>();
    std::copy_n(host, plain_memory.get_desc().get_size() / sizeof(float), to);
    plain_memory.unmap_data(const_cast<float*>(host));
  }
};

void zero(memory& m) {
  void* data = m.map_data();
  std::memset(data, 0, m.get_desc().get_size());
  m.unmap_data(data);
}

struct Reorder {
  dnnl::reorder primitive;
  memory from, to;
};

// Consecutive layers of one input width in one primitive.
struct Segment {
  Index first, layers, input;
  ForwardDesc forward_desc;
  BackwardDesc backward_desc;
  dnnl::primitive forward, backward;
  Arguments forward_args, backward_args;
  std::vector<Reorder> packs;
  std::vector<memory> accumulated;  // weight gradients: backward adds to what is there
};

class LstmRun final : public OpponentRun {
 public:
  // split: layers of each segment, from the first.
  LstmRun(const Problem& problem, const Inputs& inputs, int threads,
          const std::vector<Index>& split)
      : problem_(problem), inputs_(inputs), threads_(threads) {
    const ThreadLimit limit(threads_);
    Index first = 0;
    for (Index layers : split) {
      segments_.push_back(describe(first, layers));
      first += layers;
    }
    for (std::size_t s = 0; s < segments_.size(); ++s) make_memories(s);
  }

  Status step() override {
    const ThreadLimit limit(threads_);
    for (Segment& s : segments_) {
      for (Reorder& r : s.packs) r.primitive.execute(context_.stream, r.from, r.to);
      sum_biases(s);
      for (memory& gradient : s.accumulated) zero(gradient);
    }
    for (Segment& s : segments_) s.forward.execute(context_.stream, s.forward_args);
    for (std::size_t s = segments_.size(); s-- > 0;)
      segments_[s].backward.execute(context_.stream, segments_[s].backward_args);
    context_.stream.wait();
    return {};
  }

  Result<Outputs<float>> outputs() override;

  std::string algorithm() const override {
    std::string text = segments_[0].forward_desc.impl_info_str();
    text += ", layers";
    for (const Segment& s : segments_)
      text += (&s == &segments_[0] ? " " : "+") + std::to_string(s.layers);
    return text;
  }

 private:
  memory::dims states(Index layers) const { return {layers, 1, problem_.batch, problem_.hidden}; }
  memory::dims weights(Index layers, Index width) const {
    return {layers, 1, width, 4, problem_.hidden};
  }
  // Without one, oneDNN runs with a bias of zeros: it has no training step without.
  bool has_bias() const { return problem_.bias != Bias::none; }

  Descs describe_tensors(Index layers, Index input) const {
    const Index T = problem_.time, B = problem_.batch, H = problem_.hidden;
    const memory::desc state = plain(states(layers), Tag::ldnc);
    return {plain({T, B, input}, Tag::tnc),
            state,
            state,
            any(weights(layers, input)),
            any(weights(layers, H)),
            plain({layers, 1, 4, H}, Tag::ldgo),
            plain({T, B, H}, Tag::tnc),
            state,
            state};
  }

  Segment describe(Index first, Index layers) const {
    Segment s;
    s.first = first;
    s.layers = layers;
    s.input = first == 0 ? problem_.input : problem_.hidden;
    const Descs tensors = describe_tensors(layers, s.input);
    s.forward_desc = forward_desc(context_.engine, tensors);
    s.forward = dnnl::lstm_forward(s.forward_desc);
    s.backward_desc = backward_desc(context_.engine, tensors, tensors, s.forward_desc);
    s.backward = dnnl::lstm_backward(s.backward_desc);
    return s;
  }

  void make_memories(std::size_t index);
  void load_weights(Segment& s);
  void sum_biases(Segment& s);

  Problem problem_;
  const Inputs inputs_;  // the user's parameters: step() reads the biases
  int threads_;
  Context context_;
  std::vector<Segment> segments_;
};

void LstmRun::make_memories(std::size_t index) {
  Segment& s = segments_[index];
  const Index T = problem_.time, B = problem_.batch, H = problem_.hidden;
  const std::size_t state = static_cast<std::size_t>(s.first * B * H);
  Arguments& f = s.forward_args;
  f[DNNL_ARG_SRC_LAYER] = index ? segments_[index - 1].forward_args[DNNL_ARG_DST_LAYER]
                                : context_.make(s.forward_desc.src_layer_desc());
  f[DNNL_ARG_SRC_ITER] = context_.make(s.forward_desc.src_iter_desc());
  f[DNNL_ARG_SRC_ITER_C] = context_.make(s.forward_desc.src_iter_c_desc());
  f[DNNL_ARG_WEIGHTS_LAYER] = context_.make(s.forward_desc.weights_layer_desc());
  f[DNNL_ARG_WEIGHTS_ITER] = context_.make(s.forward_desc.weights_iter_desc());
  f[DNNL_ARG_DST_LAYER] = context_.make(s.forward_desc.dst_layer_desc());
  f[DNNL_ARG_DST_ITER] = context_.make(s.forward_desc.dst_iter_desc());
  f[DNNL_ARG_DST_ITER_C] = context_.make(s.forward_desc.dst_iter_c_desc());
  f[DNNL_ARG_WORKSPACE] = context_.make(s.forward_desc.workspace_desc());
  f[DNNL_ARG_BIAS] = context_.make(s.forward_desc.bias_desc());
  zero(f[DNNL_ARG_BIAS]);
  Arguments& b = s.backward_args;
  b = f;
  b[DNNL_ARG_WEIGHTS_LAYER] = context_.make(s.backward_desc.weights_layer_desc());
  b[DNNL_ARG_WEIGHTS_ITER] = context_.make(s.backward_desc.weights_iter_desc());
  b[DNNL_ARG_DIFF_SRC_LAYER] = context_.make(s.backward_desc.diff_src_layer_desc());
  b[DNNL_ARG_DIFF_SRC_ITER] = context_.make(s.backward_desc.diff_src_iter_desc());
  b[DNNL_ARG_DIFF_SRC_ITER_C] = context_.make(s.backward_desc.diff_src_iter_c_desc());
  b[DNNL_ARG_DIFF_WEIGHTS_LAYER] = context_.make(s.backward_desc.diff_weights_layer_desc());
  b[DNNL_ARG_DIFF_WEIGHTS_ITER] = context_.make(s.backward_desc.diff_weights_iter_desc());
  s.accumulated = {b[DNNL_ARG_DIFF_WEIGHTS_LAYER], b[DNNL_ARG_DIFF_WEIGHTS_ITER]};
  b[DNNL_ARG_DIFF_BIAS] = context_.make(s.backward_desc.diff_bias_desc());
  s.accumulated.push_back(b[DNNL_ARG_DIFF_BIAS]);
  b[DNNL_ARG_DIFF_DST_ITER] = context_.make(s.backward_desc.diff_dst_iter_desc());
  b[DNNL_ARG_DIFF_DST_ITER_C] = context_.make(s.backward_desc.diff_dst_iter_c_desc());
  // The gradient of this segment's input is that of the output of the one before it.
  if (index)
    segments_[index - 1].backward_args[DNNL_ARG_DIFF_DST_LAYER] = b[DNNL_ARG_DIFF_SRC_LAYER];
  if (index + 1 == segments_.size()) {
    b[DNNL_ARG_DIFF_DST_LAYER] = context_.make(s.backward_desc.diff_dst_layer_desc());
    context_.load(b[DNNL_ARG_DIFF_DST_LAYER], inputs_.dy.data(), {T, B, H}, Tag::tnc);
  }
  if (index == 0) context_.load(f[DNNL_ARG_SRC_LAYER], inputs_.x.data(), {T, B, s.input}, Tag::tnc);
  context_.load(f[DNNL_ARG_SRC_ITER], &inputs_.h_0[state], states(s.layers), Tag::ldnc);
  context_.load(f[DNNL_ARG_SRC_ITER_C], &inputs_.c_0[state], states(s.layers), Tag::ldnc);
  context_.load(b[DNNL_ARG_DIFF_DST_ITER], &inputs_.dh_n[state], states(s.layers), Tag::ldnc);
  context_.load(b[DNNL_ARG_DIFF_DST_ITER_C], &inputs_.dc_n[state], states(s.layers), Tag::ldnc);
  load_weights(s);
}

// The master weights, and the reorders from them that every step runs.
void LstmRun::load_weights(Segment& s) {
  auto add = [&](int arg, Index width, std::vector<float> LayerTensors<float>::*tensor) {
    std::vector<float> stacked;
    for (Index l = s.first; l < s.first + s.layers; ++l) {
      const std::vector<float>& w = inputs_.weights[static_cast<std::size_t>(l)].*tensor;
      stacked.insert(stacked.end(), w.begin(), w.end());
    }
    const memory::dims dims = weights(s.layers, width);
    memory master = context_.make(plain(dims, Tag::ldigo));
    context_.load(master, stacked.data(), dims, Tag::ldgoi);
    for (Arguments* args : {&s.forward_args, &s.backward_args}) {
      memory& wanted = (*args)[arg];
      if (wanted.get_desc() == master.get_desc())
        wanted = master;
      else
        s.packs.push_back({dnnl::reorder(master, wanted), master, wanted});
    }
  };
  add(DNNL_ARG_WEIGHTS_LAYER, s.input, &LayerTensors<float>::weight_ih);
  add(DNNL_ARG_WEIGHTS_ITER, problem_.hidden, &LayerTensors<float>::weight_hh);
}

void LstmRun::sum_biases(Segment& s) {
  if (!has_bias()) return;
  float* bias = s.forward_args[DNNL_ARG_BIAS].map_data<float>();
  const Index rows = 4 * problem_.hidden;
  for (Index l = 0; l < s.layers; ++l) {
    const LayerTensors<float>& w = inputs_.weights[static_cast<std::size_t>(s.first + l)];
    for (Index r = 0; r < rows; ++r)
      bias[l * rows + r] = w.bias_ih[r] + (w.bias_hh.empty() ? 0 : w.bias_hh[r]);
  }
  s.forward_args[DNNL_ARG_BIAS].unmap_data(bias);
}

Result<Outputs<float>> LstmRun::outputs() {
  const Index T = problem_.time, B = problem_.batch, H = problem_.hidden, L = problem_.layers;
  Outputs<float> out;
  auto fetch = [&](memory from, std::vector<float>& to, Index offset, const memory::dims& dims,
                   Tag tag) { context_.store(from, to.data() + offset, dims, tag); };
  for (auto* v : {&out.h_n, &out.c_n, &out.dh_0, &out.dc_0}) v->resize(L * B * H);
  out.y.resize(T * B * H);
  out.dx.resize(T * B * problem_.input);
  fetch(segments_.back().forward_args[DNNL_ARG_DST_LAYER], out.y, 0, {T, B, H}, Tag::tnc);
  fetch(segments_[0].backward_args[DNNL_ARG_DIFF_SRC_LAYER], out.dx, 0, {T, B, problem_.input},
        Tag::tnc);
  for (Segment& s : segments_) {
    const Index state = s.first * B * H;
    const memory::dims dims = states(s.layers);
    fetch(s.forward_args[DNNL_ARG_DST_ITER], out.h_n, state, dims, Tag::ldnc);
    fetch(s.forward_args[DNNL_ARG_DST_ITER_C], out.c_n, state, dims, Tag::ldnc);
    fetch(s.backward_args[DNNL_ARG_DIFF_SRC_ITER], out.dh_0, state, dims, Tag::ldnc);
    fetch(s.backward_args[DNNL_ARG_DIFF_SRC_ITER_C], out.dc_0, state, dims, Tag::ldnc);
    std::vector<float> ih(s.layers * 4 * H * s.input), hh(s.layers * 4 * H * H);
    std::vector<float> bias(has_bias() ? s.layers * 4 * H : 0);
    fetch(s.backward_args[DNNL_ARG_DIFF_WEIGHTS_LAYER], ih, 0, weights(s.layers, s.input),
          Tag::ldgoi);
    fetch(s.backward_args[DNNL_ARG_DIFF_WEIGHTS_ITER], hh, 0, weights(s.layers, H), Tag::ldgoi);
    if (has_bias())
      fetch(s.backward_args[DNNL_ARG_DIFF_BIAS], bias, 0, {s.layers, 1, 4, H}, Tag::ldgo);
    auto layer = [&](const std::vector<float>& all, Index l) {
      const auto size = static_cast<std::ptrdiff_t>(all.size()) / s.layers;
      return std::vector<float>(all.begin() + l * size, all.begin() + (l + 1) * size);
    };
    for (Index l = 0; l < s.layers; ++l)
      out.gradients.push_back({layer(ih, l),
                               layer(hh, l),
                               layer(bias, l),
                               problem_.bias == Bias::two ? layer(bias, l) : std::vector<float>(),
                               {}});
  }
  return out;
}

// The ways to cut L layers into primitives: all in one where the widths allow it, the first apart,
// each apart.
std::vector<std::vector<Index>> splits(const Problem& p) {
  std::vector<std::vector<Index>> out;
  if (p.input == p.hidden || p.layers == 1) out.push_back({p.layers});
  if (p.layers > 1) out.push_back({1, p.layers - 1});
  if (p.layers > 2) out.emplace_back(p.layers, 1);
  return out;
}

std::unique_ptr<OpponentRun> prepare(const Problem& problem, const Inputs& inputs, int threads,
                                     std::string& why_not) {
  try {
    std::unique_ptr<OpponentRun> best;
    double best_seconds = 0;
    const auto candidates = splits(problem);
    for (const std::vector<Index>& split : candidates) {
      auto run = std::make_unique<LstmRun>(problem, inputs, threads, split);
      if (candidates.size() == 1) return run;
      const double seconds = seconds_of(*run).value();
      if (best && !(seconds < best_seconds)) continue;
      best = std::move(run);
      best_seconds = seconds;
    }
    return best;
  } catch (const dnnl::error& error) {
    why_not = std::string("oneDNN: ") + error.what();
    return nullptr;
  }
}

}  // namespace
}  // namespace rnntune::reference::onednn

extern "C" __attribute__((visibility("default"))) bool rnntune_onednn_plugin(
    rnntune::reference::OnednnPlugin& plugin, std::string& why_not) {
  const dnnl_version_t* v = dnnl_version();
  const std::string version =
      std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  if (v->cpu_runtime != DNNL_RUNTIME_OMP) {
    why_not = "oneDNN " + version + " is not an OpenMP build: it cannot be held to a thread count";
    return false;
  }
  plugin.version = version + " (OpenMP)";
  plugin.prepare = rnntune::reference::onednn::prepare;
  return true;
}
