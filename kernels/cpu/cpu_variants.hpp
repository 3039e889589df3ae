// SPDX-License-Identifier: Apache-2.0
// The rows of the CPU back end in the variant table.
#pragma once

#include "variants.hpp"

namespace rnntune::cpu {

const Variant& cell_variant();
const Variant& pointwise_variant();
const Variant& unfused_variant();

}  // namespace rnntune::cpu
