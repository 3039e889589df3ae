// SPDX-License-Identifier: Apache-2.0
#include "simt/source_line.hpp"

#include <link.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace rnntune::simt {
namespace {

struct Binary {
  std::uintptr_t address;  // in the process; on return in the binary's own counting
  std::string path;
};

int find_binary(dl_phdr_info* info, std::size_t, void* data) {
  auto& wanted = *static_cast<Binary*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || wanted.address - begin >= segment.p_memsz) continue;
    wanted.address -= info->dlpi_addr;
    wanted.path = *info->dlpi_name ? info->dlpi_name : "/proc/" + std::to_string(getpid()) + "/exe";
    return 1;
  }
  return 0;
}

// Whether the address is in a segment that is not written.
int find_constant(dl_phdr_info* info, std::size_t, void* data) {
  const auto address = *static_cast<const std::uintptr_t*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    if (address - info->dlpi_addr - segment.p_vaddr < segment.p_memsz) return 1;
  }
  return 0;
}

}  // namespace

bool is_constant(const void* at) {
  auto address = reinterpret_cast<std::uintptr_t>(at);
  return dl_iterate_phdr(find_constant, &address) != 0;
}

namespace {

std::string look_up(const void* pc) {
  Binary binary{reinterpret_cast<std::uintptr_t>(pc) - 1, {}};  // within the call
  dl_iterate_phdr(find_binary, &binary);
  char address[32];
  std::snprintf(address, sizeof address, "0x%" PRIxPTR, binary.address);
  const std::string fallback = "program+" + std::string(address);
  if (binary.path.empty() || binary.path.find('\'') != std::string::npos) return fallback;
  const std::string command = "addr2line -e '" + binary.path + "' " + address + " 2>/dev/null";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return fallback;
  char line[4096] = "";
  const bool read = std::fgets(line, sizeof line, pipe) != nullptr;
  pclose(pipe);
  line[std::strcspn(line, " \n")] = '\0';  // " (discriminator 2)" follows
  const char* slash = std::strrchr(line, '/');
  const std::string place = slash ? slash + 1 : line;
  const bool known = read && !place.empty() && place.find('?') == place.npos;
  return known ? place : fallback;
}

}  // namespace

std::string source_line(const void* pc) {
  static std::mutex mutex;
  static std::unordered_map<const void*, std::string> known;  // a process each costs milliseconds
  const std::lock_guard lock(mutex);
  std::string& line = known[pc];
  if (line.empty()) line = look_up(pc);
  return line;
}

}  // namespace rnntune::simt
