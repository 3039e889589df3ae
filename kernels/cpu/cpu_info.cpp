// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_info.hpp"

#include <hwy/highway.h>
#include <omp.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "cpu/dispatch.hpp"

namespace rnntune::cpu {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "32K", "1024K", "32M" as sysfs writes them.
std::int64_t parse_size(const std::string& text) {
  char* end = nullptr;
  const std::int64_t value = std::strtoll(text.c_str(), &end, 10);
  switch (*end) {
    case 'K':
      return value << 10;
    case 'M':
      return value << 20;
    case 'G':
      return value << 30;
    default:
      return value;
  }
}

std::int64_t sysfs_cache(int level) {
  for (int index = 0; index < 8; ++index) {
    const std::string dir =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    if (std::atoi(first_line(dir + "level").c_str()) != level) continue;
    if (first_line(dir + "type") == "Instruction") continue;
    return parse_size(first_line(dir + "size"));
  }
  return 0;
}

std::int64_t cache_bytes(int level) {
  if (const std::int64_t bytes = sysfs_cache(level); bytes > 0) return bytes;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  constexpr int kNames[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  return std::max<std::int64_t>(0, sysconf(kNames[level - 1]));
#else
  return 0;
#endif
}

// One row for every key of /proc/cpuinfo that identifies the silicon; x86 and Arm spell them apart.
struct NumberField {
  const char* key;
  int CpuInfo::*member;
};
struct TextField {
  const char* key;
  std::string CpuInfo::*member;
};
constexpr NumberField kNumbers[] = {
    {"cpu family", &CpuInfo::family}, {"model", &CpuInfo::model},
    {"stepping", &CpuInfo::stepping}, {"CPU architecture", &CpuInfo::family},
    {"CPU part", &CpuInfo::model},    {"CPU revision", &CpuInfo::stepping},
};
const TextField kTexts[] = {
    {"vendor_id", &CpuInfo::vendor},
    {"CPU implementer", &CpuInfo::vendor},
    {"model name", &CpuInfo::name},
};

void read_cpuinfo(CpuInfo& info) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const auto start = line.find_first_not_of(" \t", colon + 1);
    if (start == std::string::npos) continue;
    const std::string value = line.substr(start);
    for (const NumberField& field : kNumbers) {
      if (key == field.key) info.*field.member = int(std::strtol(value.c_str(), nullptr, 0));
    }
    for (const TextField& field : kTexts) {
      if (key == field.key) info.*field.member = value;
    }
  }
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// A quota file's folder and all its parents hold; the smallest wins.
double quota_below(std::string dir, const std::string& top, bool v2) {
  double least = 0;
  for (;;) {
    double quota = -1, period = 100000;
    if (v2) {
      std::istringstream line(first_line(dir + "/cpu.max"));  // "max 100000" or "150000 100000"
      if (!(line >> quota >> period)) quota = -1;
    } else if (const std::string text = first_line(dir + "/cpu.cfs_quota_us"); !text.empty()) {
      quota = std::atof(text.c_str());
      period = std::atof(first_line(dir + "/cpu.cfs_period_us").c_str());
    }
    if (quota > 0 && period > 0)
      least = least > 0 ? std::min(least, quota / period) : quota / period;
    if (dir.size() <= top.size()) return least;
    dir.resize(dir.find_last_of('/'));
  }
}

// Cores of this process's mask; at least 1.
int affinity_cores() {
  // The mask is as large as the kernel's; 1024 CPUs do not fit the static cpu_set_t.
  for (int room = 1024; room <= 1 << 16; room *= 2) {
    cpu_set_t* const set = CPU_ALLOC(room);
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(room);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const int cores = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return std::max(1, cores);
  }
  return std::max(1, int(sysconf(_SC_NPROCESSORS_ONLN)));
}

// The variable itself: what OpenMP made of it, a plan's own calls change. 0 where it is not set, or
// is no number that counts.
int omp_num_threads() {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return 0;
  char* end = nullptr;
  const long count = std::strtol(text, &end, 10);
  while (*end == ' ') ++end;
  const bool number = end != text && (*end == '\0' || *end == ',');
  return number && count > 0 && count <= std::numeric_limits<int>::max() ? int(count) : 0;
}

}  // namespace

CpuInfo detect_cpu() {
  CpuInfo info;
  info.vendor = info.name = info.machine = "unknown";
  read_cpuinfo(info);
  if (utsname name{}; uname(&name) == 0) info.machine = name.machine;
  info.l1_bytes = cache_bytes(1);
  info.l2_bytes = cache_bytes(2);
  info.l3_bytes = cache_bytes(3);
  info.memory_bytes = std::int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return info;
}

Result<std::vector<std::string>> instruction_sets(std::string_view cap) {
  std::vector<std::string> names;
  for (const std::int64_t target : usable_targets(HWY_TARGETS, {})) {
    names.push_back(isa_name(target));
  }
  if (cap.empty()) return names;
  const auto first = std::find(names.begin(), names.end(), cap);
  if (first == names.end()) {
    return invalid_argument("isa: expected one of " + join(names) + ", got '" + std::string(cap) +
                            "'");
  }
  names.erase(names.begin(), first);
  return names;
}

int cgroup_quota(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  double least = 0;
  for (std::string line; std::getline(file, line);) {  // "0::/a/b" (v2), "4:cpu,cpuacct:/a/b" (v1)
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find(",cpu,") == std::string::npos) continue;
    const std::string top = root + "/sys/fs/cgroup" + (v2 ? "" : "/cpu");
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    const double quota = quota_below(top + path, top, v2);
    if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
  }
  return least > 0 ? std::max(1, int(least)) : 0;
}

DefaultThreads default_threads() {
  // OpenMP's runtime reads OMP_THREAD_LIMIT itself, and says a huge number where it is not set.
  const DefaultThreads limits[] = {{affinity_cores(), "the affinity mask"},
                                   {cgroup_quota(""), "the control group's CPU quota"},
                                   {omp_get_thread_limit(), "OMP_THREAD_LIMIT"},
                                   {omp_num_threads(), "OMP_NUM_THREADS"}};
  DefaultThreads least = limits[0];
  for (const DefaultThreads& limit : limits)
    if (limit.count > 0 && limit.count < least.count) least = limit;
  return least;
}

}  // namespace rnntune::cpu
