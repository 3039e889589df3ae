// SPDX-License-Identifier: Apache-2.0
#include "reports/summary.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "reports/format.hpp"
#include "reports/table.hpp"

namespace rnntune::reports {
namespace {

// Characters on screen: bytes that do not continue a UTF-8 sequence.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string blanks(width - std::min(width, width_of(text)), ' ');
  return right ? blanks + text : text + blanks;
}

// Control characters of a hostile name would reach the terminal.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }, '?');
  return text;
}

using Lines = std::vector<std::vector<std::string>>;

std::vector<std::string> line_of(const std::vector<Cell>& row, std::string config) {
  std::vector<std::string> line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i != 1) line.push_back(printable(row[i].text));
  }
  line.push_back(printable(std::move(config)));
  return line;
}

}  // namespace

std::string summary_text(const Report& report) {
  const Table table = summary_table(report);
  std::vector<bool> right;
  Lines lines(1);
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (i == 1) continue;
    lines[0].push_back(table.columns[i].title);
    right.push_back(table.columns[i].kind != Kind::text);
  }
  lines[0].push_back(table.columns[1].title);
  right.push_back(false);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::string& config = report.problems[i].config;
    lines.push_back(line_of(table.rows[i], config.empty() ? "none found" : config));
  }
  std::string text;
  for (const std::vector<std::string>& line : lines) {
    std::string shown;
    for (std::size_t i = 0; i < line.size(); ++i) {
      std::size_t width = 0;
      for (const std::vector<std::string>& other : lines) {
        width = std::max(width, width_of(other[i]));
      }
      shown += (i ? "  " : "") + padded(line[i], width, right[i]);
    }
    text += shown.substr(0, shown.find_last_not_of(' ') + 1) + "\n";
  }
  for (const std::string& name : opponents(report)) {
    const MeanRatio mean = mean_ratio(report, name);
    if (mean.count == 0) continue;
    text += "vs " + name + ": " + format_ratio(mean.ratio) + " (geometric mean of " +
            std::to_string(mean.count) + ")\n";
  }
  for (const std::string& note : report.notes) text += "note: " + printable(note) + "\n";
  return text;
}

}  // namespace rnntune::reports
