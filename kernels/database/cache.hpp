// SPDX-License-Identifier: Apache-2.0
// Database files as the lookup wants them: parsed once, indexed by problem, read again when they
// changed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "database/database.hpp"

namespace rnntune {

struct CachedRecord {
  const DeviceRecord* record;
  std::multimap<std::string, const Entry*> by_problem;  // canonical problem string
};

struct CachedDatabase {
  Database database;
  std::vector<CachedRecord> records;
  std::string error;  // not empty: the file was refused, and why
  bool missing = false;
};

// Never null. What it returns stays as it is when the file changes. Callable from any thread.
std::shared_ptr<const CachedDatabase> cached_database(const std::string& path);

}  // namespace rnntune
