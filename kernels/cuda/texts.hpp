// SPDX-License-Identifier: Apache-2.0
// The text of the kernels, embedded by tools/embed_text.py.
#pragma once

#include <span>
#include <string_view>

namespace rnntune::cuda {

struct KernelText {
  std::string_view name;  // as an #include names it
  std::string_view text;
};

std::span<const KernelText> kernel_texts();

}  // namespace rnntune::cuda
