// SPDX-License-Identifier: Apache-2.0
#include "tuner/records/database_lint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "database/codec.hpp"
#include "tests/database_samples.hpp"

namespace rnntune::tuner {
namespace {

using samples::device;
using samples::entry;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DatabaseLintTest : public ::testing::Test {
 protected:
  // The faults of a sound database of one device that `edit` changed; places without the path.
  template <class Edit>
  std::vector<std::string> faults(Edit edit) {
    samples::write_database(path_, device(), {entry(), entry("gru:T1,B1,I1,H1,f32")});
    Json json = parse_json(samples::file_text(path_), path_).value();
    edit(json["devices"][0]);
    samples::write_file(path_, json.dump());
    std::vector<std::string> lines = lint_database(path_).value();
    for (std::string& line : lines) {
      EXPECT_EQ(line.rfind(path_ + ": ", 0), 0u) << line;
      line.erase(0, path_.size() + 2);
    }
    return lines;
  }

  samples::Folder folder_;
  std::string path_ = folder_ / "a.json";
};

TEST_F(DatabaseLintTest, WhatWeWriteIsSound) {
  EXPECT_THAT(faults([](Json&) {}), IsEmpty());
}

TEST_F(DatabaseLintTest, EveryFaultHasItsLine) {
  const auto lines = faults([](Json& record) {
    record["entries"][0]["time_us"]["median"] = 0;
    record["entries"][1].erase("kernel_hash");
    record["entries"][1].erase("policy");
    record["device"].erase("architecture");
  });
  EXPECT_THAT(lines,
              ::testing::UnorderedElementsAre(HasSubstr("devices[0].entries[0]: time_us.median"),
                                              "devices[0].entries[1].kernel_hash: missing",
                                              "devices[0].entries[1].policy: missing",
                                              "devices[0].device.architecture: missing"));
}

TEST_F(DatabaseLintTest, TheSameThingTwiceIsAFault) {
  const auto lines = faults([](Json& record) {
    Json again = record["entries"][0];
    again["problem"] = "gru:B1,T1,I1,H1";
    record["entries"].push_back(again);
  });
  EXPECT_THAT(lines, ElementsAre("devices[0].entries[2]: step of gru:L1,T1,B1,I1,H1,f32 is already "
                                 "at devices[0].entries[0]"));
}

TEST_F(DatabaseLintTest, ADamagedFileIsOneFaultAndAMissingOneAnError) {
  samples::write_file(path_, "{\"format\":");
  EXPECT_THAT(lint_database(path_).value(), ElementsAre(HasSubstr("not valid JSON at byte")));
  EXPECT_FALSE(lint_database(folder_ / "none.json").ok());
}

TEST_F(DatabaseLintTest, AFieldOfAnotherKindIsAFaultWhereverItIs) {
  for (const Json& value :
       {Json(nullptr), Json(1.5), Json(""), Json::array({1}), Json::object({{"a", 1}})})
    for (const char* pointer :
         {"/device", "/device/key", "/environments", "/environments/0", "/entries", "/entries/0",
          "/entries/0/problem", "/entries/0/environment", "/entries/0/config/params"})
      EXPECT_THAT(faults([&](Json& record) { record[Json::json_pointer(pointer)] = value; }),
                  ::testing::Not(IsEmpty()))
          << pointer << value;
}

}  // namespace
}  // namespace rnntune::tuner
