// SPDX-License-Identifier: Apache-2.0
#include "reports/markdown.hpp"

#include <string_view>

#include "reports/counters.hpp"
#include "reports/format.hpp"
#include "reports/table.hpp"

namespace rnntune::reports {
namespace {

// Text as itself: whatever has a meaning to Markdown or HTML is escaped, lines are joined.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      safe += ' ';
    } else if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      if (std::string_view("\\`*_[]|#~").find(c) != std::string_view::npos) safe += '\\';
      safe += c;
    }
  }
  return safe;
}

std::string cell_text(const Cell& cell) {
  std::string text = escaped(cell.text);
  if (cell.tone == Tone::bad) text = "**" + text + "**";
  if (!cell.detail.empty()) text += "<br><sub>" + escaped(cell.detail) + "</sub>";
  return text;
}

std::string table_text(const Table& table) {
  std::string head = "|", rule = "|", body;
  for (const Column& column : table.columns) {
    head += " " + escaped(column.title) + " |";
    rule += column.kind == Kind::text ? " :-- |" : " --: |";
  }
  for (const std::vector<Cell>& row : table.rows) {
    body += "|";
    for (const Cell& cell : row) body += " " + cell_text(cell) + " |";
    body += "\n";
  }
  return head + "\n" + rule + "\n" + body;
}

std::string section(std::string_view title, const Table& table) {
  if (table.rows.empty()) return "";
  return "\n## " + std::string(title) + "\n\n" + table_text(table);
}

std::string means(const Report& report) {
  std::string text;
  for (const std::string& name : opponents(report)) {
    const MeanRatio mean = mean_ratio(report, name);
    if (mean.count == 0) continue;
    text += "- " + format_ratio(mean.ratio) + " vs " + escaped(name) + ", geometric mean of " +
            std::to_string(mean.count) + (mean.count == 1 ? " problem\n" : " problems\n");
  }
  return text.empty() ? "" : "\n" + text;
}

std::string legend(const Table& table) {
  std::string text;
  for (const Column& column : table.columns) {
    if (!column.help.empty())
      text += "- " + escaped(column.title) + ": " + escaped(column.help) + "\n";
  }
  return text;
}

}  // namespace

std::string markdown_page(const Report& report) {
  const Table summary = summary_table(report);
  std::string text = "# " + escaped(report.title) + "\n\n" + escaped(report.device);
  if (!report.time.empty()) text += " \u00b7 " + escaped(report.time);
  text += "\n" + means(report);
  if (!report.notes.empty()) text += "\n";
  for (const std::string& note : report.notes) text += "> " + escaped(note) + "\n";
  text += section("Summary", summary);
  const Table counters = counters_table(report);
  text += section("GPU counters", counters);
  text += section("What failed", failure_table(report));
  text += section("Measured limits", limits_table(report));
  text += section("Environment", environment_table(report));
  text += "\n## What the columns mean\n\n" + legend(summary);
  return counters.rows.empty() ? text : text + legend(counters);
}

}  // namespace rnntune::reports
