// SPDX-License-Identifier: Apache-2.0
#include "tuner/records/database_write.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "database/codec.hpp"

namespace rnntune::tuner {
namespace {

constexpr auto kLockPatience = std::chrono::seconds(60);
constexpr auto kLockPoll = std::chrono::milliseconds(5);

Error cannot(const std::string& what, const std::string& path, const std::string& why) {
  return {ErrorCode::bad_file, "cannot " + what + " " + path + ": " + why};
}

Error cannot(const std::string& what, const std::string& path) {
  return cannot(what, path, std::strerror(errno));
}

class File {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

// The file that a chain of symbolic links ends at, whether it exists or not.
Result<std::string> follow_links(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::filesystem::path at = path;
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code error;
    if (!std::filesystem::is_symlink(at, error)) return at.string();
    at = at.parent_path() / std::filesystem::read_symlink(at, error);
  }
  return cannot("write", path, "too many symbolic links");
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// What can be said before trying: the file may be replaced and its folder takes files.
Status check_place(const std::string& path) {
  if (path.empty()) return cannot("write", "a database", "the path is empty");
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return cannot("write", path, "it is a directory");
    if (!S_ISREG(status.st_mode)) return cannot("write", path, "it is not a regular file");
    // A mode without any write bit is a wish that holds for root as well.
    if ((status.st_mode & 0222) == 0 || ::access(path.c_str(), W_OK) != 0)
      return cannot("write", path, "it is read-only");
  } else if (errno != ENOENT) {
    return cannot("write", path);
  }
  const std::string folder = folder_of(path);
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return cannot("write", path, "there is no folder '" + folder + "'");
  return {};
}

// Held from construction to destruction; the lock file is gone afterwards. Whoever waited for a
// file that was removed meanwhile holds a lock on nothing, sees that by the inode and starts over.
class Lock {
 public:
  static Result<Lock> take(const std::string& path) {
    const auto deadline = std::chrono::steady_clock::now() + kLockPatience;
    while (true) {
      File file(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
      if (!file.open()) return cannot("create the lock file", path);
      while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return cannot("lock", path);
        if (std::chrono::steady_clock::now() > deadline)
          return cannot("lock", path, "another process has held it for a minute");
        std::this_thread::sleep_for(kLockPoll);
      }
      struct stat held {};
      struct stat named {};
      if (::fstat(file.get(), &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
          held.st_ino == named.st_ino && held.st_dev == named.st_dev)
        return Lock(path, std::move(file));
    }
  }

  Lock(Lock&& other) noexcept = default;
  Lock& operator=(Lock&&) = delete;
  ~Lock() {
    if (file_.open()) ::unlink(path_.c_str());
  }

 private:
  Lock(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  File file_;
};

Status write_all(int file, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return cannot("write", path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

// Only the holder of the lock makes this file: one left by a killed process is in nobody's way.
Result<File> create_temporary(const std::string& path) {
  ::unlink(path.c_str());
  File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.open()) return cannot("create", path);
  return file;
}

Status fill_temporary(const File& file, const std::string& temporary, const std::string& target,
                      const std::string& text) {
  struct stat old {};
  if (::stat(target.c_str(), &old) == 0) {
    // Only root may give the file back to its owner; for everyone else it stays as created.
    if (::fchown(file.get(), old.st_uid, old.st_gid) != 0 && errno != EPERM)
      return cannot("set the owner of", temporary);
    if (::fchmod(file.get(), old.st_mode & 07777) != 0)
      return cannot("set the permissions of", temporary);
  }
  if (Status status = write_all(file.get(), temporary, text); !status) return status;
  if (::fsync(file.get()) != 0) return cannot("write", temporary);
  return {};
}

Status replace(const std::string& target, const std::string& text) {
  const std::string temporary = target + ".tmp";
  Result<File> file = create_temporary(temporary);
  if (!file) return file.error();
  Status status = fill_temporary(*file, temporary, target, text);
  if (status && ::rename(temporary.c_str(), target.c_str()) != 0)
    status = cannot("replace", target);
  if (!status) {
    ::unlink(temporary.c_str());
    return status;
  }
  // The rename itself must survive a power cut.
  const File folder(::open(folder_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.open()) ::fsync(folder.get());
  return {};
}

Result<Database> read_or_new(const std::string& path) {
  std::error_code error;
  if (std::filesystem::file_size(path, error) == 0 && !error) return Database{};
  Result<Database> database = read_database(path);
  if (!database && database.error().code == ErrorCode::not_found) return Database{};
  return database;
}

Status check_entries(const Database& database) {
  for (const DeviceRecord& record : database.devices)
    for (const Entry& entry : record.entries)
      if (const Status status = check_entry(entry); !status)
        return invalid_argument("entry of " + to_string(entry.problem) + " for " +
                                record.device.key + ": " + status.error().message);
  return {};
}

void add_skipped(std::vector<Skipped>& into, const std::vector<Skipped>& from) {
  const auto identity = [](const Skipped& s) { return std::pair(s.text, s.environment); };
  std::set<std::pair<std::string, std::optional<Environment>>> known;
  for (const Skipped& skipped : into) known.insert(identity(skipped));
  for (const Skipped& skipped : from)
    if (known.insert(identity(skipped)).second) into.push_back(skipped);
}

void add_entries(std::vector<Entry>& into, const std::vector<Entry>& from) {
  const auto identity = [](const Entry& e) { return std::pair(to_string(e.problem), e.objective); };
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (std::size_t i = 0; i < into.size(); ++i) known.emplace(identity(into[i]), i);
  for (const Entry& entry : from) {
    const auto [at, fresh] = known.emplace(identity(entry), into.size());
    if (fresh)
      into.push_back(entry);
    else if (better(entry, into[at->second]))
      into[at->second] = entry;
  }
}

void add(Database& into, const Database& from) {
  for (const DeviceRecord& record : from.devices) {
    DeviceRecord* own = find_device(into, record.device);
    if (own == nullptr) own = &into.devices.emplace_back(DeviceRecord{record.device, {}, {}});
    // Name and properties are information; of two that differ, one is kept by a rule that knows no
    // order.
    if (dump(encode(record.device)) < dump(encode(own->device))) own->device = record.device;
    add_entries(own->entries, record.entries);
    add_skipped(own->skipped, record.skipped);
  }
  add_skipped(into.skipped, from.skipped);
}

}  // namespace

Status update_database(const std::string& path, const std::function<void(Database&)>& change) {
  const Result<std::string> target = follow_links(path);
  if (!target) return target.error();
  if (Status status = check_place(*target); !status) return status;
  const Result<Lock> lock = Lock::take(*target + ".lock");
  if (!lock) return lock.error();
  Result<Database> database = read_or_new(*target);
  if (!database) return database.error();
  change(*database);
  if (Status status = check_entries(*database); !status) return status;
  return replace(*target, write_text(*database));
}

Status check_writable(const std::string& path) {
  const Result<std::string> target = follow_links(path);
  if (!target) return target.error();
  if (Status status = check_place(*target); !status) return status;
  const Result<Lock> lock = Lock::take(*target + ".lock");
  if (!lock) return lock.error();
  if (const Result<Database> database = read_or_new(*target); !database) return database.error();
  const std::string temporary = *target + ".tmp";
  if (const Result<File> file = create_temporary(temporary); !file) return file.error();
  ::unlink(temporary.c_str());
  return {};
}

void merge(Database& into, const Database& from) {
  // From empty, since a hand-made database may hold the same thing twice.
  Database merged;
  add(merged, into);
  add(merged, from);
  into = std::move(merged);
}

}  // namespace rnntune::tuner
