// SPDX-License-Identifier: Apache-2.0
#pragma once

// Before a loop over a constant range whose arrays must become registers.
#if defined(__clang__)
#define RNNTUNE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define RNNTUNE_UNROLL _Pragma("GCC unroll 16")
#endif
