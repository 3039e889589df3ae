// SPDX-License-Identifier: Apache-2.0
// Several processes write one database at once, or are killed while they do.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <random>
#include <thread>

#include "tests/database_samples.hpp"
#include "tuner/records/database_write.hpp"

namespace rnntune::tuner {
namespace {

using samples::device;
using samples::entry;

pid_t start(const std::function<bool()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? 0 : 1);
  return child;
}

bool ended_well(pid_t child) {
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string numbered(int writer, int n) {
  return "lstm:T" + std::to_string(n + 1) + ",B" + std::to_string(writer + 1) + ",I1,H1,f32";
}

bool add(const std::string& path, int writer, int n) {
  return update_database(path, [&](Database& d) { put(d, device(), entry(numbered(writer, n))); })
      .ok();
}

std::size_t entries_in(const std::string& path) {
  const Result<Database> database = read_database(path);
  EXPECT_TRUE(database.ok()) << database.error().message;
  if (!database.ok() || database->devices.empty()) return 0;
  EXPECT_TRUE(database->devices[0].skipped.empty());
  return database->devices[0].entries.size();
}

TEST(DatabaseConcurrencyTest, NothingIsLostAndReadersNeverSeeHalfAFile) {
  constexpr int kWriters = 6;
  constexpr int kEach = 20;
  const samples::Folder folder;
  const std::string path = folder / "a.json";
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer)
    children.push_back(start([&] {
      for (int n = 0; n < kEach; ++n)
        if (!add(path, writer, n)) return false;
      return true;
    }));
  children.push_back(start([&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    while (std::chrono::steady_clock::now() < end) {
      const Result<Database> database = read_database(path);
      if (!database.ok() && database.error().code != ErrorCode::not_found) return false;
    }
    return true;
  }));
  for (const pid_t child : children) EXPECT_TRUE(ended_well(child));
  EXPECT_EQ(entries_in(path), static_cast<std::size_t>(kWriters * kEach));
}

TEST(DatabaseConcurrencyTest, AKilledWriterDamagesNothing) {
  const samples::Folder folder;
  const std::string path = folder / "a.json";
  ASSERT_TRUE(add(path, 0, 0));
  std::mt19937 random(1);
  std::size_t before = 1;
  for (int round = 1; round <= 25; ++round) {
    const pid_t child = start([&] {
      for (int n = 0;; ++n)
        if (!add(path, round, n)) return false;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    const std::size_t after = entries_in(path);
    EXPECT_GE(after, before);
    before = after;
  }
  EXPECT_GT(before, 1u);
  EXPECT_TRUE(add(path, 100, 0));
  EXPECT_EQ(entries_in(path), before + 1);
}

TEST(DatabaseConcurrencyTest, AStoppedWriterIsWaitedFor) {
  const samples::Folder folder;
  const std::string path = folder / "a.json";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t slow = start([&] {
    return update_database(path,
                           [&](Database& d) {
                             put(d, device(), entry(numbered(0, 0)));
                             EXPECT_EQ(::write(ready[1], "x", 1), 1);
                             std::this_thread::sleep_for(std::chrono::milliseconds(200));
                           })
        .ok();
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(add(path, 1, 0));
  EXPECT_TRUE(ended_well(slow));
  EXPECT_EQ(entries_in(path), 2u);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace rnntune::tuner
