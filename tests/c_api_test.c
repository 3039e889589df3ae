/* SPDX-License-Identifier: Apache-2.0 */
/* The C API from C, linked with the shared library as a user would: failures are status values with
 * a message, and gradient descent on the gradients it returns makes the loss fall as fast as they
 * promise. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rnntune/rnntune.h"

#define EXPECT(condition) expect((condition), #condition, __LINE__)
static int failures = 0;
static void expect(int holds, const char* what, int line) {
  if (holds) return;
  printf("c_api_test.c:%d: expected %s; last error: %s\n", line, what, rnntune_last_error());
  ++failures;
}

enum { kTime = 5, kBatch = 3, kInput = 4, kHidden = 6, kGates = 4 * kHidden };
static const char* const kProblem = "lstm:L1,T5,B3,I4,H6,f32";

typedef struct {
  float weight_ih[kGates * kInput];
  float weight_hh[kGates * kHidden];
  float bias_ih[kGates];
  float bias_hh[kGates];
} parameters;
enum { kParameters = sizeof(parameters) / sizeof(float) };

static void fill(float* values, int count, float scale) {
  for (int i = 0; i < count; ++i) values[i] = scale * sinf(1.7f * (float)i + 0.3f);
}

static void* allocate(rnntune_device* device, size_t bytes) {
  void* memory = NULL;
  EXPECT(rnntune_allocate(device, bytes, &memory) == RNNTUNE_OK);
  return memory;
}

/* loss = sum of y^2 / 2, so that dy = y. Writes the gradients when they are asked for. */
static double step(rnntune_rnn* rnn, const rnntune_buffers* buffers, const float* x,
                   const parameters* p, parameters* gradients) {
  float y[kTime * kBatch * kHidden];
  const rnntune_layer_weights weights = {p->weight_ih, p->weight_hh, p->bias_ih, p->bias_hh, NULL};
  EXPECT(rnntune_pack(rnn, &weights, buffers->packed, NULL) == RNNTUNE_OK);
  rnntune_forward_args forward = {0};
  forward.x = x;
  forward.y = y;
  const rnntune_mode mode = gradients ? RNNTUNE_TRAINING : RNNTUNE_INFERENCE;
  EXPECT(rnntune_forward(rnn, mode, &forward, buffers, NULL) == RNNTUNE_OK);
  double loss = 0;
  for (int i = 0; i < kTime * kBatch * kHidden; ++i) loss += 0.5 * y[i] * y[i];
  if (gradients == NULL) return loss;

  float dx[kTime * kBatch * kInput];
  rnntune_backward_data_args data = {0};
  data.x = x;
  data.y = y;
  data.dy = y;
  data.dx = dx;
  EXPECT(rnntune_backward_data(rnn, &data, buffers, NULL) == RNNTUNE_OK);
  memset(gradients, 0, sizeof *gradients);
  rnntune_layer_gradients layer = {gradients->weight_ih, gradients->weight_hh, gradients->bias_ih,
                                   gradients->bias_hh, NULL};
  const rnntune_backward_weights_args backward = {x, NULL, y, &layer};
  EXPECT(rnntune_backward_weights(rnn, &backward, buffers, NULL) == RNNTUNE_OK);
  return loss;
}

static void test_training(rnntune_device* device) {
  rnntune_options options = {0};
  const char* const databases[] = {"there-is-no-such-file.json"};
  options.databases = databases;
  options.database_count = 1;
  options.no_default_databases = 1;
  rnntune_rnn* rnn = NULL;
  EXPECT(rnntune_rnn_create(kProblem, device, &options, &rnn) == RNNTUNE_OK);
  if (rnn == NULL) return;
  EXPECT(strstr(rnntune_explain(rnn), "default") != NULL);
  EXPECT(strstr(rnntune_explain(rnn), databases[0]) != NULL);

  rnntune_buffers buffers = {{NULL, rnntune_packed_bytes(rnn)},
                             {NULL, rnntune_workspace_bytes(rnn)},
                             {NULL, rnntune_reserve_bytes(rnn)}};
  EXPECT(buffers.reserve.bytes > 0);
  rnntune_memory* const all[] = {&buffers.packed, &buffers.workspace, &buffers.reserve};
  for (int i = 0; i < 3; ++i) all[i]->data = allocate(device, all[i]->bytes);

  parameters p, gradients;
  float x[kTime * kBatch * kInput];
  fill((float*)&p, kParameters, 0.5f);
  fill(x, kTime * kBatch * kInput, 1.0f);
  const double before = step(rnn, &buffers, x, &p, &gradients);
  EXPECT(before > 0);
  EXPECT(fabs(step(rnn, &buffers, x, &p, NULL) - before) < 1e-5 * before);

  double squared = 0;
  const float rate = 1e-3f;
  for (int i = 0; i < kParameters; ++i) {
    const float gradient = ((const float*)&gradients)[i];
    squared += gradient * gradient;
    ((float*)&p)[i] -= rate * gradient;
  }
  /* First order: the loss falls by rate * |gradient|^2. */
  const double fall = before - step(rnn, &buffers, x, &p, NULL);
  EXPECT(squared > 0);
  EXPECT(fabs(fall / (rate * squared) - 1) < 0.05);

  for (int i = 0; i < 3; ++i) rnntune_release(device, all[i]->data);
  rnntune_rnn_destroy(rnn);
}

static void test_failures(rnntune_device* device) {
  rnntune_device* none = NULL;
  rnntune_rnn* rnn = NULL;
  EXPECT(rnntune_device_open("abacus", 0, &none) != RNNTUNE_OK);
  EXPECT(none == NULL && strstr(rnntune_last_error(), "abacus") != NULL);
  EXPECT(rnntune_device_open(NULL, 0, &none) == RNNTUNE_INVALID_ARGUMENT);
  EXPECT(strstr(rnntune_last_error(), "name") != NULL);
  EXPECT(rnntune_rnn_create("lstm:T5", device, NULL, &rnn) == RNNTUNE_INVALID_ARGUMENT);
  EXPECT(rnn == NULL && strlen(rnntune_last_error()) > 0);
  EXPECT(rnntune_rnn_create(kProblem, NULL, NULL, &rnn) == RNNTUNE_INVALID_ARGUMENT);
  EXPECT(strstr(rnntune_last_error(), "device") != NULL);

  rnntune_options options = {0};
  options.config = "abacus:beads=7";
  EXPECT(rnntune_rnn_create(kProblem, device, &options, &rnn) != RNNTUNE_OK);
  EXPECT(rnn == NULL && strstr(rnntune_last_error(), "abacus") != NULL);

  EXPECT(rnntune_rnn_create(kProblem, device, NULL, &rnn) == RNNTUNE_OK);
  const rnntune_buffers nothing = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
  rnntune_forward_args forward = {0};
  EXPECT(rnntune_forward(rnn, RNNTUNE_TRAINING, NULL, &nothing, NULL) == RNNTUNE_INVALID_ARGUMENT);
  EXPECT(rnntune_forward(rnn, RNNTUNE_TRAINING, &forward, &nothing, NULL) ==
         RNNTUNE_INVALID_ARGUMENT);
  EXPECT(rnntune_pack(rnn, NULL, nothing.packed, NULL) == RNNTUNE_INVALID_ARGUMENT);
  rnntune_rnn_destroy(rnn);
  rnntune_rnn_destroy(NULL);
  rnntune_device_close(NULL);
}

int main(void) {
  rnntune_device* device = NULL;
  EXPECT(rnntune_device_open("cpu", 2, &device) == RNNTUNE_OK);
  if (device != NULL) {
    test_training(device);
    test_failures(device);
  }
  rnntune_device_close(device);
  return failures == 0 ? 0 : 1;
}
