// SPDX-License-Identifier: Apache-2.0
// The rows of the CUDA back end in the variant table.
#pragma once

#include "variants.hpp"

namespace rnntune::cuda {

const Variant& pointwise_variant();
const Variant& unfused_variant();

}  // namespace rnntune::cuda
