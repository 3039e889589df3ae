// SPDX-License-Identifier: Apache-2.0
// The BLAS libraries of the CPU. They are opened with dlopen when first asked for, so librnntune
// links none of them and runs without; an absent one leaves a reason.
//
// Threads: inside an OpenMP region of ours every thread calls the library on its own slice of the
// product. An OpenMP build of OpenBLAS and oneDNN see that they are inside a region and stay on the
// calling thread. An OpenBLAS with a thread pool of its own (Debian's -pthread build) would not:
// its thread number is set to 1, for the whole process, when a plan first needs it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rnntune/device.hpp"

namespace rnntune {

using Gemm64 = GemmOf<double>;  // what the float64 reference uses

struct Blas {
  std::string name;     // "openblas", "onednn": a config's value of the parameter blas
  std::string version;  // "0.3.21 (openmp, SkylakeX)"
  void (*sgemm)(const Gemm&) = nullptr;
  void (*dgemm)(const Gemm64&) = nullptr;  // null: the library has none
};

// Every library of the table that loads here, in the table's order; the first is the default.
const std::vector<Blas>& blas_libraries();
// One sentence for every library of the table that does not.
const std::vector<std::string>& absent_blas();

const Blas* best_blas();                       // null: none loads
const Blas* find_blas(std::string_view name);  // null: not loaded

// Negative sizes, and leading dimensions that are too small, are errors that name the argument; so
// are sizes beyond the 31 bits of the libraries' integers.
Status check_gemm(const Gemm& gemm);

// Part `id` of `parts` of a product: columns of C or rows, whichever there are more of, in steps of
// 16, so that the parts write disjoint cache lines where C is aligned. May be empty (m or n = 0).
Gemm slice_gemm(const Gemm& gemm, int parts, int id);

}  // namespace rnntune
