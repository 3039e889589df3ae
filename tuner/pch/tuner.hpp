// SPDX-License-Identifier: Apache-2.0
// Precompiled for the tuner: the headers that take longest to read, and change never.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>
