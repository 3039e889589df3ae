// SPDX-License-Identifier: Apache-2.0
// Holding oneDNN to a thread count, which only its OpenMP builds allow per call.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

// Declared here rather than by <omp.h>: the plugin links the OpenMP runtime that oneDNN uses
// (libgomp), whatever the compiler's own is.
extern "C" void omp_set_num_threads(int threads);
extern "C" int omp_get_max_threads();

namespace rnntune::reference::onednn {

// Threads of the calls made while this is alive; 0 leaves the default.
class ThreadLimit {
 public:
  explicit ThreadLimit(int threads) : before_(omp_get_max_threads()) {
    if (threads > 0) omp_set_num_threads(threads);
  }
  ~ThreadLimit() { omp_set_num_threads(before_); }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

}  // namespace rnntune::reference::onednn
