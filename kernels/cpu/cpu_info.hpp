// SPDX-License-Identifier: Apache-2.0
// What this CPU is and how much of it this process may use. The facts come from /proc, /sys and
// Highway's run-time detection; a fact that the system does not tell is 0 or "unknown".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rnntune/result.hpp"

namespace rnntune::cpu {

struct CpuInfo {
  std::string vendor;         // "AuthenticAMD"; on Arm the implementer code, "0x41"
  std::string name;           // product name, information only
  std::string machine;        // "x86_64", "aarch64"
  int family = 0;             // on Arm the architecture version
  int model = 0;              // on Arm the part number
  int stepping = 0;           // on Arm the revision
  std::int64_t l1_bytes = 0;  // data cache of one core
  std::int64_t l2_bytes = 0;  // of one core
  std::int64_t l3_bytes = 0;  // as shared by the cores around core 0
  std::int64_t memory_bytes = 0;
};

CpuInfo detect_cpu();

// Instruction sets that kernels may be run with here, best first, none above `cap` (empty: no cap).
// Both this CPU and this build have them. Names are Highway's targets in lower case, "avx512" for
// AVX3: "avx512" (F, VL, BW, DQ, CD), "avx2", "sse4", "ssse3", "neon", "sve", ...; the last one is
// what the build itself assumes, "baseline" where that is portable code without vector
// instructions. An unknown or absent cap is an error that lists the names.
Result<std::vector<std::string>> instruction_sets(std::string_view cap);

// How many threads a device has where nobody asks for a number, and what decided it.
struct DefaultThreads {
  int count = 1;
  std::string from;  // for people: "the affinity mask", "OMP_NUM_THREADS"
};

// The smallest of: the affinity mask, the CPU quota of the control group (whole cores: 1.5 gives
// 1), OMP_THREAD_LIMIT, OMP_NUM_THREADS (of a list the first, the outermost level). At least 1.
DefaultThreads default_threads();

// The quota alone, in whole cores but at least 1, read below `root` ("" in life, a folder with
// proc/ and sys/ in tests); 0 where there is none.
int cgroup_quota(const std::string& root);

}  // namespace rnntune::cpu
