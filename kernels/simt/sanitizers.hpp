// SPDX-License-Identifier: Apache-2.0
// Whether this translation unit is built with the address sanitizer: g++ and clang++ say so in
// different words.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define RNNTUNE_SIMT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RNNTUNE_SIMT_ADDRESS_SANITIZER 1
#endif
#endif
