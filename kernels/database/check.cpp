// SPDX-License-Identifier: Apache-2.0
// Which entries may be chosen, and which of two is the better.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <tuple>

#include "database/codec.hpp"
#include "database/database.hpp"

namespace rnntune {
namespace {

// A nanosecond and eleven days: a step takes longer than the one and less than the other.
constexpr double kShortestUs = 1e-3;
constexpr double kLongestUs = 1e12;

// Too few samples give no interval: low and high are then NaN, both.
std::string why_not_time(const TimeUs& time) {
  const bool interval = !(std::isnan(time.low) && std::isnan(time.high));
  for (const auto& [name, us] : {std::pair{"median", time.median},
                                 {"low", interval ? time.low : time.median},
                                 {"high", interval ? time.high : time.median}})
    if (!(us >= kShortestUs && us <= kLongestUs))
      return std::string("time_us.") + name + ": expected 0.001 to 1e12, got " + dump(Json(us));
  if (interval && !(time.low <= time.median && time.median <= time.high))
    return "time_us: expected low <= median <= high, got " + dump(Json(time.low)) + ", " +
           dump(Json(time.median)) + ", " + dump(Json(time.high));
  if (time.samples < 0) return "time_us.samples: expected at least 0";
  if (time.noise < 0 || std::isinf(time.noise))
    return "time_us.noise: expected a number of at least 0";
  return {};
}

std::string why_not_validation(const Validation& v) {
  if (v.reference.empty()) return "validation.reference: expected a name, got an empty string";
  if (!(v.bound > 0 && std::isfinite(v.bound)))
    return "validation.bound: expected a number above 0, got " + dump(Json(v.bound));
  if (!(v.error >= 0 && v.error <= v.bound))
    return "validation: failed, error " + dump(Json(v.error)) + " is not within the bound " +
           dump(Json(v.bound));
  return {};
}

std::string why_not_against(const Against& a) {
  if (std::string why = why_not_time(a.time_us); !why.empty()) return why;
  for (const double ratio : {a.ratio.median, a.ratio.low, a.ratio.high})
    if (!(ratio > 0 && std::isfinite(ratio)))
      return "ratio: expected numbers above 0, got " + dump(Json(ratio));
  return {};
}

std::string why_not_config(const Config& config) {
  if (config.variant.empty()) return "variant: expected a name, got an empty string";
  std::set<std::string> names;
  for (const auto& [name, value] : config.params)
    if (name.empty() || value.empty() || !names.insert(name).second)
      return "params: expected names once each and values, got '" + name + "' = '" + value + "'";
  return {};
}

// 2026-11-30T10:00:00Z, so that the order of the texts is the order of the times.
std::string why_not_date(const std::string& time) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:ddZ";
  bool fits = time.size() == kShape.size();
  for (std::size_t i = 0; fits && i < kShape.size(); ++i)
    fits = kShape[i] == 'd' ? time[i] >= '0' && time[i] <= '9' : time[i] == kShape[i];
  return fits || time.empty() ? "" : "time: expected 2026-11-30T10:00:00Z, got '" + time + "'";
}

std::string why_not(const Entry& entry) {
  if (const Status status = check(entry.problem); !status)
    return "problem: " + status.error().message;
  if (entry.objective.empty()) return "objective: expected a name, got an empty string";
  if (std::string why = why_not_config(entry.config); !why.empty()) return "config." + why;
  if (std::string why = why_not_time(entry.time_us); !why.empty()) return why;
  for (const auto& [name, bytes] : {std::pair{"workspace_bytes", entry.workspace_bytes},
                                    {"reserve_bytes", entry.reserve_bytes},
                                    {"packed_bytes", entry.packed_bytes},
                                    {"evaluations", entry.evaluations}})
    if (bytes < 0) return std::string(name) + ": expected at least 0, got " + std::to_string(bytes);
  if (!(entry.budget_s >= 0 && std::isfinite(entry.budget_s)))
    return "budget_s: expected a number of at least 0, got " + dump(Json(entry.budget_s));
  if (std::string why = why_not_validation(entry.validation); !why.empty()) return why;
  for (std::size_t i = 0; i < entry.against.size(); ++i)
    if (std::string why = why_not_against(entry.against[i]); !why.empty())
      return "against[" + std::to_string(i) + "]." + why;
  for (std::size_t i = 0; i < entry.tied.size(); ++i)
    if (std::string why = why_not_config(entry.tied[i]); !why.empty())
      return "tied[" + std::to_string(i) + "]." + why;
  return why_not_date(entry.time);
}

// Everything of an entry, for the last step of the order.
std::string full_text(const Entry& entry) {
  return dump(encode(entry, 0)) + dump(encode(entry.environment));
}

}  // namespace

Status check_entry(const Entry& entry) {
  if (std::string why = why_not(entry); !why.empty()) return invalid_argument(std::move(why));
  return {};
}

bool better(const Entry& a, const Entry& b) {
  const auto rank = [](const Entry& e) { return std::tuple(!check_entry(e).ok(), !e.complete); };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  if (a.time != b.time) return a.time > b.time;
  if (a.evaluations != b.evaluations) return a.evaluations > b.evaluations;
  // A NaN would make the order partial.
  const auto us = [](const Entry& e) {
    return std::isnan(e.time_us.median) ? std::numeric_limits<double>::infinity()
                                        : e.time_us.median;
  };
  if (us(a) != us(b)) return us(a) < us(b);
  return full_text(a) < full_text(b);
}

}  // namespace rnntune
