// SPDX-License-Identifier: Apache-2.0
// The C API: the C++ one with handles for objects and a status for Result. Nothing is decided here.
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "rnntune/rnn.hpp"
#include "rnntune/rnntune.h"

struct rnntune_device {
  std::shared_ptr<rnntune::Device> device;
};

struct rnntune_rnn {
  rnntune::Rnn rnn;
  std::string explanation;
  // Filled on each call, so that no call allocates; one entry per layer and direction.
  std::vector<rnntune::LayerWeights> weights;
  std::vector<rnntune::LayerGradients> gradients;
};

namespace {

using rnntune::ErrorCode;

constexpr rnntune_status status_of(ErrorCode code) {
  return static_cast<rnntune_status>(static_cast<int>(code) + 1);
}
static_assert(status_of(ErrorCode::invalid_argument) == RNNTUNE_INVALID_ARGUMENT);
static_assert(status_of(ErrorCode::unsupported) == RNNTUNE_UNSUPPORTED);
static_assert(status_of(ErrorCode::size_overflow) == RNNTUNE_SIZE_OVERFLOW);
static_assert(status_of(ErrorCode::out_of_memory) == RNNTUNE_OUT_OF_MEMORY);
static_assert(status_of(ErrorCode::not_found) == RNNTUNE_NOT_FOUND);
static_assert(status_of(ErrorCode::bad_file) == RNNTUNE_BAD_FILE);
static_assert(status_of(ErrorCode::internal) == RNNTUNE_INTERNAL);
static_assert(status_of(ErrorCode::resource_limit) == RNNTUNE_RESOURCE_LIMIT);

// A fixed array: keeping the message of a failed allocation must not allocate.
thread_local char last_error[2048];

rnntune_status fail(ErrorCode code, const char* message) {
  std::snprintf(last_error, sizeof last_error, "%s", message);
  return status_of(code);
}

rnntune_status finish(const rnntune::Status& status) {
  return status.ok() ? RNNTUNE_OK : fail(status.error().code, status.error().message.c_str());
}

// Runs body, which returns a status, and lets no exception out.
template <class Body>
rnntune_status guard(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "out of memory");
  } catch (const std::exception& e) {
    return fail(ErrorCode::internal, e.what());
  } catch (...) {
    return fail(ErrorCode::internal, "unknown exception");
  }
}

struct Argument {
  const char* name;
  const void* pointer;
};

// The first null among the arguments fails the call; RNNTUNE_OK when there is none.
rnntune_status require(std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (argument.pointer == nullptr) {
      std::snprintf(last_error, sizeof last_error, "%s: expected a pointer, got NULL",
                    argument.name);
      return RNNTUNE_INVALID_ARGUMENT;
    }
  }
  return RNNTUNE_OK;
}

rnntune::Memory convert(const rnntune_memory& memory) { return {memory.data, memory.bytes}; }

rnntune::Buffers convert(const rnntune_buffers& buffers) {
  return {convert(buffers.packed), convert(buffers.workspace), convert(buffers.reserve)};
}

rnntune_status convert(const rnntune_options& from, rnntune::RnnOptions& to) {
  if (from.database_count > 0) {
    if (auto status = require({{"options.databases", from.databases}})) return status;
  }
  for (std::size_t i = 0; i < from.database_count; ++i) {
    if (auto status = require({{"options.databases[]", from.databases[i]}})) return status;
    to.databases.emplace_back(from.databases[i]);
  }
  to.default_databases = from.no_default_databases == 0;
  if (from.config != nullptr) {
    auto config = rnntune::parse_config(from.config);
    if (!config) return fail(config.error().code, config.error().message.c_str());
    to.config = std::move(*config);
  }
  if (from.log != nullptr) {
    to.log = [log = from.log, user = from.log_user](const std::string& message) {
      log(message.c_str(), user);
    };
  }
  return RNNTUNE_OK;
}

rnntune_status create(const char* text, const rnntune_device& device,
                      const rnntune_options* options, rnntune_rnn** out) {
  auto problem = rnntune::parse_problem(text);
  if (!problem) return fail(problem.error().code, problem.error().message.c_str());
  rnntune::RnnOptions converted;
  if (options != nullptr) {
    if (auto status = convert(*options, converted)) return status;
  }
  auto rnn = rnntune::Rnn::create(*problem, device.device, converted);
  if (!rnn) return fail(rnn.error().code, rnn.error().message.c_str());
  const auto layers = static_cast<std::size_t>(problem->layers * problem->directions);
  std::string explanation = rnn->explain().text();
  *out = new rnntune_rnn{std::move(*rnn), std::move(explanation),
                         std::vector<rnntune::LayerWeights>(layers),
                         std::vector<rnntune::LayerGradients>(layers)};
  return RNNTUNE_OK;
}

}  // namespace

const char* rnntune_version(void) { return rnntune::version(); }

const char* rnntune_last_error(void) { return last_error; }

rnntune_status rnntune_device_open(const char* name, int threads, rnntune_device** device) {
  return guard([&] {
    if (auto status = require({{"name", name}, {"device", device}})) return status;
    rnntune::DeviceOptions options;
    options.threads = threads;
    auto opened = rnntune::open_device(name, options);
    if (!opened) return fail(opened.error().code, opened.error().message.c_str());
    *device = new rnntune_device{std::move(*opened)};
    return RNNTUNE_OK;
  });
}

void rnntune_device_close(rnntune_device* device) { delete device; }

rnntune_status rnntune_allocate(rnntune_device* device, size_t bytes, void** memory) {
  return guard([&] {
    if (auto status = require({{"device", device}, {"memory", memory}})) return status;
    auto allocated = device->device->allocate(bytes);
    if (!allocated) return fail(allocated.error().code, allocated.error().message.c_str());
    *memory = *allocated;
    return RNNTUNE_OK;
  });
}

void rnntune_release(rnntune_device* device, void* memory) {
  if (device != nullptr && memory != nullptr) device->device->release(memory);
}

rnntune_status rnntune_to_device(rnntune_device* device, void* to, const void* from, size_t bytes,
                                 rnntune_stream stream) {
  return guard([&] {
    if (auto status = require({{"device", device}, {"to", to}, {"from", from}})) return status;
    return finish(device->device->to_device(to, from, bytes, stream));
  });
}

rnntune_status rnntune_to_host(rnntune_device* device, void* to, const void* from, size_t bytes,
                               rnntune_stream stream) {
  return guard([&] {
    if (auto status = require({{"device", device}, {"to", to}, {"from", from}})) return status;
    return finish(device->device->to_host(to, from, bytes, stream));
  });
}

rnntune_status rnntune_synchronize(rnntune_device* device, rnntune_stream stream) {
  return guard([&] {
    if (auto status = require({{"device", device}})) return status;
    return finish(device->device->synchronize(stream));
  });
}

rnntune_status rnntune_rnn_create(const char* problem, rnntune_device* device,
                                  const rnntune_options* options, rnntune_rnn** rnn) {
  return guard([&] {
    if (auto status = require({{"problem", problem}, {"device", device}, {"rnn", rnn}})) {
      return status;
    }
    return create(problem, *device, options, rnn);
  });
}

void rnntune_rnn_destroy(rnntune_rnn* rnn) { delete rnn; }

const char* rnntune_explain(const rnntune_rnn* rnn) {
  return rnn == nullptr ? "" : rnn->explanation.c_str();
}

size_t rnntune_packed_bytes(const rnntune_rnn* rnn) {
  return rnn == nullptr ? 0 : rnn->rnn.packed_bytes();
}

size_t rnntune_workspace_bytes(const rnntune_rnn* rnn) {
  return rnn == nullptr ? 0 : rnn->rnn.workspace_bytes();
}

size_t rnntune_reserve_bytes(const rnntune_rnn* rnn) {
  return rnn == nullptr ? 0 : rnn->rnn.reserve_bytes();
}

rnntune_status rnntune_pack(rnntune_rnn* rnn, const rnntune_layer_weights* layers,
                            rnntune_memory packed, rnntune_stream stream) {
  return guard([&] {
    if (auto status = require({{"rnn", rnn}, {"layers", layers}})) return status;
    for (std::size_t i = 0; i < rnn->weights.size(); ++i) {
      rnn->weights[i] = {layers[i].weight_ih, layers[i].weight_hh, layers[i].bias_ih,
                         layers[i].bias_hh, layers[i].weight_hr};
    }
    return finish(rnn->rnn.pack(rnn->weights.data(), convert(packed), stream));
  });
}

rnntune_status rnntune_forward(rnntune_rnn* rnn, rnntune_mode mode,
                               const rnntune_forward_args* args, const rnntune_buffers* buffers,
                               rnntune_stream stream) {
  return guard([&] {
    if (auto status = require({{"rnn", rnn}, {"args", args}, {"buffers", buffers}})) return status;
    if (mode != RNNTUNE_TRAINING && mode != RNNTUNE_INFERENCE) {
      return fail(ErrorCode::invalid_argument,
                  "mode: expected RNNTUNE_TRAINING or RNNTUNE_INFERENCE, got another value");
    }
    const rnntune::Forward forward{args->time, args->batch, args->x,   args->h_0,
                                   args->c_0,  args->y,     args->h_n, args->c_n};
    return finish(rnn->rnn.forward(
        mode == RNNTUNE_TRAINING ? rnntune::Mode::training : rnntune::Mode::inference, forward,
        convert(*buffers), stream));
  });
}

rnntune_status rnntune_backward_data(rnntune_rnn* rnn, const rnntune_backward_data_args* args,
                                     const rnntune_buffers* buffers, rnntune_stream stream) {
  return guard([&] {
    if (auto status = require({{"rnn", rnn}, {"args", args}, {"buffers", buffers}})) return status;
    const rnntune::BackwardData backward{args->x,    args->h_0,  args->c_0, args->y,    args->dy,
                                         args->dh_n, args->dc_n, args->dx,  args->dh_0, args->dc_0};
    return finish(rnn->rnn.backward_data(backward, convert(*buffers), stream));
  });
}

rnntune_status rnntune_backward_weights(rnntune_rnn* rnn, const rnntune_backward_weights_args* args,
                                        const rnntune_buffers* buffers, rnntune_stream stream) {
  return guard([&] {
    if (auto status = require({{"rnn", rnn}, {"args", args}, {"buffers", buffers}})) return status;
    if (auto status = require({{"args.gradients", args->gradients}})) return status;
    for (std::size_t i = 0; i < rnn->gradients.size(); ++i) {
      const rnntune_layer_gradients& from = args->gradients[i];
      rnn->gradients[i] = {from.weight_ih, from.weight_hh, from.bias_ih, from.bias_hh,
                           from.weight_hr};
    }
    const rnntune::BackwardWeights backward{args->x, args->h_0, args->y, rnn->gradients.data()};
    return finish(rnn->rnn.backward_weights(backward, convert(*buffers), stream));
  });
}
