// SPDX-License-Identifier: Apache-2.0
#include "cuda/compiler.hpp"

#include <optional>

#include "cuda/cubin_cache.hpp"
#include "cuda/parallel.hpp"

namespace rnntune::cuda {
namespace {

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<std::string> options_for(const std::string& architecture) {
  return {"--gpu-architecture=" + architecture, "--std=c++20", "--ptxas-options=-v"};
}

// A program that is destroyed on every way out.
class Program {
 public:
  explicit Program(const Nvrtc& nvrtc) : nvrtc_(nvrtc) {}
  Program(const Program&) = delete;
  ~Program() {
    if (program_ != nullptr) nvrtc_.nvrtcDestroyProgram(&program_);
  }

  nvrtcResult create(const std::string& source, std::span<const KernelText> texts) {
    std::vector<std::string> copies;  // the embedded text has no terminating zeros of its own
    std::vector<const char*> names, bodies;
    copies.reserve(2 * texts.size());
    for (const KernelText& text : texts) {
      names.push_back(copies.emplace_back(text.name).c_str());
      bodies.push_back(copies.emplace_back(text.text).c_str());
    }
    return nvrtc_.nvrtcCreateProgram(&program_, source.c_str(), "instance.cu", int(texts.size()),
                                     bodies.data(), names.data());
  }

  nvrtcProgram get() const { return program_; }

  std::string log() const {
    std::size_t size = 0;
    if (nvrtc_.nvrtcGetProgramLogSize(program_, &size) != NVRTC_SUCCESS || size == 0) return {};
    std::string text(size, '\0');
    if (nvrtc_.nvrtcGetProgramLog(program_, text.data()) != NVRTC_SUCCESS) return {};
    text.resize(text.find_last_not_of(std::string("\0\n", 2)) + 1);
    return text;
  }

 private:
  const Nvrtc& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace

std::string kernel_cache(const std::string& cache_folder) {
  return cache_folder.empty() ? "" : cache_folder + "/kernels";
}

Compiler::Compiler(Nvrtc nvrtc, std::span<const KernelText> texts, std::string cache_folder,
                   int threads)
    : nvrtc_(nvrtc),
      texts_(texts),
      cache_folder_(std::move(cache_folder)),
      threads_(thread_count(threads)) {
  int major = 0, minor = 0;
  nvrtc_.nvrtcVersion(&major, &minor);
  std::uint64_t hash = hash_text({});
  // Names and texts with their lengths, so that no two lists of files read the same.
  for (const KernelText& text : texts_) {
    for (const std::string_view part : {text.name, text.text}) {
      hash = hash_text(part, hash_text(std::to_string(part.size()) + ":", hash));
    }
  }
  identity_ = "nvrtc " + std::to_string(major) + "." + std::to_string(minor) + "\ntexts " +
              std::to_string(hash) + "\n";
}

Result<Binary> Compiler::compile(const gpu::KernelId& kernel,
                                 const std::string& architecture) const {
  const std::vector<std::string> options = options_for(architecture);
  const std::string key =
      identity_ + kernel.file + "\n" + kernel.expression + "\n" + join(options) + "\n";
  if (std::optional<CachedBinary> cached = load_binary(cache_folder_, key)) {
    Binary binary{std::move(cached->lowered_name),
                  std::move(cached->cubin),
                  std::move(cached->log),
                  {},
                  true};
    binary.usage = parse_ptxas_log(binary.log, binary.lowered_name);
    return binary;
  }
  Result<Binary> binary = compile_text(kernel, options);
  if (binary.ok())
    save_binary(cache_folder_, key, {binary->lowered_name, binary->cubin, binary->log});
  return binary;
}

Result<Binary> Compiler::compile_text(const gpu::KernelId& kernel,
                                      const std::vector<std::string>& options) const {
  Program program(nvrtc_);
  const auto failure = [&](const char* call, nvrtcResult result) {
    const std::string log = program.get() == nullptr ? "" : program.log();
    return Error{ErrorCode::internal, "kernel " + kernel.expression + " of " + kernel.file + " (" +
                                          join(options) + "): " + call + ": " +
                                          nvrtc_.nvrtcGetErrorString(result) +
                                          (log.empty() ? "" : "\n" + log)};
  };
  nvrtcResult result = program.create("#include \"" + kernel.file + "\"\n", texts_);
  if (result != NVRTC_SUCCESS) return failure("nvrtcCreateProgram", result);
  result = nvrtc_.nvrtcAddNameExpression(program.get(), kernel.expression.c_str());
  if (result != NVRTC_SUCCESS) return failure("nvrtcAddNameExpression", result);
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  result = nvrtc_.nvrtcCompileProgram(program.get(), int(words.size()), words.data());
  if (result != NVRTC_SUCCESS) return failure("nvrtcCompileProgram", result);

  const char* lowered = nullptr;
  result = nvrtc_.nvrtcGetLoweredName(program.get(), kernel.expression.c_str(), &lowered);
  if (result != NVRTC_SUCCESS) return failure("nvrtcGetLoweredName", result);
  std::size_t size = 0;
  result = nvrtc_.nvrtcGetCUBINSize(program.get(), &size);
  if (result != NVRTC_SUCCESS) return failure("nvrtcGetCUBINSize", result);
  Binary binary;
  binary.lowered_name = lowered;
  binary.cubin.resize(size);
  result = nvrtc_.nvrtcGetCUBIN(program.get(), binary.cubin.data());
  if (result != NVRTC_SUCCESS) return failure("nvrtcGetCUBIN", result);
  binary.log = program.log();
  binary.usage = parse_ptxas_log(binary.log, binary.lowered_name);
  return binary;
}

Result<std::vector<Binary>> Compiler::compile(std::span<const gpu::KernelId> kernels,
                                              const std::string& architecture) const {
  std::vector<std::optional<Result<Binary>>> results(kernels.size());
  in_parallel(kernels.size(), threads_, [&](std::size_t i) {
    results[i] = compile(kernels[i], architecture);
    return results[i]->ok();
  });
  // Kernels are taken in order: before the first failure there is nothing that did not run.
  std::vector<Binary> binaries;
  for (std::optional<Result<Binary>>& result : results) {
    if (!result->ok()) return result->error();
    binaries.push_back(std::move(result->value()));
  }
  return binaries;
}

}  // namespace rnntune::cuda
