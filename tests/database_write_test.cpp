// SPDX-License-Identifier: Apache-2.0
#include "tuner/records/database_write.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include "tests/database_samples.hpp"

namespace rnntune::tuner {
namespace {

using samples::device;
using samples::entry;
using samples::file_text;
using samples::write_file;
using ::testing::HasSubstr;

std::vector<std::string> names_in(const samples::Folder& folder) {
  std::vector<std::string> names;
  for (const auto& item : std::filesystem::directory_iterator(folder.path()))
    names.push_back(item.path().filename());
  return names;
}

void put_sample(Database& database) { put(database, device(), entry()); }

std::string failure(const Status& status) { return status.ok() ? "" : status.error().message; }

TEST(UpdateDatabaseTest, CreatesAndExtendsAndLeavesOnlyTheFile) {
  const samples::Folder folder;
  const std::string path = folder / "a.json";
  ASSERT_EQ(failure(update_database(path, put_sample)), "");
  ASSERT_EQ(failure(update_database(
                path, [](Database& d) { put(d, device(), entry("gru:T1,B1,I1,H1,f32")); })),
            "");
  EXPECT_EQ(read_database(path).value().devices.at(0).entries.size(), 2u);
  EXPECT_THAT(names_in(folder), ::testing::ElementsAre("a.json"));
}

TEST(UpdateDatabaseTest, AnEmptyFileIsANewDatabase) {
  const samples::Folder folder;
  write_file(folder / "a.json", "");
  EXPECT_EQ(failure(check_writable(folder / "a.json")), "");
  EXPECT_EQ(failure(update_database(folder / "a.json", put_sample)), "");
  EXPECT_TRUE(read_database(folder / "a.json").ok());
}

TEST(UpdateDatabaseTest, ADamagedOrNewerFileIsNamedAndLeftAlone) {
  const samples::Folder folder;
  const std::string path = folder / "a.json";
  for (const char* text : {"{\"format\":\"rnntune-database\",\"vers", "not JSON",
                           R"({"format":"rnntune-database","version":2,"devices":[]})"}) {
    write_file(path, text);
    EXPECT_THAT(failure(update_database(path, put_sample)), HasSubstr(path));
    EXPECT_THAT(failure(check_writable(path)), HasSubstr(path));
    EXPECT_EQ(file_text(path), text);
    EXPECT_THAT(names_in(folder), ::testing::ElementsAre("a.json"));
  }
}

TEST(UpdateDatabaseTest, AnEntryThatMayNotBeChosenIsNotWritten) {
  const samples::Folder folder;
  const std::string path = folder / "a.json";
  ASSERT_TRUE(update_database(path, put_sample).ok());
  const std::string before = file_text(path);
  const Status status = update_database(path, [](Database& d) {
    Entry bad = entry("gru:T1,B1,I1,H1,f32");
    bad.time_us.median = 0;
    put(d, device(), bad);
  });
  EXPECT_THAT(failure(status), HasSubstr("gru:L1,T1,B1,I1,H1,f32"));
  EXPECT_THAT(failure(status), HasSubstr("time_us.median"));
  EXPECT_EQ(file_text(path), before);
}

TEST(UpdateDatabaseTest, WhatCouldNotBeReadSurvives) {
  const samples::Folder folder;
  const std::string path = folder / "a.json";
  ASSERT_TRUE(update_database(path, put_sample).ok());
  std::string text = file_text(path);
  text.replace(text.find("\"median\":812.4"), 14, "\"median\":0.0");
  write_file(path, text);
  ASSERT_EQ(failure(update_database(
                path, [](Database& d) { put(d, device(), entry("gru:T1,B1,I1,H1,f32")); })),
            "");
  const Database database = read_database(path).value();
  EXPECT_EQ(database.devices.at(0).entries.size(), 1u);
  EXPECT_EQ(database.devices.at(0).skipped.size(), 1u);
  EXPECT_THAT(file_text(path), HasSubstr("\"median\":0.0"));
}

TEST(UpdateDatabaseTest, PermissionsStayAndLinksAreFollowed) {
  const samples::Folder folder;
  const std::string real = folder / "real.json";
  std::filesystem::create_symlink("real.json", folder / "link.json");
  std::filesystem::create_symlink(folder / "link.json", folder / "link2.json");
  ASSERT_EQ(failure(update_database(folder / "link2.json", put_sample)), "");
  ASSERT_EQ(::chmod(real.c_str(), 0640), 0);
  ASSERT_EQ(failure(update_database(folder / "link2.json", put_sample)), "");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link2.json"));
  EXPECT_TRUE(std::filesystem::is_regular_file(real));
  struct stat status {};
  ASSERT_EQ(::stat(real.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

TEST(UpdateDatabaseTest, ANewFileFollowsTheUmask) {
  const samples::Folder folder;
  const mode_t old = ::umask(027);
  EXPECT_TRUE(update_database(folder / "a.json", put_sample).ok());
  ::umask(old);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "a.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

TEST(UpdateDatabaseTest, LeftoversOfAKilledProcessAreInNobodysWay) {
  const samples::Folder folder;
  write_file(folder / "a.json.tmp", "half");
  write_file(folder / "a.json.lock", "");
  EXPECT_EQ(failure(update_database(folder / "a.json", put_sample)), "");
  EXPECT_THAT(names_in(folder), ::testing::ElementsAre("a.json"));
}

TEST(UpdateDatabaseTest, PlacesThatCannotBeWritten) {
  const samples::Folder folder;
  const std::string readonly = folder / "readonly.json";
  ASSERT_TRUE(update_database(readonly, put_sample).ok());
  ASSERT_EQ(::chmod(readonly.c_str(), 0444), 0);
  std::filesystem::create_symlink("loop.json", folder / "loop.json");
  write_file(folder / "file", "");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "the path is empty"},
      {"/nonexistent/x.json", "there is no folder '/nonexistent'"},
      {"/dev/full", "not a regular file"},
      {folder.path().string(), "it is a directory"},
      {readonly, "it is read-only"},
      {folder / "loop.json", "too many symbolic links"},
      {folder / "file/x.json", "Not a directory"},
      {folder / std::string(300, 'x'), "File name too long"},
  };
  for (const auto& [path, reason] : cases) {
    EXPECT_THAT(failure(check_writable(path)), HasSubstr(reason)) << path;
    EXPECT_THAT(failure(update_database(path, put_sample)), HasSubstr(reason)) << path;
    EXPECT_THAT(failure(check_writable(path)), HasSubstr(path));
  }
  EXPECT_THAT(names_in(folder),
              ::testing::UnorderedElementsAre("readonly.json", "loop.json", "file"));
}

TEST(UpdateDatabaseTest, CheckingLeavesNothingBehind) {
  const samples::Folder folder;
  EXPECT_EQ(failure(check_writable(folder / "a.json")), "");
  EXPECT_TRUE(names_in(folder).empty());
}

// A random database of few devices, problems and times, so that merges meet the same keys.
Database random_database(std::mt19937& random) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Database database;
  for (int i = pick(7); i >= 0; --i) {
    Entry e = entry("lstm:T1,B" + std::to_string(1 + pick(3)) + ",I1,H1,f32");
    e.objective = pick(3) ? "step" : "memory";
    e.time = "2026-11-3" + std::to_string(pick(2)) + "T10:00:00Z";
    e.complete = pick(2);
    e.evaluations = pick(2);
    e.config.set("chunk", std::to_string(pick(3)));
    e.environment["library"] = "0." + std::to_string(pick(2));
    DeviceInfo on = device("key" + std::to_string(pick(2)));
    on.name = "name" + std::to_string(pick(2));
    put(database, on, e);
    if (pick(4) == 0) find_device(database, on)->entries.push_back(e);
    if (pick(3) == 0)
      find_device(database, on)
          ->skipped.push_back({"", "", "{\"n\":" + std::to_string(pick(3)) + "}", {}});
  }
  return database;
}

std::string merged(Database into, const Database& from) {
  merge(into, from);
  return write_text(into);
}

TEST(MergeTest, IsIdempotentCommutativeAndAssociative) {
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    const Database a = random_database(random);
    const Database b = random_database(random);
    const Database c = random_database(random);
    EXPECT_EQ(merged(a, a), merged(a, {}));
    EXPECT_EQ(merged(a, {}), merged({}, a));
    EXPECT_EQ(merged(a, b), merged(b, a));
    Database ab = a;
    merge(ab, b);
    Database bc = b;
    merge(bc, c);
    EXPECT_EQ(merged(ab, c), merged(a, bc));
    EXPECT_EQ(merged(ab, b), write_text(ab));
  }
}

TEST(MergeTest, TheBetterEntryStays) {
  Database a;
  Database b;
  Entry old = entry();
  Entry fresh = entry();
  fresh.time = "2027-01-01T00:00:00Z";
  put(a, device(), old);
  put(b, device(), fresh);
  merge(a, b);
  ASSERT_EQ(a.devices.at(0).entries.size(), 1u);
  EXPECT_EQ(a.devices[0].entries[0], fresh);
}

}  // namespace
}  // namespace rnntune::tuner
