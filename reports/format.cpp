// SPDX-License-Identifier: Apache-2.0
#include "reports/format.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rnntune::reports {
namespace {

struct Unit {
  double scale;
  const char* name;
};

// The largest unit in which the value is at least one, or the smallest unit.
template <std::size_t N>
Unit unit_of(double value, const std::array<Unit, N>& units) {
  const auto fits = [&](const Unit& unit) { return value >= unit.scale * 0.9995; };
  const auto found = std::find_if(units.begin(), units.end(), fits);
  return found == units.end() ? units.back() : *found;
}

constexpr std::array<Unit, 4> kTimeUnits{{{1e6, "s"}, {1e3, "ms"}, {1, "\u00b5s"}, {1e-3, "ns"}}};
constexpr std::array<Unit, 4> kByteUnits{
    {{1024. * 1024 * 1024, "GiB"}, {1024. * 1024, "MiB"}, {1024, "KiB"}, {1, "B"}}};

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

bool is_valid_time(double time_us) {
  return std::isfinite(time_us) && time_us >= 1e-3 && time_us <= 1209600e6;
}

bool is_valid(const Interval& time_us) { return is_valid_time(time_us.median); }

std::string format_number(double value, int digits) {
  if (!std::isfinite(value)) return kInvalid;
  if (value == 0) return "0";
  std::array<char, 400> text{};
  // The exponent after rounding: 999.7 with three digits has one more than before.
  std::snprintf(text.data(), text.size(), "%.*e", digits - 1, value);
  const int magnitude = std::atoi(std::strchr(text.data(), 'e') + 1) + 1;
  std::snprintf(text.data(), text.size(), "%.*f", std::clamp(digits - magnitude, 0, 12), value);
  return text.data();
}

std::string format_time(double time_us) {
  if (!is_valid_time(time_us)) return kInvalid;
  const Unit unit = unit_of(time_us, kTimeUnits);
  return format_number(time_us / unit.scale, 3) + " " + unit.name;
}

std::string format_time_interval(const Interval& time) {
  if (std::isnan(time.low) || std::isnan(time.high)) return kNoInterval;
  if (!is_valid(time) || !is_valid_time(time.low) || !is_valid_time(time.high)) return kInvalid;
  const Unit unit = unit_of(time.median, kTimeUnits);
  return format_number(time.low / unit.scale, 4) + " to " +
         format_number(time.high / unit.scale, 4) + " " + unit.name;
}

std::string format_ratio(double ratio) {
  return is_positive(ratio) ? format_number(ratio, 3) + "\u00d7" : kInvalid;
}

std::string format_percent(double fraction) {
  if (!is_positive(fraction)) return kInvalid;
  return format_number(fraction * 100, fraction < 0.0995 ? 2 : 3) + "%";
}

std::string format_gflops(double gflops) {
  return is_positive(gflops) ? format_number(gflops, 3) : kInvalid;
}

std::string format_bytes(std::int64_t bytes) {
  if (bytes < 0) return kInvalid;
  const Unit unit = unit_of(static_cast<double>(bytes), kByteUnits);
  const double value = static_cast<double>(bytes) / unit.scale;
  const bool whole = value == std::floor(value);
  return format_number(value, whole ? 1 : 3) + " " + unit.name;
}

std::string format_error(double error) {
  if (!std::isfinite(error) || error < 0) return kInvalid;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1e", error);
  return text.data();
}

}  // namespace rnntune::reports
