// SPDX-License-Identifier: Apache-2.0
#include "rnntune/result.hpp"

namespace rnntune {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid argument";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::size_overflow:
      return "size overflow";
    case ErrorCode::out_of_memory:
      return "out of memory";
    case ErrorCode::not_found:
      return "not found";
    case ErrorCode::bad_file:
      return "bad file";
    case ErrorCode::internal:
      return "internal error";
    case ErrorCode::resource_limit:
      return "resource limit";
  }
  return "unknown error";
}

}  // namespace rnntune
