// SPDX-License-Identifier: Apache-2.0
#include "database/cache.hpp"

#include <sys/stat.h>

#include <mutex>
#include <tuple>

namespace rnntune {
namespace {

// A writer replaces the file, so that a changed database is another inode; an edit in place shows
// in size or times. Zeros stand for no file.
using Identity = std::tuple<dev_t, ino_t, off_t, std::int64_t, std::int64_t>;

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

Identity identity_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, status.st_size, nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

std::shared_ptr<const CachedDatabase> load(const std::string& path) {
  auto loaded = std::make_shared<CachedDatabase>();
  Result<Database> read = read_database(path);
  if (!read) {
    loaded->error = read.error().message;
    loaded->missing = read.error().code == ErrorCode::not_found;
    return loaded;
  }
  loaded->database = std::move(*read);
  for (const DeviceRecord& record : loaded->database.devices) {
    CachedRecord& cached = loaded->records.emplace_back(CachedRecord{&record, {}});
    for (const Entry& entry : record.entries)
      cached.by_problem.emplace(to_string(entry.problem), &entry);
  }
  return loaded;
}

struct Slot {
  Identity identity;
  std::shared_ptr<const CachedDatabase> file;
};

}  // namespace

std::shared_ptr<const CachedDatabase> cached_database(const std::string& path) {
  constexpr std::size_t kMostFiles = 64;
  static std::mutex mutex;
  static std::map<std::string, Slot> slots;
  // Before the read: a file that is replaced in between is then read once more, never missed.
  const Identity identity = identity_of(path);
  if (identity == Identity{}) return load(path);
  const std::lock_guard lock(mutex);
  const auto at = slots.find(path);
  if (at != slots.end() && at->second.identity == identity) return at->second.file;
  if (slots.size() >= kMostFiles) slots.clear();
  return (slots[path] = {identity, load(path)}).file;
}

}  // namespace rnntune
