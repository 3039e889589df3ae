// SPDX-License-Identifier: Apache-2.0
#include "database/lookup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "database/codec.hpp"
#include "database/database.hpp"
#include "tests/database_samples.hpp"

namespace rnntune {
namespace {

using samples::device;
using samples::entry;
using samples::problem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kAsked = "lstm:L2,T35,B20,I650,H650,f32";

Config tile(const std::string& size, const std::string& unroll) {
  return {"tiled", {{"tile", size}, {"unroll", unroll}}};
}

// A space of tiles that must divide H, kernels with the hash "now", and tile 1 as built in.
Kernels kernels_for(const Problem& p) {
  return {[p](const Config& c) -> std::string {
            if (c.variant != "tiled") return "no variant '" + c.variant + "'";
            if (c.get_int("tile") < 1 || p.hidden % c.get_int("tile"))
              return "tile must divide H = " + std::to_string(p.hidden);
            return c.params.size() == 2 ? "" : "needs tile and unroll";
          },
          [](const Config& c) -> std::string { return c.variant == "tiled" ? "now" : ""; },
          [] { return Result<Config>(tile("1", "1")); }};
}

Entry tuned(const std::string& text, Config config, const std::string& hash = "now") {
  Entry e = entry(text);
  e.config = std::move(config);
  e.kernel_hash = hash;
  return e;
}

class LookupTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, std::initializer_list<Entry> entries,
                   const DeviceInfo& on = device()) {
    samples::write_database(folder_ / name, on, entries);
    return folder_ / name;
  }

  Explanation ask(const std::vector<std::string>& given, const std::string& text = kAsked,
                  const std::vector<std::string>& standard = {}) {
    const Problem p = problem(text);
    return lookup(p, device(), given, standard, kernels_for(p)).value();
  }

  samples::Folder folder_;
};

TEST_F(LookupTest, Exact) {
  const Explanation e = ask({file("a.json", {tuned(kAsked, tile("10", "4"))})});
  EXPECT_EQ(e.rung, Rung::exact);
  EXPECT_EQ(e.config, tile("10", "4"));
  EXPECT_EQ(e.problem, kAsked);
  EXPECT_EQ(e.distance, 0);
  EXPECT_THAT(e.notes, IsEmpty());
}

TEST_F(LookupTest, StaleIsUsedAndSaid) {
  const std::string path = file("a.json", {tuned(kAsked, tile("10", "4"), "then")});
  const Explanation e = ask({path});
  EXPECT_EQ(e.rung, Rung::stale);
  EXPECT_EQ(e.config, tile("10", "4"));
  EXPECT_THAT(e.notes, Contains(AllOf(HasSubstr(path), HasSubstr("(then, now now)"))));
}

TEST_F(LookupTest, StaleThatTheSpaceRejectsIsPassedOver) {
  const std::string path = file("a.json", {tuned(kAsked, tile("96", "4"), "then")});
  const Explanation e = ask({path});
  EXPECT_EQ(e.rung, Rung::built_in);
  EXPECT_EQ(e.config, tile("1", "1"));
  EXPECT_THAT(e.notes, Contains(AllOf(HasSubstr(path), HasSubstr(kAsked), HasSubstr("cpu:zen4"),
                                      HasSubstr("tile must divide H = 650"))));
}

TEST_F(LookupTest, ExactInALaterFileBeatsStaleInAnEarlier) {
  const std::string stale = file("a.json", {tuned(kAsked, tile("10", "4"), "then")});
  const std::string exact = file("b.json", {tuned(kAsked, tile("5", "2"))});
  EXPECT_EQ(ask({stale, exact}).config, tile("5", "2"));
  EXPECT_EQ(ask({stale}, kAsked, {exact}).rung, Rung::exact);
}

TEST_F(LookupTest, TheEarlierFileWins) {
  const std::string a = file("a.json", {tuned(kAsked, tile("10", "4"))});
  const std::string b = file("b.json", {tuned(kAsked, tile("5", "2"))});
  EXPECT_EQ(ask({a, b}).config, tile("10", "4"));
  EXPECT_EQ(ask({b, a}).config, tile("5", "2"));
  EXPECT_EQ(ask({b}, kAsked, {a}).config, tile("5", "2"));
}

TEST_F(LookupTest, NearestShapeOnThisSilicon) {
  const std::string path =
      file("a.json", {tuned("lstm:L2,T35,B20,I650,H1300,f32", tile("10", "1")),
                      tuned("lstm:L2,T35,B30,I650,H650,f32", tile("10", "2")),
                      tuned("lstm:L2,T35,B64,I650,H650,f32", tile("10", "3"))});
  const Explanation e = ask({path});
  EXPECT_EQ(e.rung, Rung::nearest);
  EXPECT_EQ(e.config, tile("10", "2"));
  EXPECT_EQ(e.problem, "lstm:L2,T35,B30,I650,H650,f32");
  EXPECT_NEAR(e.distance, 0.584963, 1e-6);
  EXPECT_THAT(e.notes, Contains(AllOf(HasSubstr("no usable entry"), HasSubstr(kAsked),
                                      HasSubstr("cpu:zen4"), HasSubstr(path))));
}

TEST_F(LookupTest, NearestIsCheckedAgainstTheSpaceOfTheProblemAsked) {
  const Explanation e =
      ask({file("a.json", {tuned("lstm:L2,T35,B20,I650,H640,f32", tile("64", "1")),
                           tuned("lstm:L2,T35,B20,I650,H700,f32", tile("50", "2"))})});
  EXPECT_EQ(e.config, tile("50", "2"));
  EXPECT_THAT(e.notes, Contains(HasSubstr("tile must divide H = 650")));
}

TEST_F(LookupTest, TooFarIsNoNeighbour) {
  EXPECT_EQ(ask({file("a.json", {tuned("lstm:L2,T35,B20,I650,H1301,f32", tile("1", "7"))})}).rung,
            Rung::built_in);
}

TEST_F(LookupTest, AmongEqualNeighboursTheFreshThenTheBetterWins) {
  Entry newer = tuned("lstm:L2,T35,B10,I650,H650,f32", tile("10", "2"));
  newer.time = "2026-12-01T00:00:00Z";
  const Entry older = tuned("lstm:L2,T35,B40,I650,H650,f32", tile("10", "3"));
  EXPECT_EQ(ask({file("a.json", {older, newer})}).config, tile("10", "2"));
  newer.kernel_hash = "then";
  EXPECT_EQ(ask({file("a.json", {older, newer})}).config, tile("10", "3"));
}

TEST(ShapeDistanceTest, WeighsWhatDiffers) {
  const auto distance = [](const std::string& a, const std::string& b) {
    const double there = shape_distance(problem(a), problem(b));
    EXPECT_EQ(there, shape_distance(problem(b), problem(a)));
    return there;
  };
  EXPECT_EQ(distance(kAsked, kAsked), 0);
  EXPECT_DOUBLE_EQ(distance(kAsked, "lstm:L2,T35,B40,I325,H650,f32"), 1);
  EXPECT_DOUBLE_EQ(distance(kAsked, "lstm:L2,T140,B20,I650,H650,f32"), 0.2);
  EXPECT_DOUBLE_EQ(distance("lstm:T2,B1,I8,H8,P2,f32", "lstm:T2,B1,I8,H8,P8,f32"), 2);
  for (const char* other :
       {"gru:L2,T35,B20,I650,H650,f32", "lstm:L1,T35,B20,I650,H650,f32",
        "lstm:L2,T35,B20,I650,H650,D2,f32", "lstm:L2,T35,B20,I650,H650,P650,f32",
        "lstm:L2,T35,B20,I650,H650,G2,f32", "lstm:L2,T35,B20,I650,H650,R64,f32",
        "lstm:L2,T35,B20,I650,H650,bias1,f32", "lstm:L2,T35,B20,I650,H650,nobias,f32",
        "lstm:L2,T35,B20,I650,H650,bf16", "lstm:L2,T35,B20,I650,H650,tf32",
        "lstm:L2,T35,B20,I650,H650,var,f32", "lstm:L2,T35,B20,I650,H650,drop0.1,f32"})
    EXPECT_EQ(distance(kAsked, other), HUGE_VAL) << other;
  EXPECT_EQ(distance("lstm:L2,T1,B1,I8,H8,G2,f32", "lstm:L2,T1,B1,I8,H8,G2/2,f32"), 0);
  EXPECT_EQ(distance("lstm:L2,T1,B1,I8,H8,G2,f32", "lstm:L2,T1,B1,I8,H8,G2/4,f32"), HUGE_VAL);
  EXPECT_EQ(distance("lstm:T1,B1,I8,H8,drop0.1,f32", "lstm:T1,B1,I8,H8,drop0.5,f32"), 0);
}

// A 32-unit board found no file though the 36-unit one was there; others went by product name.
TEST_F(LookupTest, OtherSiliconOfTheArchitectureIsMarked) {
  DeviceInfo slice = device("cpu:zen4-half");
  slice.name = device().name;
  const std::string path = file(
      "a.json",
      {tuned("lstm:L2,T35,B20,I650,H600,f32", tile("10", "1")), tuned(kAsked, tile("10", "4"))},
      slice);
  const Explanation e = ask({path});
  EXPECT_EQ(e.rung, Rung::architecture);
  EXPECT_EQ(e.config, tile("10", "4"));
  EXPECT_EQ(e.problem, kAsked);
  EXPECT_THAT(e.notes, Contains(AllOf(HasSubstr("tuned on"), HasSubstr("cpu:zen4-half"))));

  const std::string neighbour =
      file("b.json", {tuned("lstm:L2,T35,B20,I650,H600,f32", tile("10", "1"))}, slice);
  EXPECT_EQ(ask({neighbour}).rung, Rung::architecture);
  EXPECT_GT(ask({neighbour}).distance, 0);
  const std::string own = file("c.json", {tuned("lstm:L2,T35,B20,I650,H1300,f32", tile("5", "1"))});
  EXPECT_EQ(ask({path, own}).rung, Rung::nearest);
}

TEST_F(LookupTest, AnotherArchitectureOrBackendChangesNothing) {
  DeviceInfo cuda = device();
  cuda.backend = "cuda";
  DeviceInfo nameless = device("cpu:other", "");
  nameless.architecture.clear();
  const std::string a = file("a.json", {tuned(kAsked, tile("10", "4"))}, device("k", "avx2"));
  const std::string b = file("b.json", {tuned(kAsked, tile("10", "4"))}, cuda);
  const std::string c = file("c.json", {tuned(kAsked, tile("10", "4"))}, nameless);
  EXPECT_EQ(ask({a, b, c}).rung, Rung::built_in);
  const std::string own = file("d.json", {tuned(kAsked, tile("5", "2"))});
  EXPECT_EQ(ask({a, b, c, own}).config, ask({own}).config);
}

// A default made of the best value of each parameter over devices was slow, and wrong.
TEST_F(LookupTest, ConfigsAreNeverMixed) {
  const std::string path =
      file("a.json", {tuned("lstm:L2,T35,B20,I650,H640,f32", tile("8", "4")),
                      tuned("lstm:L2,T35,B20,I650,H660,f32", tile("16", "1"))});
  for (const char* hidden : {"640", "648", "650", "656", "660", "672", "1280", "1320"}) {
    const Explanation e = ask({path}, "lstm:L2,T35,B20,I650,H" + std::string(hidden) + ",f32");
    EXPECT_THAT(e.config, ::testing::AnyOf(tile("8", "4"), tile("16", "1"), tile("1", "1")));
    EXPECT_EQ(e.rung == Rung::built_in, e.config == tile("1", "1")) << hidden;
  }
}

TEST_F(LookupTest, ARecordThatOutlivedItsKernelIsPassedOver) {
  const std::string path = folder_ / "a.json";
  Database database;
  put(database, device(), tuned(kAsked, {"forgotten", {{"tile", "10"}}}, "then"));
  put(database, device(), tuned("lstm:L2,T35,B24,I650,H650,f32", tile("10", "2")));
  Json json = parse_json(write_text(database), path).value();
  json["devices"][0]["entries"].push_back(
      {{"problem", kAsked}, {"config", {{"variant", "tiled"}, {"params", {{"tile", 96}}}}}});
  json["devices"][0]["entries"][1]["from_the_future"] = true;
  samples::write_file(path, json.dump());
  const Explanation e = ask({path});
  EXPECT_EQ(e.rung, Rung::nearest);
  EXPECT_THAT(e.notes, Contains(HasSubstr("no variant 'forgotten'")));
  EXPECT_THAT(e.notes, Contains(AllOf(HasSubstr(path), HasSubstr("devices[0].entries[2]"),
                                      HasSubstr("config.params.tile"))));
}

TEST_F(LookupTest, ANewerFileIsRefusedWithItsReason) {
  samples::write_file(folder_ / "new.json",
                      R"({"format":"rnntune-database","version":2,"devices":[]})");
  const Explanation e = ask({folder_ / "new.json"});
  EXPECT_EQ(e.rung, Rung::built_in);
  EXPECT_THAT(e.notes, Contains(AllOf(HasSubstr("new.json"), HasSubstr("version 2 is newer"))));
}

TEST_F(LookupTest, AnImplausibleTimeIsNeverChosen) {
  const std::string path = folder_ / "a.json";
  for (const Json& us :
       {Json(0.0), Json(-1), Json("NaN"), Json(1e-9), Json(1e308), Json("1.0"), Json(nullptr)}) {
    Database database;
    put(database, device(), tuned(kAsked, tile("10", "4")));
    Json json = parse_json(write_text(database), path).value();
    for (const char* field : {"low", "median", "high"})
      json["devices"][0]["entries"][0]["time_us"][field] = us;
    samples::write_file(path, json.dump());
    const Explanation e = ask({path});
    EXPECT_EQ(e.rung, Rung::built_in) << us;
    EXPECT_THAT(e.notes, Contains(HasSubstr("time_us"))) << us;
  }
}

TEST_F(LookupTest, FilesThatCannotBeReadAreNotedAndPassedOver) {
  const std::string good = file("good.json", {tuned(kAsked, tile("10", "4"))});
  samples::write_file(folder_ / "cut.json", samples::file_text(good).substr(0, 100));
  samples::write_file(folder_ / "empty.json", "");
  const Explanation e = ask({"", "/nonexistent/x.json", "/dev/full", folder_.path().string(),
                             folder_ / "cut.json", folder_ / "empty.json", good});
  EXPECT_EQ(e.rung, Rung::exact);
  EXPECT_EQ(e.notes.size(), 6u);
  EXPECT_THAT(e.notes, Contains(HasSubstr("cut.json: not valid JSON at byte ")));
  EXPECT_THAT(e.notes, Contains(HasSubstr("/nonexistent/x.json: No such file")));
}

TEST_F(LookupTest, AReadOnlyFileServes) {
  const std::string path = file("a.json", {tuned(kAsked, tile("10", "4"))});
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  EXPECT_EQ(ask({path}).rung, Rung::exact);
}

TEST_F(LookupTest, AStandardFileThatIsMissingIsInformationOnly) {
  const std::string good = file("good.json", {tuned(kAsked, tile("10", "4"))});
  EXPECT_THAT(ask({good}, kAsked, {"/nonexistent/own.json"}).notes, IsEmpty());
  // Absence of a default place is no note, whichever rung answers.
  EXPECT_THAT(ask({}, kAsked, {"/nonexistent/own.json"}).notes,
              ::testing::ElementsAre(HasSubstr("cpu:zen4: no database to ask")));
  EXPECT_THAT(ask({}, kAsked, {"/nonexistent/own.json", good}).notes, IsEmpty());
  // One that is there and cannot be read is told.
  samples::write_file(folder_ / "cut.json", "{");
  EXPECT_THAT(ask({good}, kAsked, {folder_ / "cut.json"}).notes,
              ::testing::ElementsAre(HasSubstr("cut.json: not valid JSON")));
}

TEST_F(LookupTest, AChangedFileIsReadAgain) {
  EXPECT_EQ(ask({file("a.json", {tuned(kAsked, tile("10", "4"))})}).config, tile("10", "4"));
  EXPECT_EQ(ask({file("a.json", {tuned(kAsked, tile("5", "2"))})}).config, tile("5", "2"));
  std::filesystem::remove(folder_ / "a.json");
  EXPECT_EQ(ask({folder_ / "a.json"}).rung, Rung::built_in);
}

TEST_F(LookupTest, OtherObjectivesAreNotAsked) {
  Entry memory = tuned(kAsked, tile("10", "4"));
  memory.objective = "memory";
  EXPECT_EQ(ask({file("a.json", {memory})}).rung, Rung::built_in);
}

TEST_F(LookupTest, AnUncomputableProblemIsAnError) {
  const Problem p = problem(kAsked);
  Kernels kernels = kernels_for(p);
  kernels.built_in = [] { return Result<Config>(unsupported("no variant computes this")); };
  const Result<Explanation> e = lookup(p, device(), {}, {}, kernels);
  ASSERT_FALSE(e.ok());
  EXPECT_EQ(e.error().code, ErrorCode::unsupported);
}

// Other libraries re-tuned at every start, or flooded the log with their fallbacks.
TEST_F(LookupTest, OneNoticePerShapeHoweverOftenItIsAsked) {
  const std::string path = file("a.json", {tuned(kAsked, tile("10", "4"))});
  std::vector<std::string> log;
  const auto ask_and_log = [&](const std::string& text) {
    const Problem p = problem(text);
    const Explanation e = lookup(p, device(), {path}, {}, kernels_for(p)).value();
    log_once(p, device(), e, [&](const std::string& line) { log.push_back(line); });
    return e.rung;
  };
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ask_and_log(kAsked), Rung::exact);
  EXPECT_THAT(log, IsEmpty());
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ask_and_log("gru:T9,B3,I3,H7,f32"), Rung::built_in);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], AllOf(HasSubstr("gru:L1,T9,B3,I3,H7,f32"), HasSubstr("cpu:zen4"),
                            HasSubstr("default: tiled"), HasSubstr(path)));
  ask_and_log("gru:T9,B3,I3,H8,f32");
  EXPECT_EQ(log.size(), 2u);
}

TEST_F(LookupTest, ManyReasonsAreCountedNotListed) {
  Database database;
  for (int batch = 11; batch < 40; ++batch)
    put(database, device(),
        tuned("lstm:L2,T35,B" + std::to_string(batch) + ",I650,H650,f32", tile("96", "4")));
  samples::write_file(folder_ / "a.json", write_text(database));
  const Explanation e = ask({folder_ / "a.json"});
  EXPECT_EQ(e.rung, Rung::built_in);
  EXPECT_LE(e.notes.size(), 6u);
  EXPECT_THAT(e.notes, Contains("26 more entries passed over"));
}

TEST_F(LookupTest, ThreadsMayAskAtOnce) {
  const std::string path = file("a.json", {tuned(kAsked, tile("10", "4"))});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) EXPECT_EQ(ask({path}).rung, Rung::exact);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rnntune
