// SPDX-License-Identifier: Apache-2.0
#include "paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/database_samples.hpp"

namespace rnntune {
namespace {

using ::testing::IsEmpty;

class PathsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "RNNTUNE_DATABASES"})
      ::unsetenv(name);
  }
};

TEST_F(PathsTest, FollowXdgThenHome) {
  ::setenv("HOME", "/home/u", 1);
  EXPECT_EQ(config_folder(), "/home/u/.config/rnntune");
  EXPECT_EQ(data_folder(), "/home/u/.local/share/rnntune");
  EXPECT_EQ(cache_folder(), "/home/u/.cache/rnntune");
  ::setenv("XDG_DATA_HOME", "/d", 1);
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(user_database(), "/d/rnntune/rnntune.db.json");
  EXPECT_EQ(cache_folder(), "/home/u/.cache/rnntune");
}

TEST_F(PathsTest, WithoutHomeThereIsNoFolder) {
  EXPECT_EQ(config_folder() + data_folder() + cache_folder() + user_database(), "");
  ::setenv("RNNTUNE_DATABASES", "", 1);
  EXPECT_THAT(default_databases(), IsEmpty());
}

TEST_F(PathsTest, ShippedDatabasesAreListedByName) {
  const samples::Folder folder;
  for (const char* name : {"b.json", "a.json", "README.md"}) samples::write_file(folder / name, "");
  ::setenv("RNNTUNE_DATABASES", folder.path().c_str(), 1);
  ::setenv("XDG_DATA_HOME", "/d", 1);
  EXPECT_THAT(default_databases(), ::testing::ElementsAre("/d/rnntune/rnntune.db.json",
                                                          folder / "a.json", folder / "b.json"));
  ::unsetenv("RNNTUNE_DATABASES");
  EXPECT_THAT(shipped_databases(), ::testing::EndsWith("/share/rnntune/databases"));
}

}  // namespace
}  // namespace rnntune
