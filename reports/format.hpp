// SPDX-License-Identifier: Apache-2.0
// Numbers as text, the same in every writer. A figure that is no sensible number is "invalid", one
// that was not measured is kMissing.
#pragma once

#include <cstdint>
#include <string>

#include "reports/records.hpp"

namespace rnntune::reports {

inline const std::string kMissing = "\u2013";  // en dash
inline const std::string kInvalid = "invalid";
inline const std::string kNoInterval = "no interval";  // too few samples for one

std::string format_time(double time_us);                 // "812 µs", "10.5 ms", three digits
std::string format_time_interval(const Interval& time);  // "10.4 to 10.9 ms"
std::string format_ratio(double ratio);                  // "1.52×"
std::string format_percent(double fraction);             // "84%", "3.2%"
std::string format_gflops(double gflops);                // "206"
std::string format_bytes(std::int64_t bytes);            // "1.2 MiB"
std::string format_error(double error);                  // "1.2e-07"
std::string format_number(double value, int digits);     // significant digits, no exponent

}  // namespace rnntune::reports
