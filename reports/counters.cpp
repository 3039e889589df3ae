// SPDX-License-Identifier: Apache-2.0
#include "reports/counters.hpp"

#include <cmath>

#include "reports/format.hpp"

namespace rnntune::reports {
namespace {

constexpr std::size_t kStalls = 3;        // shown
constexpr double kLeastStall = 0.01;      // below it nobody cares
constexpr double kMostBytes = 1LL << 62;  // beyond it a figure is none

// Unlike other fractions, none at all is a figure here.
std::string percent(double fraction) { return fraction == 0 ? "0%" : format_percent(fraction); }

std::string bytes(double value) {
  return value >= 0 && value <= kMostBytes ? format_bytes(std::llround(value)) : kInvalid;
}

Cell figure(const std::optional<double>& value, std::string (*format)(double)) {
  if (!value) return {kMissing, "", {}, Tone::plain};
  const std::string text = format(*value);
  if (text == kInvalid) return {kInvalid, "", {}, Tone::bad};
  return {text, "", value, Tone::plain};
}

std::optional<double> dram_bytes(const GpuCounters& counters) {
  if (!counters.dram_read_bytes || !counters.dram_write_bytes) return std::nullopt;
  return *counters.dram_read_bytes + *counters.dram_write_bytes;
}

Cell dram_cell(const GpuCounters& counters) {
  Cell cell = figure(dram_bytes(counters), bytes);
  if (cell.order) cell.detail = bytes(*counters.dram_write_bytes) + " written";
  return cell;
}

std::string stalls_text(const GpuCounters& counters) {
  std::string text;
  std::size_t shown = 0;
  for (const auto& [reason, share] : counters.stalls) {
    if (shown++ == kStalls || !(share >= kLeastStall)) break;
    text += (text.empty() ? "" : ", ") + reason + " " + percent(share);
  }
  return text;
}

}  // namespace

Table counters_table(const Report& report) {
  Table table;
  table.columns = {
      {"Problem", "", Kind::text},
      {"Step of", "", Kind::text},
      {"DRAM", "Bytes read from and written to the GPU's memory in one step.", Kind::number},
      {"Of DRAM peak", "Memory throughput over its peak.", Kind::fraction},
      {"L2", "Bytes through the second-level cache in one step.", Kind::number},
      {"Tensor pipe", "Cycles in which the tensor cores worked.", Kind::fraction},
      {"FMA pipe", "Cycles in which the multiply-add units worked.", Kind::fraction},
      {"Occupancy", "Warps that were resident, of those that could be.", Kind::fraction},
      {"Warps wait for", "The most frequent reasons, with their share of the warps' time.",
       Kind::text}};
  for (const ProblemReport& problem : report.problems) {
    for (const GpuCounters& counters : problem.counters) {
      const std::string stalls = stalls_text(counters);
      table.rows.push_back({{problem.name, "", {}, Tone::plain},
                            {counters.contender, counters.chip, {}, Tone::plain},
                            dram_cell(counters),
                            figure(counters.dram_throughput, percent),
                            figure(counters.l2_bytes, bytes),
                            figure(counters.tensor_pipe, percent),
                            figure(counters.fma_pipe, percent),
                            figure(counters.occupancy, percent),
                            {stalls.empty() ? kMissing : stalls, "", {}, Tone::plain}});
    }
  }
  return table;
}

std::string counters_line(const GpuCounters& counters) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (const auto moved = dram_bytes(counters)) add("DRAM " + bytes(*moved));
  const struct {
    const char* name;
    const std::optional<double>& value;
  } fractions[] = {{"of DRAM peak", counters.dram_throughput},
                   {"tensor pipe", counters.tensor_pipe},
                   {"FMA pipe", counters.fma_pipe},
                   {"occupancy", counters.occupancy}};
  for (const auto& [name, value] : fractions) {
    if (value) add(std::string(name) + " " + percent(*value));
  }
  if (const std::string stalls = stalls_text(counters); !stalls.empty()) {
    add("warps wait for " + stalls);
  }
  return "counters of " + counters.contender + ": " + (text.empty() ? "none" : text);
}

}  // namespace rnntune::reports
