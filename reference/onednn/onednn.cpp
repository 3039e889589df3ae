// SPDX-License-Identifier: Apache-2.0
// Two versions of oneDNN share their symbols' names, so each comes through a plugin of its own,
// loaded into a scope of its own. Plugins lie beside the program in a build tree, or under
// <libdir>/rnntune where it was installed.
#include "reference/onednn/onednn.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <mutex>

#include "reference/compare.hpp"
#include "reference/onednn/plugin.hpp"

namespace rnntune::reference {
namespace {

struct PluginName {
  const char* file;
  const char* what;
};

constexpr PluginName kPlugins[] = {
    {"rnntune_onednn_system.so", "oneDNN of the distribution"},
    {"rnntune_onednn_wheel.so", "oneDNN of the Python environment"},
};

// Deep binding keeps a plugin's oneDNN and OpenMP to itself whatever the program has loaded;
// the address sanitizer refuses it.
#if defined(__SANITIZE_ADDRESS__)
constexpr int kDeepBind = 0;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr int kDeepBind = 0;
#else
constexpr int kDeepBind = RTLD_DEEPBIND;
#endif
#else
constexpr int kDeepBind = RTLD_DEEPBIND;
#endif

class Onednn final : public Opponent {
 public:
  explicit Onednn(OnednnPlugin plugin) : plugin_(std::move(plugin)) {}

  std::string name() const override { return "onednn"; }
  std::string version() const override { return plugin_.version; }

  std::string why_not(const Problem& problem) const override {
    if (std::string reason = onednn_why_not(problem); !reason.empty()) return reason;
    std::call_once(checked_, [this] {
      broken_ = self_check([this](const Problem& p, const Inputs& in, int threads) {
        return prepare_unchecked(p, in, threads);
      });
    });
    return broken_;
  }

  Result<std::unique_ptr<OpponentRun>> prepare(const Problem& problem, const Inputs& inputs,
                                               const Outputs<double>&, int threads) override {
    if (std::string reason = why_not(problem); !reason.empty())
      return unsupported("oneDNN " + version() + ": " + reason);
    return prepare_unchecked(problem, inputs, threads);
  }

 private:
  Result<std::unique_ptr<OpponentRun>> prepare_unchecked(const Problem& problem,
                                                         const Inputs& inputs, int threads) const {
    std::string why;
    std::unique_ptr<OpponentRun> run = plugin_.prepare(problem, inputs, threads, why);
    if (!run) return unsupported(why);
    return run;
  }

  OnednnPlugin plugin_;
  mutable std::once_flag checked_;
  mutable std::string broken_;
};

std::vector<std::filesystem::path> plugin_folders() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const auto here = program.parent_path();
  return {here, here.parent_path() / "reference", here / RNNTUNE_PLUGINS_FROM_BIN};
}

// The plugin stays loaded until the program ends: runs hold code of it.
std::shared_ptr<Opponent> load(const std::filesystem::path& file, std::string& why_not) {
  void* module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | kDeepBind);
  if (!module) {
    why_not = dlerror();
    return nullptr;
  }
  const auto entry = reinterpret_cast<OnednnEntry>(dlsym(module, kOnednnEntry));
  OnednnPlugin plugin;
  if (!entry) {
    why_not = file.string() + " has no " + kOnednnEntry;
    return nullptr;
  }
  if (!entry(plugin, why_not)) return nullptr;
  return std::make_shared<Onednn>(std::move(plugin));
}

}  // namespace

std::string onednn_why_not(const Problem& problem) {
  if (problem.cell != Cell::lstm)
    return std::string("no wrapper for the cell ") + to_string(problem.cell) + " yet";
  if (problem.dtype != Dtype::f32)
    return std::string("no wrapper for ") + to_string(problem.dtype) + " yet";
  if (problem.directions != 1) return "no wrapper for two directions (D2) yet";
  if (problem.projection > 0) return "no wrapper for a projection (P) yet";
  return reference_why_not(problem);
}

std::string self_check(const Prepare& prepare) {
  for (const char* text : {"lstm:L1,T1,B1,I1,H1,f32", "lstm:L3,T5,B3,I7,H11,f32"}) {
    const Problem problem = parse_problem(text).value();
    const Inputs inputs = make_inputs(problem, 1);
    auto run = prepare(problem, inputs, 1);
    if (!run.ok()) return "reference broken: " + std::string(text) + ": " + run.error().message;
    // Twice: a step that adds to what the one before it left is as wrong.
    Status status = (*run)->step();
    if (status.ok()) status = (*run)->step();
    const auto out = (*run)->outputs();
    if (!status.ok() || !out.ok())
      return "reference broken: " + std::string(text) + ": " +
             (status.ok() ? out.error() : status.error()).message;
    const auto checks = check_outputs(problem, *out, oracle_step(problem, inputs));
    const TensorCheck& worst = checks.front();
    if (!worst.ok)
      return "reference broken: " + std::string(text) + ": " + worst.tensor + " " + worst.reason;
  }
  return {};
}

std::vector<std::shared_ptr<Opponent>> find_onednn(const OpponentSite&,
                                                   std::vector<std::string>& absent) {
  std::vector<std::shared_ptr<Opponent>> found;
  for (const PluginName& plugin : kPlugins) {
    std::string why_not = "not built";
    std::shared_ptr<Opponent> opponent;
    for (const auto& folder : plugin_folders()) {
      std::error_code error;
      if (!std::filesystem::exists(folder / plugin.file, error)) continue;
      opponent = load(folder / plugin.file, why_not);
      break;
    }
    if (opponent)
      found.push_back(std::move(opponent));
    else
      absent.push_back(std::string(plugin.what) + ": " + why_not);
  }
  return found;
}

}  // namespace rnntune::reference
