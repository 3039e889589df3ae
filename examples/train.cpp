// SPDX-License-Identifier: Apache-2.0
// Trains an LSTM with a linear readout to echo: say at every time step what was heard kDelay steps
// ago. A program of its own: it uses the installed library and nothing else of rnntune.
// usage: train [--db FILE] [--problem STR] [--steps N]; exits 1 when the loss did not fall.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "rnntune/rnn.hpp"

constexpr int kDelay = 3;

[[noreturn]] void stop(int code, const std::string& message) {
  std::cerr << "train: " << message << '\n';
  std::exit(code);
}

void need(const rnntune::Status& status) {
  if (!status) stop(2, status.error().message);
}

template <class T>
T need(rnntune::Result<T> result) {
  if (!result) stop(2, result.error().message);
  return std::move(*result);
}

// Parameters, gradients and Adam's moments, flat: per layer weight_ih, weight_hh, bias_ih, bias_hh,
// then the readout's H weights and its bias.
struct Model {
  explicit Model(const rnntune::Problem& p) : layers(p.layers), gradients(p.layers) {
    const std::size_t g = p.gates() * p.hidden;
    std::vector<std::size_t> sizes;
    for (std::int64_t l = 0; l < p.layers; ++l) {
      for (std::size_t n : {g * p.layer_input(l), g * p.hidden, g, g}) sizes.push_back(n);
    }
    std::size_t count = p.hidden + 1;
    for (std::size_t n : sizes) count += n;
    for (auto* v : {&value, &gradient, &first, &second}) v->resize(count);
    std::mt19937 random(1);
    const float bound = 1 / std::sqrt(static_cast<float>(p.hidden));
    for (float& v : value) v = std::uniform_real_distribution<float>(-bound, bound)(random);

    float *v = value.data(), *d = gradient.data();
    auto next = [&, i = 0](const float*& at, float*& grad) mutable {
      at = v, grad = d;
      v += sizes[i], d += sizes[i++];
    };
    for (std::int64_t l = 0; l < p.layers; ++l) {
      next(layers[l].weight_ih, gradients[l].weight_ih);
      next(layers[l].weight_hh, gradients[l].weight_hh);
      next(layers[l].bias_ih, gradients[l].bias_ih);
      next(layers[l].bias_hh, gradients[l].bias_hh);
    }
    readout = v, readout_gradient = d;
  }

  void adam(int step) {
    const float rate = 3e-3f * std::sqrt(1 - std::pow(0.999f, step)) / (1 - std::pow(0.9f, step));
    for (std::size_t i = 0; i < value.size(); ++i) {
      first[i] += 0.1f * (gradient[i] - first[i]);
      second[i] += 0.001f * (gradient[i] * gradient[i] - second[i]);
      value[i] -= rate * first[i] / (std::sqrt(second[i]) + 1e-8f);
    }
  }

  std::vector<float> value, gradient, first, second;
  std::vector<rnntune::LayerWeights> layers;
  std::vector<rnntune::LayerGradients> gradients;
  float *readout, *readout_gradient;
};

// Mean squared error of the echo; fills dy and the readout's gradients. Row r is (time, sample).
float echo_loss(const rnntune::Problem& p, const std::vector<float>& x, const std::vector<float>& y,
                Model& model, std::vector<float>& dy) {
  float loss = 0;
  std::fill(dy.begin(), dy.end(), 0.0f);
  const std::int64_t late = kDelay * p.batch, rows = p.time * p.batch;
  for (std::int64_t r = late; r < rows; ++r) {
    float error = model.readout[p.hidden] - x[(r - late) * p.input];
    for (std::int64_t h = 0; h < p.hidden; ++h) error += model.readout[h] * y[r * p.hidden + h];
    const float slope = 2 * error / (rows - late);
    for (std::int64_t h = 0; h < p.hidden; ++h) {
      dy[r * p.hidden + h] = slope * model.readout[h];
      model.readout_gradient[h] += slope * y[r * p.hidden + h];
    }
    model.readout_gradient[p.hidden] += slope;
    loss += error * error / (rows - late);
  }
  return loss;
}

int main(int argc, char** argv) {
  std::string text = "lstm:L1,T16,B32,I1,H64,f32";
  rnntune::RnnOptions options;
  int steps = 200;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) stop(2, name + ": expected a value");
    if (name == "--db") {
      options.databases.push_back(argv[i + 1]);
    } else if (name == "--problem") {
      text = argv[i + 1];
    } else if (name == "--steps") {
      steps = std::max(1, std::atoi(argv[i + 1]));
    } else {
      stop(2, name + ": expected --db, --problem or --steps");
    }
  }
  const auto p = need(rnntune::parse_problem(text));
  if (p.cell != rnntune::Cell::lstm || p.directions > 1 || p.projection > 0 || p.time <= kDelay) {
    stop(2, "--problem: expected an LSTM of one direction with T > 3, got " + text);
  }
  auto device = need(rnntune::open_device("cpu"));
  auto rnn = need(rnntune::Rnn::create(p, device, options));
  std::cout << rnn.explain().text() << '\n';

  rnntune::Buffers buffers{{nullptr, rnn.packed_bytes()},
                           {nullptr, rnn.workspace_bytes()},
                           {nullptr, rnn.reserve_bytes()}};
  for (auto* memory : {&buffers.packed, &buffers.workspace, &buffers.reserve}) {
    memory->data = need(device->allocate(memory->bytes));
  }
  Model model(p);
  std::vector<float> x(p.time * p.batch * p.input), y(p.time * p.batch * p.hidden), dy(y.size());
  std::mt19937 random(2);
  float begin = 0, end = 0;
  for (int step = 1; step <= steps; ++step) {
    for (std::size_t i = 0; i < x.size(); ++i) {  // every input of a sample hears the same signal
      x[i] = i % p.input ? x[i - 1] : std::uniform_real_distribution<float>(-1, 1)(random);
    }
    std::fill(model.gradient.begin(), model.gradient.end(), 0.0f);
    need(rnn.pack(model.layers.data(), buffers.packed));
    need(rnn.forward(rnntune::Mode::training, {.x = x.data(), .y = y.data()}, buffers));
    end = echo_loss(p, x, y, model, dy);
    need(rnn.backward_data({.x = x.data(), .y = y.data(), .dy = dy.data()}, buffers));
    need(rnn.backward_weights({.x = x.data(), .y = y.data(), .gradients = model.gradients.data()},
                              buffers));
    model.adam(step);
    if (step == 1) begin = end;
    if (step == 1 || step % 20 == 0) std::cout << "step " << step << "  loss " << end << '\n';
  }
  for (const auto& memory : {buffers.packed, buffers.workspace, buffers.reserve}) {
    device->release(memory.data);
  }
  if (!(end < begin / 2)) stop(1, "the loss did not fall to half");
  std::cout << "the loss fell from " << begin << " to " << end << '\n';
}
