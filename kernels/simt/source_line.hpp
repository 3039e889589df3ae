// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace rnntune::simt {

// "file.cuh:38" of the call that returns to `pc`, by addr2line and debug information; where either
// is missing the address in its binary, "program+0x1234".
std::string source_line(const void* pc);

// Whether the program itself has this memory and never writes it, as it has tables of constants.
bool is_constant(const void* at);

}  // namespace rnntune::simt
