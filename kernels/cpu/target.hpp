// SPDX-License-Identifier: Apache-2.0
// Chooses the instruction set that Highway's headers then speak for. Kernel sources are compiled
// once for each target of RNNTUNE_TARGETS, as a translation unit of its own, so that all cores
// share the work; kernels/meson.build names the one at hand in RNNTUNE_TARGET. No flag such as
// -mavx2 is involved: only functions between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE use the
// instructions, and an inline function of a header stays what every CPU can run.
#pragma once

#ifdef HWY_HIGHWAY_INCLUDED
#error "cpu/target.hpp must come before everything that includes <hwy/highway.h>"
#endif

#include <hwy/detect_targets.h>

#undef HWY_TARGET
#define HWY_TARGET RNNTUNE_TARGET

#include <hwy/highway.h>
