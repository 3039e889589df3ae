// SPDX-License-Identifier: Apache-2.0
#include "reports/table.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/format.hpp"

namespace rnntune::reports {
namespace {

const Opponent* find_opponent(const ProblemReport& problem, const std::string& name) {
  const auto found = std::find_if(problem.against.begin(), problem.against.end(),
                                  [&](const Opponent& o) { return o.name == name; });
  return found == problem.against.end() ? nullptr : &*found;
}

bool is_valid_ratio(const std::optional<Interval>& ratio) {
  return ratio && std::isfinite(ratio->median) && ratio->median > 0;
}

// "cell:layout=tbh,threads=2" in its two parts.
std::pair<std::string, std::string> split_config(const std::string& config) {
  const std::size_t colon = config.find(':');
  if (colon == std::string::npos) return {config, ""};
  std::string params = config.substr(colon + 1);
  for (std::size_t at = 0; (at = params.find(',', at)) != std::string::npos; at += 2) {
    params.replace(at, 1, ", ");
  }
  return {config.substr(0, colon), params};
}

Cell time_cell(const ProblemReport& problem) {
  if (!problem.time_us) return {kMissing, "", {}, Tone::plain};
  if (!is_valid(*problem.time_us)) return {kInvalid, "", {}, Tone::bad};
  return {format_time(problem.time_us->median), format_time_interval(*problem.time_us),
          problem.time_us->median, Tone::plain};
}

Cell figure_cell(const std::optional<double>& value, std::string (*format)(double)) {
  if (!value) return {kMissing, "", {}, Tone::plain};
  const std::string text = format(*value);
  const bool invalid = text == kInvalid;
  return {text, "", invalid ? std::nullopt : value, invalid ? Tone::bad : Tone::plain};
}

Cell roofline_cell(const ProblemReport& problem) {
  Cell cell = figure_cell(problem.fraction_of_roofline, format_percent);
  if (problem.roofline) cell.detail = "bound " + format_time(problem.roofline->bound_us);
  // Faster than the machine allows means that a figure is wrong.
  if (problem.fraction_of_roofline.value_or(0) > 1) cell.tone = Tone::bad;
  return cell;
}

// Green or red only where the whole interval lies on one side of 1.
Tone tone_of(const Interval& ratio) {
  if (ratio.low > 1) return Tone::good;
  return ratio.high < 1 ? Tone::bad : Tone::plain;
}

Cell ratio_cell(const ProblemReport& problem, const std::string& name) {
  const Opponent* opponent = find_opponent(problem, name);
  if (!opponent || !opponent->ratio) return {kMissing, "", {}, Tone::plain};
  if (!is_valid_ratio(opponent->ratio)) return {kInvalid, "", {}, Tone::bad};
  const Interval& ratio = *opponent->ratio;
  const bool bounded = std::isfinite(ratio.low) && std::isfinite(ratio.high);
  return {
      format_ratio(ratio.median),
      bounded ? format_number(ratio.low, 3) + " to " + format_number(ratio.high, 3) : kNoInterval,
      ratio.median, tone_of(ratio)};
}

Cell validation_cell(const ProblemReport& problem) {
  if (!problem.validation) return {kMissing, "", {}, Tone::plain};
  const Validation& v = *problem.validation;
  const std::string detail = "of " + format_error(v.bound);
  const bool passed = v.error <= v.bound;
  return {format_error(v.error), detail, v.error, passed ? Tone::good : Tone::bad};
}

Cell memory_cell(const ProblemReport& problem) {
  if (!problem.reserve_bytes && !problem.workspace_bytes) return {kMissing, "", {}, Tone::plain};
  const std::int64_t reserve = problem.reserve_bytes.value_or(0);
  const std::int64_t workspace = problem.workspace_bytes.value_or(0);
  return {format_bytes(reserve + workspace), "reserve " + format_bytes(reserve),
          static_cast<double>(reserve) + static_cast<double>(workspace), Tone::plain};
}

std::string tried_detail(const ProblemReport& problem) {
  std::string detail = problem.space > 0 ? "of " + std::to_string(problem.space) : "";
  if (!problem.complete) detail += detail.empty() ? "incomplete" : ", incomplete";
  if (!problem.tied.empty()) {
    detail += (detail.empty() ? "" : ", ") + std::to_string(problem.tied.size()) + " tied";
  }
  return detail;
}

std::vector<Cell> summary_row(const ProblemReport& problem, const std::vector<std::string>& names) {
  const auto [variant, params] = split_config(problem.config);
  std::vector<Cell> row{
      {problem.name, problem.name == problem.problem ? "" : problem.problem, {}, Tone::plain},
      variant.empty() ? Cell{"none found", "", {}, Tone::bad}
                      : Cell{variant, params, {}, Tone::plain},
      time_cell(problem),
      figure_cell(problem.gflops, format_gflops),
      figure_cell(problem.fraction_of_peak, format_percent),
      roofline_cell(problem)};
  for (const std::string& name : names) row.push_back(ratio_cell(problem, name));
  row.push_back(validation_cell(problem));
  row.push_back(memory_cell(problem));
  row.push_back({std::to_string(problem.evaluations), tried_detail(problem),
                 static_cast<double>(problem.evaluations), Tone::plain});
  return row;
}

}  // namespace

std::vector<std::string> opponents(const Report& report) {
  std::vector<std::string> names;
  for (const ProblemReport& problem : report.problems) {
    for (const Opponent& opponent : problem.against) {
      if (std::find(names.begin(), names.end(), opponent.name) == names.end()) {
        names.push_back(opponent.name);
      }
    }
  }
  return names;
}

MeanRatio mean_ratio(const Report& report, const std::string& opponent) {
  double sum = 0;
  int count = 0;
  for (const ProblemReport& problem : report.problems) {
    const Opponent* found = find_opponent(problem, opponent);
    if (!found || !is_valid_ratio(found->ratio)) continue;
    sum += std::log(found->ratio->median);
    ++count;
  }
  return {count ? std::exp(sum / count) : 0, count};
}

Table summary_table(const Report& report) {
  const std::vector<std::string> names = opponents(report);
  Table table;
  table.columns = {
      {"Problem", "Name in its suite, and the problem string.", Kind::text},
      {"Best config", "The variant and its parameters that the database holds.", Kind::text},
      {"Step time", "Median of one training step, and the 95% interval of that median.",
       Kind::number},
      {"GFLOP/s", "GEMM work of the step over its time, 1 multiply-add = 2 FLOP.", Kind::number},
      {"Of peak", "GFLOP/s over the measured FMA peak at the config's threads.", Kind::fraction},
      {"Of roofline", "The least time this machine allows, over the step time.", Kind::fraction}};
  for (const std::string& name : names) {
    table.columns.push_back(
        {"vs " + name, "Time of " + name + " over ours, with its 95% interval; above 1 is a win.",
         Kind::number});
  }
  table.columns.insert(
      table.columns.end(),
      {{"Error",
        "max|out - reference| / rms(reference) of the tensor closest to its bound, and that bound.",
        Kind::number},
       {"Memory", "Reserve and workspace together.", Kind::number},
       {"Tried", "Configs evaluated, and those that could not be told apart from the best.",
        Kind::number}});
  for (const ProblemReport& problem : report.problems) {
    table.rows.push_back(summary_row(problem, names));
  }
  return table;
}

Table failure_table(const Report& report) {
  Table table;
  table.columns = {{"Problem", "", Kind::text},
                   {"Outcome", "", Kind::text},
                   {"Configs", "", Kind::number},
                   {"First reason", "", Kind::text}};
  for (const ProblemReport& problem : report.problems) {
    std::map<std::string, std::pair<int, const Attempt*>> outcomes;
    for (const Attempt& attempt : problem.attempts) {
      if (attempt.outcome == "ok") continue;
      auto& [count, first] = outcomes[attempt.outcome];
      if (count++ == 0) first = &attempt;
    }
    for (const auto& [outcome, found] : outcomes) {
      const auto& [count, first] = found;
      table.rows.push_back({{problem.name, "", {}, Tone::plain},
                            {outcome, "", {}, Tone::plain},
                            {std::to_string(count), "", static_cast<double>(count), Tone::plain},
                            {first->reason, first->config, {}, Tone::plain}});
    }
  }
  return table;
}

Table environment_table(const Report& report) {
  Table table;
  table.columns = {{"Item", "", Kind::text}, {"Value", "", Kind::text}};
  const auto add = [&](const std::string& key, const std::string& value) {
    if (!value.empty()) table.rows.push_back({{key, "", {}, {}}, {value, "", {}, {}}});
  };
  add("device", report.device);
  add("rnntune", report.version);
  add("measured", report.time);
  for (const auto& [key, value] : report.environment) add(key, value);
  for (const std::string& source : report.sources) add("made from", source);
  return table;
}

Table limits_table(const Report& report) {
  Table table;
  table.columns = {{"Threads", "", Kind::number},
                   {"FMA peak f32", "", Kind::number},
                   {"Read bandwidth by working set per thread", "", Kind::text}};
  for (const MachineLimits& limits : report.limits) {
    std::string bandwidth;
    for (const Bandwidth& point : limits.read_bandwidth) {
      bandwidth += (bandwidth.empty() ? "" : ", ") + format_bytes(point.working_set_bytes) + ": " +
                   format_number(point.gbytes_per_s, 3) + " GB/s";
    }
    table.rows.push_back(
        {{std::to_string(limits.threads), "", static_cast<double>(limits.threads), {}},
         {format_gflops(limits.peak_gflops) + " GFLOP/s", "", limits.peak_gflops, {}},
         {bandwidth, "", {}, {}}});
  }
  return table;
}

}  // namespace rnntune::reports
