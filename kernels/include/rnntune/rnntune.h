/* SPDX-License-Identifier: Apache-2.0 */
/* The library for C and whatever calls C; C++ has rnntune/rnn.hpp, where shapes, order of calls and
 * ownership are explained. What holds there holds here: a training step is pack, forward(training),
 * backward_data, backward_weights; memory is the caller's, on the device; fields that may be null
 * there may be null here, and a struct may be cleared with {0} and only filled where needed.
 *
 * Every function that can fail returns RNNTUNE_OK or another status; rnntune_last_error() then says
 * which argument, what was expected and what came. No exception leaves the library. */
#ifndef RNNTUNE_RNNTUNE_H
#define RNNTUNE_RNNTUNE_H

#include <stddef.h>
#include <stdint.h>

#include "rnntune/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rnntune_status {
  RNNTUNE_OK = 0,
  RNNTUNE_INVALID_ARGUMENT = 1,
  RNNTUNE_UNSUPPORTED = 2,
  RNNTUNE_SIZE_OVERFLOW = 3,
  RNNTUNE_OUT_OF_MEMORY = 4,
  RNNTUNE_NOT_FOUND = 5,
  RNNTUNE_BAD_FILE = 6,
  RNNTUNE_INTERNAL = 7,
  RNNTUNE_RESOURCE_LIMIT = 8
} rnntune_status;

RNNTUNE_EXPORT const char* rnntune_version(void);

/* The message of this thread's last failure; valid until its next one, empty before the first. */
RNNTUNE_EXPORT const char* rnntune_last_error(void);

/* Device: "cpu", "cuda:N". threads: the most a call may use on the CPU; 0: every core that this
 * process may run on. */
typedef struct rnntune_device rnntune_device;
typedef void* rnntune_stream; /* NULL on the CPU */

RNNTUNE_EXPORT rnntune_status rnntune_device_open(const char* name, int threads,
                                                  rnntune_device** device);
/* An rnntune_rnn made on the device stays usable. NULL is ignored, as in the other two closers. */
RNNTUNE_EXPORT void rnntune_device_close(rnntune_device* device);
RNNTUNE_EXPORT rnntune_status rnntune_allocate(rnntune_device* device, size_t bytes, void** memory);
RNNTUNE_EXPORT void rnntune_release(rnntune_device* device, void* memory);
RNNTUNE_EXPORT rnntune_status rnntune_to_device(rnntune_device* device, void* to, const void* from,
                                                size_t bytes, rnntune_stream stream);
RNNTUNE_EXPORT rnntune_status rnntune_to_host(rnntune_device* device, void* to, const void* from,
                                              size_t bytes, rnntune_stream stream);
RNNTUNE_EXPORT rnntune_status rnntune_synchronize(rnntune_device* device, rnntune_stream stream);

/* {0}: no database but the user's own and those shipped. */
typedef struct rnntune_options {
  const char* const* databases; /* files asked in order */
  size_t database_count;
  int no_default_databases;
  const char* config; /* used instead of a lookup, "cell:layout=tbh,..."; NULL: look up */
  void (*log)(const char* message, void* user); /* gets each warning once; NULL: nobody does */
  void* log_user;
} rnntune_options;

typedef struct rnntune_rnn rnntune_rnn;

/* problem: "lstm:L2,T35,B20,I650,H650,f32"; options: NULL for {0}. */
RNNTUNE_EXPORT rnntune_status rnntune_rnn_create(const char* problem, rnntune_device* device,
                                                 const rnntune_options* options, rnntune_rnn** rnn);
RNNTUNE_EXPORT void rnntune_rnn_destroy(rnntune_rnn* rnn);

/* Owned by the rnn. explain: one line that says which database entry answered, and its config. */
RNNTUNE_EXPORT const char* rnntune_explain(const rnntune_rnn* rnn);
RNNTUNE_EXPORT size_t rnntune_packed_bytes(const rnntune_rnn* rnn);
RNNTUNE_EXPORT size_t rnntune_workspace_bytes(const rnntune_rnn* rnn);
RNNTUNE_EXPORT size_t rnntune_reserve_bytes(const rnntune_rnn* rnn);

/* Of one layer and direction; index layer * D + direction. */
typedef struct rnntune_layer_weights {
  const float* weight_ih;
  const float* weight_hh;
  const float* bias_ih;
  const float* bias_hh;
  const float* weight_hr;
} rnntune_layer_weights;

typedef struct rnntune_layer_gradients {
  float* weight_ih;
  float* weight_hh;
  float* bias_ih;
  float* bias_hh;
  float* weight_hr;
} rnntune_layer_gradients;

typedef struct rnntune_memory {
  void* data;
  size_t bytes;
} rnntune_memory;

typedef struct rnntune_buffers {
  rnntune_memory packed;
  rnntune_memory workspace;
  rnntune_memory reserve;
} rnntune_buffers;

typedef enum rnntune_mode { RNNTUNE_TRAINING = 0, RNNTUNE_INFERENCE = 1 } rnntune_mode;

typedef struct rnntune_forward_args {
  int64_t time; /* 0: the problem's */
  int64_t batch;
  const float* x;
  const float* h_0;
  const float* c_0;
  float* y;
  float* h_n;
  float* c_n;
} rnntune_forward_args;

typedef struct rnntune_backward_data_args {
  const float* x;
  const float* h_0;
  const float* c_0;
  const float* y;
  const float* dy;
  const float* dh_n;
  const float* dc_n;
  float* dx;
  float* dh_0;
  float* dc_0;
} rnntune_backward_data_args;

typedef struct rnntune_backward_weights_args {
  const float* x;
  const float* h_0;
  const float* y;
  const rnntune_layer_gradients* gradients; /* as many as layers; added to */
} rnntune_backward_weights_args;

RNNTUNE_EXPORT rnntune_status rnntune_pack(rnntune_rnn* rnn, const rnntune_layer_weights* layers,
                                           rnntune_memory packed, rnntune_stream stream);
RNNTUNE_EXPORT rnntune_status rnntune_forward(rnntune_rnn* rnn, rnntune_mode mode,
                                              const rnntune_forward_args* args,
                                              const rnntune_buffers* buffers,
                                              rnntune_stream stream);
RNNTUNE_EXPORT rnntune_status rnntune_backward_data(rnntune_rnn* rnn,
                                                    const rnntune_backward_data_args* args,
                                                    const rnntune_buffers* buffers,
                                                    rnntune_stream stream);
RNNTUNE_EXPORT rnntune_status rnntune_backward_weights(rnntune_rnn* rnn,
                                                       const rnntune_backward_weights_args* args,
                                                       const rnntune_buffers* buffers,
                                                       rnntune_stream stream);

#ifdef __cplusplus
}
#endif

#endif
