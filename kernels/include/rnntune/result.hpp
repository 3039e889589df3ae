// SPDX-License-Identifier: Apache-2.0
// How the library reports failure: a value that carries a code and a sentence. Nothing here throws.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "rnntune/export.h"

namespace rnntune {

enum class ErrorCode {
  invalid_argument,  // the caller's arguments: the message names the argument, what was expected,
                     // what came
  unsupported,       // a valid request that no variant or device here can serve
  size_overflow,     // a size does not fit 63 bits; the message names the dimensions
  out_of_memory,     // the message says how many bytes were needed
  not_found,         // a file, device or entry that does not exist
  bad_file,          // a file that exists and cannot be used; the message names path and place
  internal,          // a device or run-time failure
  resource_limit,    // a kernel needs more threads, registers or shared memory than the device has
};

RNNTUNE_EXPORT const char* to_string(ErrorCode code);

struct Error {
  ErrorCode code;
  std::string message;
};

// Either a value or an Error. Test with ok() before using value().
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  const Error& error() const { return std::get<1>(state_); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(value()); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

// Success or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)), ok_(false) {}
  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const { return error_; }

 private:
  Error error_{ErrorCode::internal, {}};
  bool ok_ = true;
};

inline Error invalid_argument(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}
inline Error unsupported(std::string message) {
  return {ErrorCode::unsupported, std::move(message)};
}

}  // namespace rnntune
