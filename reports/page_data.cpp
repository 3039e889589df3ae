// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/format.hpp"
#include "reports/html.hpp"
#include "reports/table.hpp"

namespace rnntune::reports {
namespace {

using Json = nlohmann::ordered_json;

bool is_drawable(double value) { return std::isfinite(value) && value > 0; }

// An interval that is none, of too few samples, shrinks to its median.
Json interval_data(const std::optional<Interval>& interval) {
  if (!interval || !is_drawable(interval->median)) return nullptr;
  const bool bounded = is_drawable(interval->low) && is_drawable(interval->high);
  return Json{{"median", interval->median},
              {"low", bounded ? interval->low : interval->median},
              {"high", bounded ? interval->high : interval->median}};
}

Json time_data(const std::optional<Interval>& time_us) {
  return time_us && is_valid(*time_us) ? interval_data(time_us) : Json(nullptr);
}

Json number_data(const std::optional<double>& value) {
  return value && is_drawable(*value) ? Json(*value) : Json(nullptr);
}

Json opponent_data(const Opponent& opponent) {
  return Json{{"name", opponent.name},
              {"version", opponent.version},
              {"time_us", time_data(opponent.time_us)},
              {"ratio", interval_data(opponent.ratio)}};
}

Json attempt_data(const Attempt& attempt, const ProblemReport& problem) {
  Json params = Json::object();
  for (const auto& [key, value] : attempt.params) params[key] = value;
  Json data{{"config", attempt.config},
            {"variant", attempt.variant},
            {"params", params},
            {"outcome", attempt.outcome},
            {"reason", attempt.reason},
            {"time_us", time_data(attempt.time_us)},
            {"best", attempt.config == problem.config}};
  if (data["time_us"].is_object()) data["label"] = format_time(attempt.time_us->median);
  return data;
}

Json problem_data(const ProblemReport& problem) {
  Json data{{"name", problem.name},
            {"problem", problem.problem},
            {"config", problem.config},
            {"variant", problem.variant},
            {"threads", problem.threads},
            {"time_us", time_data(problem.time_us)},
            {"gflops", number_data(problem.gflops)},
            {"intensity", nullptr},
            {"bound_us", nullptr},
            {"limit", nullptr},
            {"against", Json::array()},
            {"attempts", Json::array()}};
  if (problem.time_us) data["label"] = format_time(problem.time_us->median);
  if (problem.roofline) {
    data["intensity"] = number_data(problem.roofline->intensity);
    data["bound_us"] = number_data(problem.roofline->bound_us);
    data["limit"] = problem.roofline->limit;
  }
  for (const Opponent& o : problem.against) data["against"].push_back(opponent_data(o));
  for (const Attempt& a : problem.attempts) data["attempts"].push_back(attempt_data(a, problem));
  return data;
}

Json limits_data(const MachineLimits& limits) {
  Json bandwidth = Json::array();
  for (const Bandwidth& point : limits.read_bandwidth) {
    if (!is_drawable(point.gbytes_per_s)) continue;
    bandwidth.push_back({{"label", format_bytes(point.working_set_bytes)},
                         {"bytes", point.working_set_bytes},
                         {"gbytes_per_s", point.gbytes_per_s}});
  }
  return Json{{"threads", limits.threads},
              {"peak_gflops", number_data(limits.peak_gflops)},
              {"bandwidth", bandwidth}};
}

// '<' is the one character that can end a script element or start a comment in it.
std::string without_markup(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string page_data(const Report& report) {
  Json data{
      {"opponents", opponents(report)}, {"limits", Json::array()}, {"problems", Json::array()}};
  for (const MachineLimits& limits : report.limits) data["limits"].push_back(limits_data(limits));
  for (const ProblemReport& problem : report.problems) {
    data["problems"].push_back(problem_data(problem));
  }
  return without_markup(data.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace rnntune::reports
