// SPDX-License-Identifier: Apache-2.0
#include "device/blas.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <limits>

namespace rnntune {
namespace {

// cblas.h and dnnl.h, as far as they are called; neither header is needed to build.
constexpr int kColumnMajor = 102, kNoTrans = 111, kTrans = 112;
using CblasSgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*,
                            int, float, float*, int);
using CblasDgemm = void (*)(int, int, int, int, int, int, double, const double*, int, const double*,
                            int, double, double*, int);
using DnnlSgemm = int (*)(char, char, std::int64_t, std::int64_t, std::int64_t, float, const float*,
                          std::int64_t, const float*, std::int64_t, float, float*, std::int64_t);
struct DnnlVersion {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};

CblasSgemm cblas_sgemm = nullptr;
CblasDgemm cblas_dgemm = nullptr;
DnnlSgemm dnnl_sgemm = nullptr;

void openblas_sgemm(const Gemm& g) {
  if (g.m == 0 || g.n == 0) return;
  cblas_sgemm(kColumnMajor, g.transpose_a ? kTrans : kNoTrans, g.transpose_b ? kTrans : kNoTrans,
              int(g.m), int(g.n), int(g.k), g.alpha, g.a, int(g.lda), g.b, int(g.ldb), g.beta, g.c,
              int(g.ldc));
}

void openblas_dgemm(const Gemm64& g) {
  if (g.m == 0 || g.n == 0) return;
  cblas_dgemm(kColumnMajor, g.transpose_a ? kTrans : kNoTrans, g.transpose_b ? kTrans : kNoTrans,
              int(g.m), int(g.n), int(g.k), g.alpha, g.a, int(g.lda), g.b, int(g.ldb), g.beta, g.c,
              int(g.ldc));
}

// dnnl_sgemm is row-major: C^T = op(B)^T op(A)^T is our product read by rows.
void onednn_sgemm(const Gemm& g) {
  if (g.m == 0 || g.n == 0) return;
  dnnl_sgemm(g.transpose_b ? 'T' : 'N', g.transpose_a ? 'T' : 'N', g.n, g.m, g.k, g.alpha, g.b,
             g.ldb, g.a, g.lda, g.beta, g.c, g.ldc);
}

template <class Function>
bool load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Fills the functions and the version; an empty string, or what the library lacks.
std::string load_openblas(void* library, Blas& blas) {
  const char* (*config)() = nullptr;
  const char* (*core)() = nullptr;
  int (*parallel)() = nullptr;
  void (*set_threads)(int) = nullptr;
  if (!load(library, "cblas_sgemm", cblas_sgemm)) return "has no cblas_sgemm";
  if (!load(library, "cblas_dgemm", cblas_dgemm)) return "has no cblas_dgemm";
  if (!load(library, "openblas_get_config", config) ||
      !load(library, "openblas_get_corename", core) ||
      !load(library, "openblas_get_parallel", parallel) ||
      !load(library, "openblas_set_num_threads", set_threads)) {
    return "is not OpenBLAS";
  }
  constexpr const char* kParallel[] = {"sequential", "pthreads", "openmp"};
  const int kind = std::clamp(parallel(), 0, 2);
  if (kind == 1) set_threads(1);
  const std::string text = config();  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  const auto begin = std::min(text.find(' '), text.size() - 1) + 1;
  blas.version = text.substr(begin, text.find(' ', begin) - begin) + " (" + kParallel[kind] + ", " +
                 core() + ")";
  blas.sgemm = openblas_sgemm;
  blas.dgemm = openblas_dgemm;
  return {};
}

std::string load_onednn(void* library, Blas& blas) {
  const DnnlVersion* (*version)() = nullptr;
  if (!load(library, "dnnl_sgemm", dnnl_sgemm)) return "has no dnnl_sgemm";
  if (!load(library, "dnnl_version", version)) return "has no dnnl_version";
  const DnnlVersion* const v = version();
  blas.version =
      std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  // dnnl_config.h: 2 is OpenMP. With another runtime a call inside our region opens one of its own.
  if (v->cpu_runtime != 2 && v->cpu_runtime != 1) return "is built for another threading runtime";
  blas.sgemm = onednn_sgemm;
  return {};
}

struct Library {
  const char* name;
  std::vector<const char*> files;  // the first that opens is used
  std::string (*load)(void* library, Blas& blas);
};

struct Loaded {
  std::vector<Blas> present;
  std::vector<std::string> absent;
};

// The libraries stay open: nothing may unmap code that a plan on another thread runs.
Loaded load_all() {
  const Library table[] = {
      {"openblas", {"libopenblas.so.0", "libopenblas.so"}, load_openblas},
      {"onednn", {"libdnnl.so.3", "libdnnl.so.2"}, load_onednn},
  };
  Loaded loaded;
  for (const Library& row : table) {
    std::string why;
    void* library = nullptr;
    for (const char* file : row.files) {
      library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) break;
      if (why.empty()) why = dlerror();
    }
    Blas blas;
    blas.name = row.name;
    if (library != nullptr) why = row.load(library, blas);
    if (why.empty()) {
      loaded.present.push_back(std::move(blas));
    } else {
      loaded.absent.push_back(std::string(row.name) + ": " + why);
    }
  }
  return loaded;
}

const Loaded& libraries() {
  static const Loaded loaded = load_all();
  return loaded;
}

Status too_small(const char* name, std::int64_t least, std::int64_t got) {
  return invalid_argument(std::string("gemm: ") + name + ": expected at least " +
                          std::to_string(least) + ", got " + std::to_string(got));
}

}  // namespace

const std::vector<Blas>& blas_libraries() { return libraries().present; }
const std::vector<std::string>& absent_blas() { return libraries().absent; }
const Blas* best_blas() { return blas_libraries().empty() ? nullptr : &blas_libraries().front(); }

const Blas* find_blas(std::string_view name) {
  for (const Blas& blas : blas_libraries()) {
    if (blas.name == name) return &blas;
  }
  return nullptr;
}

Status check_gemm(const Gemm& g) {
  const struct {
    const char* name;
    std::int64_t value, least;
  } rows[] = {{"m", g.m, 0},
              {"n", g.n, 0},
              {"k", g.k, 0},
              {"lda", g.lda, std::max<std::int64_t>(1, g.transpose_a ? g.k : g.m)},
              {"ldb", g.ldb, std::max<std::int64_t>(1, g.transpose_b ? g.n : g.k)},
              {"ldc", g.ldc, std::max<std::int64_t>(1, g.m)}};
  for (const auto& row : rows) {
    if (row.value < row.least) return too_small(row.name, row.least, row.value);
    if (row.value > std::numeric_limits<int>::max()) {
      return unsupported(std::string("gemm: ") + row.name + ": " + std::to_string(row.value) +
                         " does not fit the 31 bits of a BLAS integer");
    }
  }
  return {};
}

Gemm slice_gemm(const Gemm& gemm, int parts, int id) {
  if (parts == 1) return gemm;
  constexpr std::int64_t kGrain = 16;
  const bool columns = gemm.n > gemm.m;
  const std::int64_t size = columns ? gemm.n : gemm.m;
  const std::int64_t grains = (size + kGrain - 1) / kGrain;
  const auto bound = [&](std::int64_t i) { return std::min(size, grains * i / parts * kGrain); };
  const std::int64_t begin = bound(id), count = bound(id + 1) - begin;
  Gemm part = gemm;
  if (columns) {
    part.n = count;
    part.b += begin * (gemm.transpose_b ? 1 : gemm.ldb);
    part.c += begin * gemm.ldc;
  } else {
    part.m = count;
    part.a += begin * (gemm.transpose_a ? gemm.lda : 1);
    part.c += begin;
  }
  return part;
}

}  // namespace rnntune
