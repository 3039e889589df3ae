// SPDX-License-Identifier: Apache-2.0
// Changing a tuning database on disk. Readers never lock: they see the old file or the new one.
#pragma once

#include <functional>
#include <string>

#include "database/database.hpp"

namespace rnntune::tuner {

// Reads the file (none, or an empty one: an empty database), lets `change` edit it and replaces it:
// lock file, temporary file beside it, fsync, rename. Permissions stay, a symbolic link is
// followed. Fails without touching the file where it is damaged, newer than this program,
// read-only, or where check_entry rejects what `change` left. Concurrent writers wait for each
// other.
Status update_database(const std::string& path, const std::function<void(Database&)>& change);

// Whether update_database could write there, asked before hours of tuning. Leaves nothing behind.
Status check_writable(const std::string& path);

// Adds what `from` has to `into`. Of two entries of the same device, problem and objective the one
// that better() prefers stays. Idempotent, and independent of order and grouping.
void merge(Database& into, const Database& from);

}  // namespace rnntune::tuner
