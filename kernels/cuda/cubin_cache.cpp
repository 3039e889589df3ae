// SPDX-License-Identifier: Apache-2.0
#include "cuda/cubin_cache.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace rnntune::cuda {
namespace {

namespace fs = std::filesystem;

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string file_of(const std::string& folder, const std::string& key) {
  return folder + "/" + hex(hash_text(key)) + ".cubin";
}

// A file is its checksum in hexadecimal and fields, each after its length in decimal and a newline.
std::string serialize(const std::string& key, const CachedBinary& binary) {
  std::string body;
  for (const std::string* field : {&key, &binary.lowered_name, &binary.log, &binary.cubin}) {
    body += std::to_string(field->size()) + "\n" + *field;
  }
  return hex(hash_text(body)) + body;
}

std::optional<std::vector<std::string>> parse(std::string_view file) {
  constexpr std::size_t kChecksum = 16;
  if (file.size() < kChecksum) return {};
  std::string_view body = file.substr(kChecksum);
  if (hex(hash_text(body)) != file.substr(0, kChecksum)) return {};
  std::vector<std::string> fields;
  while (!body.empty()) {
    std::size_t size = 0, at = 0;
    for (; at < body.size() && body[at] >= '0' && body[at] <= '9' && at < kChecksum; ++at) {
      size = size * 10 + std::size_t(body[at] - '0');
    }
    if (at >= body.size() || body[at] != '\n' || body.size() - at - 1 < size) return {};
    fields.emplace_back(body.substr(at + 1, size));
    body.remove_prefix(at + 1 + size);
  }
  return fields;
}

}  // namespace

std::uint64_t hash_text(std::string_view text, std::uint64_t state) {
  for (const char byte : text) {
    state = (state ^ static_cast<unsigned char>(byte)) * std::uint64_t{1099511628211u};
  }
  return state;
}

std::optional<CachedBinary> load_binary(const std::string& folder, const std::string& key) {
  if (folder.empty()) return {};
  std::ifstream stream(file_of(folder, key), std::ios::binary);
  if (!stream) return {};
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  std::optional<std::vector<std::string>> fields = parse(file);
  if (!fields || fields->size() != 4 || (*fields)[0] != key) return {};
  return CachedBinary{(*fields)[1], (*fields)[3], (*fields)[2]};
}

void save_binary(const std::string& folder, const std::string& key, const CachedBinary& binary) {
  if (folder.empty()) return;
  static std::atomic<unsigned> count{0};
  std::error_code error;
  fs::create_directories(folder, error);
  const std::string path = file_of(folder, key);
  const std::string temporary =
      path + "." + std::to_string(getpid()) + "." + std::to_string(count++) + ".tmp";
  {
    std::ofstream stream(temporary, std::ios::binary);
    stream << serialize(key, binary);
    stream.close();
    if (stream) fs::rename(temporary, path, error);
    if (stream && !error) return;
  }
  fs::remove(temporary, error);
}

}  // namespace rnntune::cuda
