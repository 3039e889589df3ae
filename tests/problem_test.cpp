// SPDX-License-Identifier: Apache-2.0
// Problems and configs as text, their checks, and the counts derived from them.
#include "rnntune/problem.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rnntune/config.hpp"

namespace rnntune {
namespace {

using ::testing::HasSubstr;

TEST(ProblemTest, PrintsTheCanonicalFormAndReadsItBack) {
  for (const char* text : {
           "lstm:L2,T35,B20,I650,H650,f32",
           "lstm:L1,T20,B256,I1024,H8192,P1024,bias1,f32",
           "lstm:L2,T20,B256,I1024,H8192,P1024,G4/8,bias1,f32",
           "lstm:L1,T20,B256,I1024,H8192,P1024,R512,f32",
           "lstm:L1,T1024,B16,I768,H768,N8,bf16",
           "gru:L5,T100,B12,I1760,H1760,D2,var,f32",
           "rnn_relu:L1,T50,B16,I1760,H1760,skip,f16",
           "lstm_peephole:L3,T1,B1,I1,H1,drop0.1,nobias,tf32",
           "lstm:L1,T4,B2,I8,H8,P8,f32",
       }) {
    const Result<Problem> problem = parse_problem(text);
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    EXPECT_EQ(to_string(*problem), text);
  }
}

TEST(ProblemTest, DefaultsAndOrderAreFree) {
  const Result<Problem> problem = parse_problem("lstm:H4,T3,I5,B2,G1");
  ASSERT_TRUE(problem.ok());
  EXPECT_EQ(to_string(*problem), "lstm:L1,T3,B2,I5,H4,f32");
  EXPECT_EQ(to_string(*parse_problem("lstm:T3,B2,H4,skip")), "lstm:L1,T3,B2,I4,H4,skip,f32");
}

struct Bad {
  const char* text;
  const char* names;  // what the message must name
};

// Cases R03, R16, R19 and R51: every bad field is refused by name.
TEST(ProblemTest, RefusesByName) {
  for (const Bad& bad : {
           Bad{"", "unknown cell"},
           {"lstmm:T1,B1,I1,H1", "unknown cell 'lstmm'"},
           {"lstm", "sizes are missing"},
           {"lstm:T10,Babc", "B: expected a whole number of at least 1, got 'abc'"},
           {"gru:", "a part is empty"},
           {"lstm:T1,B1,I1,H1,", "a part is empty"},
           {"lstm:T0,B10,I5,H6", "T: expected at least 1, got '0'"},
           {"lstm:T3,B0,I5,H6", "B: expected at least 1, got '0'"},
           {"lstm:T3,B1,I0,H6", "I: expected at least 1, got '0'"},
           {"lstm:T3,B1,I5,H0", "H: expected at least 1, got '0'"},
           {"lstm:L0,T3,B1,I5,H5", "L: expected at least 1, got '0'"},
           {"lstm:L-1,T3,B1,I5,H5", "L: expected at least 1, got '-1'"},
           {"lstm:T3,B1,I5,H5,D3", "D: expected 1 or 2, got '3'"},
           {"lstm:T3,B1,I5,H5,D", "D: expected 1 or 2, got nothing"},
           {"lstm:T3,B1,I5,H5,P0", "P: expected at least 1, got '0'"},
           {"lstm:T3,B1,I5,H5,R0", "R: expected at least 1, got '0'"},
           {"lstm:T3,B1,I5,H5,N0", "N: expected at least 1, got '0'"},
           {"lstm:L2,T3,B1,I4,H4,G2/0", "G: expected at least 1, got '0'"},
           {"lstm:L2,T3,B1,I4,H4,G2/", "G: expected a whole number of at least 1, got nothing"},
           {"lstm:T3,B1,I5,H5,X7", "cannot read 'X7', known are L T B"},
           {"lstm:T3,B1,I5,H5,drop1.5", "drop: expected a number of at least 0 and below 1"},
           {"lstm:T3,B1,I5,H5,drop-0.1", "below 1, got '-0.1'"},
           {"lstm:T3,B1,I5,H5,dropnan", "below 1, got 'nan'"},
           {"lstm:T3,B1,I5,H5,P6", "P must be at most H"},
           {"lstm:T3,B1,I5,H5,P-1", "P: expected at least 1, got '-1'"},
           {"lstm:T3,T3,B1,I5,H5", "'T3' is given twice"},
           {"lstm:T3,B1,H5", "I is missing"},
           {"gru:T3,B1,I5,H5,P4", "belong to the LSTM cells"},
           {"lstm:T3,B1,I4,H4,G2,R2", "exclude each other"},
           {"lstm:T3,B1,I4,H4,G3", "G = 3 must divide"},
           {"lstm:L3,T3,B1,I4,H4,G2/4", "one per layer"},
           {"lstm:T3,B1,I5,H4,skip", "skip needs I = H"},
           {"lstm:T99999999999999999999,B1,I5,H4", "T: expected at most 9223372036854775807"},
           {"lstm:T2147483647,B2147483647,I1,H2147483647", "size overflow"},
       }) {
    const Result<Problem> problem = parse_problem(bad.text);
    ASSERT_FALSE(problem.ok()) << bad.text;
    EXPECT_THAT(problem.error().message, HasSubstr(bad.names)) << bad.text;
  }
}

TEST(ProblemTest, ChecksValuesThatNoTextCanHold) {
  Problem problem{.time = 2, .batch = 2, .input = 2, .hidden = 2};
  ASSERT_TRUE(check(problem).ok());
  problem.cell = static_cast<Cell>(99);
  EXPECT_THAT(check(problem).error().message, HasSubstr("cell"));
  problem.cell = Cell::lstm;
  problem.layers = -1;
  EXPECT_THAT(check(problem).error().message, HasSubstr("L must be at least 1, got -1"));
  problem.layers = 1;
  problem.dropout = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(check(problem).error().message, HasSubstr("dropout"));
}

// Published counts of the two-layer BIGLSTM models (Kuchaiev and Ginsburg, and their README).
TEST(ProblemTest, CountsParametersAsPublished) {
  const auto count = [](const std::string& model) {
    return parameter_count(*parse_problem("lstm:L2,T20,B256,I1024,H8192,P1024,bias1" + model));
  };
  EXPECT_EQ(count(""), 151060480);
  EXPECT_EQ(count(",R512"), 52494336);
  EXPECT_EQ(count(",G2"), 83951616);
  EXPECT_EQ(count(",G4"), 50397184);
  EXPECT_EQ(count(",G8"), 33619968);
  EXPECT_EQ(count(",G4/8"), 42008576);
}

TEST(ProblemTest, CountsFlops) {
  // 3 passes of 2 * 4 * 512 * (512 + 512) * 25 * 16.
  EXPECT_EQ(step_flops(*parse_problem("lstm:T25,B16,I512,H512")), 3.0 * 2 * 2048 * 1024 * 400);
  EXPECT_EQ(step_flops(*parse_problem("lstm:T1,B1,H4,skip")), 3.0 * 2 * 16 * 4);
  // MACs per token and layer: 75.5M for BIGLSTM.
  EXPECT_NEAR(step_flops(*parse_problem("lstm:T1,B1,I1024,H8192,P1024")) / 6, 75.5e6, 0.05e6);
}

// Case R03: 6 * L * T * H * D * B crosses INT_MAX.
TEST(ProblemTest, CountsBeyond32Bits) {
  const auto y = [](const char* batch) {
    return tensor_counts(*parse_problem(std::string("lstm:L4,T600,I60,H128,D2,B") + batch)).y;
  };
  EXPECT_EQ(y("582") / 582, y("583") / 583);
  EXPECT_EQ(y("100000"), 100000ll * 600 * 256);
}

TEST(ConfigTest, PrintsAndReadsBack) {
  for (const char* text : {"unfused", "cell:layout=tbh,threads=2,chunk=0"}) {
    const Result<Config> config = parse_config(text);
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(to_string(*config), text);
  }
  const Config config = *parse_config("cell:layout=tbh,threads=2");
  EXPECT_EQ(config.get("layout"), "tbh");
  EXPECT_EQ(config.get_int("threads"), 2);
  EXPECT_EQ(config.get_int("layout", -1), -1);
  EXPECT_EQ(config.get("chunk"), "");
}

TEST(ConfigTest, RefusesByPart) {
  for (const Bad& bad : {Bad{"", "variant is missing"},
                         {":a=1", "variant is missing"},
                         {"cell:", "''"},
                         {"cell:threads", "'threads'"},
                         {"cell:threads=", "'threads='"},
                         {"cell:=1", "'=1'"},
                         {"cell:a=1,a=2", "given twice"}}) {
    const Result<Config> config = parse_config(bad.text);
    ASSERT_FALSE(config.ok()) << bad.text;
    EXPECT_THAT(config.error().message, HasSubstr(bad.names)) << bad.text;
  }
}

}  // namespace
}  // namespace rnntune
