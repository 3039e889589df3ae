// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reports/format.hpp"

namespace rnntune::reports {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(ReportFormat, TimesCarryThreeDigitsAndTheirUnit) {
  EXPECT_EQ(format_time(0.25), "250 ns");
  EXPECT_EQ(format_time(812.44), "812 \u00b5s");
  EXPECT_EQ(format_time(999.7), "1.00 ms");
  EXPECT_EQ(format_time(10480), "10.5 ms");
  EXPECT_EQ(format_time(2.5e6), "2.50 s");
}

TEST(ReportFormat, ATimeThatIsNoneIsInvalid) {
  for (const double time_us : {0.0, -1.0, kNan, kInf, 1e-9, 1e308}) {
    EXPECT_FALSE(is_valid_time(time_us)) << time_us;
    EXPECT_EQ(format_time(time_us), kInvalid) << time_us;
    EXPECT_EQ(format_time_interval({time_us, 1, 2}), kInvalid) << time_us;
  }
  EXPECT_TRUE(is_valid_time(0.001));
  EXPECT_TRUE(is_valid_time(3600e6));
}

TEST(ReportFormat, IntervalsUseTheUnitOfTheirMedian) {
  EXPECT_EQ(format_time_interval({1000, 990, 1011}), "0.9900 to 1.011 ms");
  EXPECT_EQ(format_time_interval({1000, kNan, kNan}), kNoInterval);
}

TEST(ReportFormat, FiguresWithoutSenseAreInvalidNeverInfinite) {
  for (const double value : {0.0, -2.0, kNan, kInf}) {
    EXPECT_EQ(format_ratio(value), kInvalid);
    EXPECT_EQ(format_percent(value), kInvalid);
    EXPECT_EQ(format_gflops(value), kInvalid);
  }
  EXPECT_EQ(format_error(kNan), kInvalid);
  EXPECT_EQ(format_error(-1), kInvalid);
  EXPECT_EQ(format_error(0), "0.0e+00");
  EXPECT_EQ(format_bytes(-1), kInvalid);
}

TEST(ReportFormat, RatiosPercentagesAndBytes) {
  EXPECT_EQ(format_ratio(1.519), "1.52\u00d7");
  EXPECT_EQ(format_percent(0.8449), "84.5%");
  EXPECT_EQ(format_percent(0.0312), "3.1%");
  EXPECT_EQ(format_gflops(206.4), "206");
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(24 << 10), "24 KiB");
  EXPECT_EQ(format_bytes(1300000), "1.24 MiB");
  EXPECT_EQ(format_error(1.23e-7), "1.2e-07");
}

}  // namespace
}  // namespace rnntune::reports
