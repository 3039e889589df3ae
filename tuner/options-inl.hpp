// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "tuner/command.hpp"

namespace rnntune::tuner {

template <class T>
T value_or_throw(Result<T> result) {
  if (!result.ok()) throw BadInput(result.error().message);
  return std::move(result.value());
}

}  // namespace rnntune::tuner
