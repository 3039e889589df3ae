// SPDX-License-Identifier: Apache-2.0
#include "database/database.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "database/codec.hpp"
#include "tests/database_samples.hpp"

namespace rnntune {
namespace {

using samples::device;
using samples::entry;
using ::testing::HasSubstr;

Database sample() {
  Database database;
  put(database, device(), entry());
  put(database, device(), entry("gru:T5,B1,I3,H7,f32"));
  put(database, device("cpu:skylake", "avx2"), entry());
  return database;
}

// The text of a database whose only entry went through `edit`.
template <class Edit>
std::string edited(Edit edit) {
  Database database;
  put(database, device(), entry());
  Json json = parse_json(write_text(database), "text").value();
  edit(json["devices"][0]["entries"][0]);
  return json.dump();
}

std::string reason_of(const std::string& text) {
  const Database database = parse_database(text, "x.json").value();
  if (database.devices.size() != 1 || !database.devices[0].entries.empty()) return "accepted";
  return database.devices[0].skipped.at(0).reason;
}

TEST(DatabaseTest, ReadsBackWhatItWrote) {
  const std::string text = write_text(sample());
  const Result<Database> read = parse_database(text, "x.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(write_text(*read), text);
  const DeviceRecord* record = find_device(*read, device());
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->device.architecture, device().architecture);
  EXPECT_EQ(record->device.properties, device().properties);
  ASSERT_EQ(record->entries.size(), 2u);
  EXPECT_EQ(record->entries[1], entry());
  EXPECT_EQ(record->skipped.size() + read->skipped.size(), 0u);
}

TEST(DatabaseTest, TextDoesNotDependOnTheOrderOfInsertion) {
  Database other;
  put(other, device("cpu:skylake", "avx2"), entry());
  put(other, device(), entry("gru:T5,B1,I3,H7,f32"));
  put(other, device(), entry());
  EXPECT_EQ(write_text(other), write_text(sample()));
}

TEST(DatabaseTest, EnvironmentsAreStoredOnce) {
  Database database;
  Entry second = entry("lstm:T1,B1,I1,H1,f32");
  second.environment["library"] = "0.2.0";
  for (const Entry& e : {entry(), entry("lstm:T2,B1,I1,H1,f32"), second})
    put(database, device(), e);
  const Json json = parse_json(write_text(database), "text").value();
  EXPECT_EQ(json["devices"][0]["environments"].size(), 2u);
  const Database read = parse_database(json.dump(), "x").value();
  EXPECT_EQ(read.devices[0].entries[0].environment.at("library"), "0.2.0");
}

TEST(DatabaseTest, FieldNamesAreThoseOfTheFormat) {
  const Json json = parse_json(write_text(sample()), "text").value();
  EXPECT_EQ(json["format"], "rnntune-database");
  EXPECT_EQ(json["version"], 1);
  std::string names;
  for (const auto& [name, value] : json["devices"][0]["entries"][0].items()) names += name + " ";
  EXPECT_EQ(names,
            "problem objective config kernel_hash time_us workspace_bytes reserve_bytes "
            "packed_bytes validation against tied environment policy seed budget_s evaluations "
            "complete time ");
}

TEST(DatabaseTest, EveryTruncationIsABadFileWithItsPlace) {
  const std::string text = write_text(sample());
  for (std::size_t bytes = 0; bytes + 1 < text.size(); ++bytes) {
    const Result<Database> read = parse_database(std::string_view(text).substr(0, bytes), "x.json");
    ASSERT_FALSE(read.ok()) << bytes;
    EXPECT_EQ(read.error().code, ErrorCode::bad_file);
    EXPECT_THAT(read.error().message, HasSubstr("x.json: "));
    EXPECT_THAT(read.error().message, HasSubstr(bytes > 0 ? "at byte " : "empty")) << bytes;
  }
  EXPECT_TRUE(parse_database(std::string_view(text).substr(0, text.size() - 1), "x").ok());
}

TEST(DatabaseTest, NoByteFlippedOrDroppedCrashes) {
  const std::string text = write_text(sample());
  for (std::size_t at = 0; at < text.size(); at += 3) {
    for (const char c : {'\0', '"', '{', ']', '\xff', '9'}) {
      std::string damaged = text;
      damaged[at] = c;
      (void)parse_database(damaged, "x.json");
    }
    std::string dropped = text;
    dropped.erase(at, 1);
    (void)parse_database(dropped, "x.json");
  }
}

TEST(DatabaseTest, DeepNestingIsAnError) {
  const std::string deep(200000, '[');
  EXPECT_FALSE(parse_database(deep, "x.json").ok());
  EXPECT_FALSE(parse_database(deep + std::string(200000, ']'), "x.json").ok());
}

TEST(DatabaseTest, HeaderMustFit) {
  const auto message = [](const std::string& text) {
    const Result<Database> read = parse_database(text, "x.json");
    return read.ok() ? "" : read.error().message;
  };
  EXPECT_THAT(message("[]"), HasSubstr("x.json: expected an object, got array"));
  EXPECT_THAT(message("{}"), HasSubstr("format: expected \"rnntune-database\", got nothing"));
  EXPECT_THAT(message(R"({"format":"rnntune-suite","version":1})"), HasSubstr("rnntune-suite"));
  EXPECT_THAT(message(R"({"format":"rnntune-database","version":"1"})"), HasSubstr("version"));
  EXPECT_THAT(message(R"({"format":"rnntune-database","version":0})"), HasSubstr("version"));
  EXPECT_THAT(message(R"({"format":"rnntune-database","version":2,"devices":[]})"),
              HasSubstr("version 2 is newer"));
  EXPECT_THAT(message(R"({"format":"rnntune-database","version":1,"devices":{}})"),
              HasSubstr("devices: expected an array, got object"));
  EXPECT_EQ(message(R"({"format":"rnntune-database","version":1,"devices":[]})"), "");
}

TEST(DatabaseTest, FieldsOfALaterVersionAreIgnored) {
  const std::string text = edited([](Json& e) {
    e["energy_mj"] = 12;
    e["time_us"]["p99"] = 900;
    e["config"]["note"] = Json::array({1, 2});
  });
  const Database database = parse_database(text, "x.json").value();
  EXPECT_EQ(database.devices[0].entries.at(0), entry());
}

// A tuner once stored 0.000 and divided by it; others stored nanoseconds for milliseconds.
TEST(DatabaseTest, ATimeThatIsNoneRejectsItsEntry) {
  const auto with = [](Json median) {
    return reason_of(edited([&](Json& e) {
      for (const char* field : {"low", "median", "high"}) e["time_us"][field] = median;
    }));
  };
  EXPECT_EQ(with(0.0), "time_us.median: expected 0.001 to 1e12, got 0.0");
  EXPECT_THAT(with(-1), HasSubstr("time_us.median"));
  EXPECT_THAT(with(1e-9), HasSubstr("got 1e-09"));
  EXPECT_THAT(with(1e308), HasSubstr("got 1e+308"));
  EXPECT_EQ(with("1.0"), "time_us.median: expected a number, got string \"1.0\"");
  EXPECT_EQ(with("NaN"), "time_us.median: expected a number, got string \"NaN\"");
  EXPECT_EQ(with(std::nan("")), "time_us.median: expected a number, got null");
  EXPECT_EQ(with(nullptr), "time_us.median: expected a number, got null");
  EXPECT_EQ(reason_of(edited([](Json& e) { e["time_us"].erase("median"); })),
            "time_us.median: missing");
  EXPECT_EQ(reason_of(edited([](Json& e) { e.erase("time_us"); })), "time_us: missing");
  EXPECT_THAT(reason_of(edited([](Json& e) { e["time_us"]["low"] = 813; })),
              HasSubstr("expected low <= median <= high"));
  EXPECT_EQ(with(1.0), "accepted");
}

TEST(DatabaseTest, TooFewSamplesHaveNoInterval) {
  const std::string text = edited([](Json& e) {
    for (const char* field : {"low", "high", "noise"}) e["time_us"][field] = nullptr;
  });
  const Database database = parse_database(text, "x.json").value();
  ASSERT_EQ(database.devices[0].entries.size(), 1u);
  EXPECT_TRUE(std::isnan(database.devices[0].entries[0].time_us.high));
  EXPECT_THAT(write_text(database), HasSubstr("\"time_us\":{\"median\":812.4,\"samples\""));
  EXPECT_EQ(write_text(parse_database(write_text(database), "x").value()), write_text(database));
  EXPECT_EQ(reason_of(edited([](Json& e) { e["time_us"]["low"] = nullptr; })),
            "time_us.low: expected 0.001 to 1e12, got null");
}

TEST(DatabaseTest, EveryDamagedFieldHasItsReason) {
  const std::vector<std::tuple<std::string, Json, std::string>> cases{
      {"/problem", "lstm:L2", "problem: "},
      {"/problem", 7, "problem: expected a string, got number 7"},
      {"/objective", "", "objective: expected a name"},
      {"/config", "cell", "config: expected an object, got string"},
      {"/config/variant", "", "config.variant: expected a name"},
      {"/config/params/chunk", 8, "config.params.chunk: expected a string, got number 8"},
      {"/config/params/chunk", "", "config.params: expected names once each"},
      {"/tied/1/params", nullptr, "tied[1].params: expected an object of strings, got null"},
      {"/tied/0/variant", "", "tied[0].variant"},
      {"/workspace_bytes", -1, "workspace_bytes: expected at least 0, got -1"},
      {"/packed_bytes", 1.5, "packed_bytes: expected an integer, got number 1.5"},
      {"/reserve_bytes", std::uint64_t{1} << 63, "reserve_bytes: expected an integer of at most"},
      {"/seed", -1, "seed: expected an integer of at least 0"},
      {"/complete", 1, "complete: expected true or false"},
      {"/budget_s", -1, "budget_s: "},
      {"/time", "yesterday", "time: expected 2026-11-30T10:00:00Z, got 'yesterday'"},
      {"/environment", 3, "environment: there are 1, got index 3"},
      {"/environment", "a", "environment: expected an integer"},
      {"/validation", nullptr, "validation: expected an object, got null"},
      {"/validation/error", 3e-5, "validation: failed, error 3e-05 is not within the bound"},
      {"/validation/error", nullptr, "validation: failed, error null is not within the bound"},
      {"/validation/error", -1e-9, "validation: failed"},
      {"/validation/bound", 0, "validation.bound: "},
      {"/validation/reference", "", "validation.reference: "},
      {"/against/0/ratio/low", 0, "against[0].ratio: "},
      {"/against/0/time_us/high", 1, "against[0].time_us: expected low <= median"},
      {"/against", 1, "against: expected an array"},
      {"/time_us/samples", -1, "time_us.samples: "},
      {"/time_us/noise", -0.1, "time_us.noise: "},
  };
  for (const auto& [pointer, value, reason] : cases) {
    const std::string text =
        edited([&, at = Json::json_pointer(pointer), v = value](Json& e) { e[at] = v; });
    EXPECT_THAT(reason_of(text), ::testing::StartsWith(reason)) << pointer << " = " << value;
  }
}

TEST(DatabaseTest, ADamagedEntryLosesNeitherTheOthersNorItself) {
  Json json = parse_json(write_text(sample()), "text").value();
  Json& entries = json["devices"][1]["entries"];
  ASSERT_EQ(entries.size(), 2u);
  entries[0]["time_us"]["median"] = 0;
  entries.push_back("nonsense");
  json["devices"].push_back({{"device", {{"backend", "cpu"}}}});
  const Database database = parse_database(json.dump(), "x.json").value();
  const DeviceRecord& record = database.devices.at(1);
  EXPECT_EQ(record.entries.size(), 1u);
  ASSERT_EQ(record.skipped.size(), 2u);
  EXPECT_EQ(record.skipped[0].place, "devices[1].entries[0]");
  EXPECT_EQ(record.skipped[1].reason, "expected an object, got string \"nonsense\"");
  ASSERT_EQ(database.skipped.size(), 1u);
  EXPECT_EQ(database.skipped[0].place, "devices[2]");
  EXPECT_EQ(database.skipped[0].reason, "device.key: missing");

  const std::string rewritten = write_text(database);
  const Database again = parse_database(rewritten, "x.json").value();
  EXPECT_EQ(again.devices.at(1).skipped.size(), 2u);
  EXPECT_EQ(again.skipped.size(), 1u);
  EXPECT_EQ(write_text(again), rewritten);
  EXPECT_THAT(rewritten, HasSubstr("\"median\":0,"));
}

TEST(DatabaseTest, ADamagedDeviceIsPassedOver) {
  const auto reason = [](const char* pointer, Json value) {
    Json json = parse_json(write_text(sample()), "text").value();
    json["devices"][0][Json::json_pointer(pointer)] = std::move(value);
    const Database database = parse_database(json.dump(), "x.json").value();
    EXPECT_EQ(database.devices.size(), 1u);
    return database.skipped.at(0).reason;
  };
  EXPECT_EQ(reason("/device/key", ""), "device: backend and key must not be empty");
  EXPECT_EQ(reason("/device", nullptr), "device: expected an object, got null");
  EXPECT_EQ(reason("/entries", 3), "entries: expected an array, got number");
}

TEST(DatabaseTest, WrittenBytesThatAreNoUtf8DoNotThrow) {
  Database database;
  DeviceInfo odd = device();
  odd.name = "CPU \xff\xfe";
  put(database, odd, entry());
  EXPECT_TRUE(parse_database(write_text(database), "x.json").ok());
}

TEST(DatabaseTest, FilesThatCannotBeRead) {
  const samples::Folder folder;
  const auto code = [](const std::string& path) {
    const Result<Database> read = read_database(path);
    EXPECT_FALSE(read.ok());
    EXPECT_THAT(read.error().message, HasSubstr(path));
    return read.error().code;
  };
  EXPECT_EQ(code(""), ErrorCode::not_found);
  EXPECT_EQ(code("/nonexistent/x.json"), ErrorCode::not_found);
  EXPECT_EQ(code(folder.path().string()), ErrorCode::bad_file);
  EXPECT_EQ(code("/dev/full"), ErrorCode::bad_file);
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(code(pipe), ErrorCode::bad_file);
  samples::write_file(folder / "empty.json", "");
  EXPECT_EQ(code(folder / "empty.json"), ErrorCode::bad_file);
}

TEST(DatabaseTest, ADamagedFileStaysAsItIs) {
  const samples::Folder folder;
  const std::string path = folder / "x.json";
  const std::string damaged = write_text(sample()).substr(0, 300);
  samples::write_file(path, damaged);
  EXPECT_FALSE(read_database(path).ok());
  EXPECT_EQ(samples::file_text(path), damaged);
}

TEST(DatabaseTest, BetterIsAStrictTotalOrder) {
  std::vector<Entry> entries(9, entry());
  entries[1].time = "2026-11-30T10:00:01Z";
  entries[2].complete = false;
  entries[3].evaluations = 121;
  entries[4].time_us.median = 811;
  entries[5].time_us.median = std::nan("");
  entries[6].config.set("chunk", "4");
  entries[7].environment["os"] = "Plan 9";
  entries[8].validation.error = 1;
  for (const Entry& a : entries)
    for (const Entry& b : entries) {
      EXPECT_EQ(better(a, b) + better(b, a), &a == &b ? 0 : 1);
      for (const Entry& c : entries) EXPECT_TRUE(better(a, c) || !(better(a, b) && better(b, c)));
    }
  EXPECT_TRUE(better(entries[1], entries[0]));
  EXPECT_TRUE(better(entries[0], entries[2]));
  EXPECT_TRUE(better(entries[3], entries[0]));
  EXPECT_TRUE(better(entries[4], entries[0]));
  EXPECT_TRUE(better(entries[2], entries[5]));
  EXPECT_TRUE(better(entries[2], entries[8]));
}

TEST(DatabaseTest, PutReplaces) {
  Database database = sample();
  Entry slower = entry();
  slower.time_us = {900, 890, 910, 41, 0.006, "converged"};
  put(database, device(), slower);
  const DeviceRecord* record = find_device(database, device());
  EXPECT_EQ(record->entries.size(), 2u);
  EXPECT_EQ(record->entries.back(), slower);
  Entry other = entry();
  other.objective = "memory";
  put(database, device(), other);
  EXPECT_EQ(record->entries.size(), 3u);
}

}  // namespace
}  // namespace rnntune
