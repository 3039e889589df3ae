// SPDX-License-Identifier: Apache-2.0
#include "tuner/measure/environment.hpp"

#include <sys/utsname.h>

#include <ctime>
#include <fstream>

#include "rnntune/rnn.hpp"

namespace rnntune::tuner {
namespace {

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "g++ " __VERSION__;
#else
  return "unknown";
#endif
}

// PRETTY_NAME of os-release, or the kernel's own name.
std::string operating_system(const utsname& kernel) {
  const std::string key = "PRETTY_NAME=";
  std::ifstream stream("/etc/os-release");
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind(key, 0) != 0) continue;
    std::string name = line.substr(key.size());
    std::erase(name, '"');
    return name;
  }
  return kernel.sysname;
}

}  // namespace

Environment environment(const Clock& clock) {
  utsname kernel{};
  uname(&kernel);
  Environment environment{{"compiler", compiler()},
                          {"library", version()},
                          {"os", operating_system(kernel)},
                          {"kernel", kernel.release}};
  if (const std::string timer = clock.source(); !timer.empty()) environment["timer"] = timer;
  return environment;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace rnntune::tuner
