// SPDX-License-Identifier: Apache-2.0
// Compiled kernels on disk: one file for each key. Files that are damaged, or of another key, count
// as absent. Writers replace whole files, so that any number of processes may share a folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rnntune::cuda {

struct CachedBinary {
  std::string lowered_name, cubin, log;
};

// FNV-1a: tells texts apart, withstands no attacker.
std::uint64_t hash_text(std::string_view text,
                        std::uint64_t state = std::uint64_t{14695981039346656037u});

// `key` names everything that the result depends on. An empty folder holds nothing.
std::optional<CachedBinary> load_binary(const std::string& folder, const std::string& key);
// A failure is not an error: the kernel is compiled again next time.
void save_binary(const std::string& folder, const std::string& key, const CachedBinary& binary);

}  // namespace rnntune::cuda
