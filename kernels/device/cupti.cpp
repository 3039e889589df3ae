// SPDX-License-Identifier: Apache-2.0
#include "device/cupti.hpp"

namespace rnntune {
namespace {

// What a user can do about a refusal.
struct Advice {
  CUptiResult result;
  const char* text;
};
constexpr const char* kPermission =
    "; the administrator must permit it: NVreg_RestrictProfilingToAdminUsers=0, or CAP_SYS_ADMIN";
constexpr Advice kAdvice[] = {
    {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, kPermission},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
     "; the host of this virtual machine must permit it"},
    {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "; another profiler is attached"},
    {CUPTI_ERROR_HARDWARE_BUSY, "; another process is profiling this GPU"},
};

// CUPTI opens these by name when counters are first asked for (0.3 s). Where it lies outside the
// loader's path it finds them only if they are open already; activity records do without them.
void open_parts(const SharedLibrary& library) {
  const std::string folder = library.path().substr(0, library.path().rfind('/') + 1);
  for (const char* part : {"libnvperf_host.so", "libnvperf_target.so"}) {
    const std::string path[] = {folder + part};
    if (!folder.empty()) static_cast<void>(SharedLibrary::open(path, {}).ok());
  }
}

}  // namespace

Result<CuptiActivity> load_cupti_activity(const SharedLibrary& library) {
  CuptiActivity cupti;
  std::string missing;
#define X(name) load_symbol(library, #name, cupti.name, missing);
  RNNTUNE_CUPTI_ACTIVITY(X)
#undef X
  if (Status status = all_loaded(library, missing); !status.ok()) return status.error();
  return cupti;
}

Result<CuptiCounters> load_cupti_counters(const SharedLibrary& library) {
  CuptiCounters cupti;
  std::string missing;
#define X(name) load_symbol(library, #name, cupti.name, missing);
  RNNTUNE_CUPTI_COUNTERS(X)
#undef X
  if (Status status = all_loaded(library, missing); !status.ok()) return status.error();
  open_parts(library);
  return cupti;
}

Result<SharedLibrary> open_cupti(std::span<const std::string> folders) {
  const std::string files[] = {"libcupti.so.13", "libcupti.so.12"};
  return SharedLibrary::open(files, folders);
}

Error cupti_error(decltype(&::cuptiGetResultString) result_string, CUptiResult result,
                  std::string_view call) {
  const char* name = nullptr;
  const bool named = result_string != nullptr && result_string(result, &name) == CUPTI_SUCCESS;
  std::string message = std::string(call) + ": " +
                        (named && name != nullptr ? name : "error " + std::to_string(int(result)));
  for (const Advice& advice : kAdvice) {
    if (advice.result == result) message += advice.text;
  }
  return {ErrorCode::unsupported, message};
}

}  // namespace rnntune
