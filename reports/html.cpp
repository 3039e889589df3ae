// SPDX-License-Identifier: Apache-2.0
#include "reports/html.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdio>
#include <map>
#include <string_view>

#include "reports/assets.hpp"
#include "reports/counters.hpp"
#include "reports/format.hpp"
#include "reports/table.hpp"

namespace rnntune::reports {
namespace {

std::string asset(std::string_view name) {
  std::string text;
  for (const Asset& candidate : assets()) {
    if (candidate.name != name) continue;
    for (const std::string_view piece : candidate.pieces) text += piece;
  }
  assert(!text.empty());
  return text;
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string tag(std::string_view name, std::string_view attributes, std::string_view content) {
  std::string text = "<";
  text += name;
  if (!attributes.empty()) text += " ";
  text += attributes;
  text += ">";
  text += content;
  return text + "</" + std::string(name) + ">";
}

std::string attribute(std::string_view name, std::string_view value) {
  return std::string(name) + "=\"" + escaped(value) + "\"";
}

std::string class_of(const Column& column, const Cell& cell) {
  std::string classes = column.kind == Kind::text ? "text" : "number";
  if (cell.tone == Tone::good) classes += " good";
  if (cell.tone == Tone::bad) classes += " bad";
  return classes;
}

// May break after a comma, as configs do.
std::string breakable(std::string_view text) {
  std::string safe = escaped(text);
  for (std::size_t at = 0; (at = safe.find(',', at)) != std::string::npos; ++at) {
    safe.insert(at + 1, "<wbr>");
  }
  return safe;
}

// The label is what a narrow page shows beside the cell, where it has no header row.
std::string cell_html(const Column& column, const Cell& cell) {
  std::string attributes = attribute("class", class_of(column, cell)) + " " +
                           attribute("data-label", column.title) + " ";
  std::array<char, 32> order{};
  if (cell.order) std::snprintf(order.data(), order.size(), "%.9g", *cell.order);
  attributes += attribute("data-order", order.data());
  std::string content = tag("span", "class=\"value\"", escaped(cell.text));
  if (column.kind == Kind::fraction && cell.order) {
    const double share = std::clamp(*cell.order, 0.0, 1.0) * 100;
    content += tag("span", "class=\"meter\" aria-hidden=\"true\"",
                   tag("i", attribute("style", "width:" + format_number(share, 3) + "%"), ""));
  }
  if (!cell.detail.empty()) content += tag("span", "class=\"detail\"", breakable(cell.detail));
  return tag("td", attributes, content);
}

std::string table_html(const Table& table, bool sortable) {
  std::string head;
  for (const Column& column : table.columns) {
    const std::string title = escaped(column.title);
    const std::string attributes =
        std::string("scope=\"col\" class=\"") + (column.kind == Kind::text ? "text" : "number") +
        "\"" + (column.help.empty() ? "" : " " + attribute("title", column.help));
    head += tag("th", attributes, sortable ? tag("button", "type=\"button\"", title) : title);
  }
  std::string body;
  for (const std::vector<Cell>& row : table.rows) {
    std::string cells;
    for (std::size_t i = 0; i < row.size(); ++i) cells += cell_html(table.columns[i], row[i]);
    body += tag("tr", "", cells) + "\n";
  }
  return tag("div", "class=\"scroll\"",
             tag("table", sortable ? "class=\"sortable\"" : "",
                 tag("thead", "", tag("tr", "", head)) + tag("tbody", "", body)));
}

std::string tile(const std::string& value, const std::string& label, const std::string& detail) {
  return tag("div", "class=\"tile\"",
             tag("b", "", escaped(value)) + tag("span", "", escaped(label)) +
                 tag("small", "", escaped(detail)));
}

std::string count_of(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string tiles_html(const Report& report) {
  std::size_t found = 0, tried = 0, passed = 0;
  for (const ProblemReport& problem : report.problems) {
    found += problem.time_us && is_valid(*problem.time_us);
    tried += problem.attempts.size();
    passed +=
        static_cast<std::size_t>(std::count_if(problem.attempts.begin(), problem.attempts.end(),
                                               [](const Attempt& a) { return a.outcome == "ok"; }));
  }
  std::string tiles = tile(std::to_string(found), found == 1 ? "problem tuned" : "problems tuned",
                           "of " + std::to_string(report.problems.size()));
  for (const std::string& name : opponents(report)) {
    const MeanRatio mean = mean_ratio(report, name);
    if (mean.count == 0) continue;
    tiles += tile(format_ratio(mean.ratio), "vs " + name,
                  "geometric mean of " + count_of(static_cast<std::size_t>(mean.count), "problem"));
  }
  if (tried > 0) {
    tiles += tile(std::to_string(tried), tried == 1 ? "config tried" : "configs tried",
                  std::to_string(passed) + " passed validation");
  }
  return tiles;
}

std::string notes_html(const Report& report) {
  std::string items;
  for (const std::string& note : report.notes) items += tag("li", "", escaped(note));
  return items.empty() ? "" : tag("ul", "class=\"notes\"", items);
}

std::string section_html(std::string_view title, const Table& table) {
  return table.rows.empty() ? "" : tag("h3", "", title) + table_html(table, false);
}

std::string counters_html(const Report& report) {
  const Table table = counters_table(report);
  if (table.rows.empty()) return "";
  return tag("h3", "", "GPU counters") +
         tag("p", "",
             "Counted by the hardware over one step, in passes of their own after all timing.") +
         table_html(table, true);
}

std::string tied_html(const Report& report) {
  std::string items;
  for (const ProblemReport& problem : report.problems) {
    if (problem.tied.empty()) continue;
    std::string configs;
    for (const std::string& config : problem.tied) {
      configs += tag("li", "", tag("code", "", escaped(config)));
    }
    items += tag("details", "",
                 tag("summary", "",
                     escaped(problem.name) + ": " + count_of(problem.tied.size(), "config") +
                         " tied with the best") +
                     tag("ul", "", configs));
  }
  return items;
}

std::string commands_html(const Report& report) {
  std::string items;
  for (const ProblemReport& problem : report.problems) {
    if (!problem.command.empty()) items += tag("li", "", tag("code", "", escaped(problem.command)));
  }
  return items.empty() ? "" : tag("h3", "", "Repeat a row") + tag("ul", "class=\"code\"", items);
}

std::string subtitle(const Report& report) {
  std::string text = report.device;
  const std::string version = report.version.empty() ? "" : "rnntune " + report.version;
  for (const std::string& part : {report.time, version}) {
    if (!part.empty()) text += (text.empty() ? "" : " \u00b7 ") + part;
  }
  return text;
}

// One pass over the template, so that no text of a report is ever taken for a placeholder.
std::string filled(std::string_view page, const std::map<std::string, std::string>& values) {
  std::string text;
  while (true) {
    const std::size_t open = page.find("{{");
    text += page.substr(0, open);
    if (open == std::string_view::npos) return text;
    const std::size_t close = page.find("}}", open);
    text += values.at(std::string(page.substr(open + 2, close - open - 2)));
    page.remove_prefix(close + 2);
  }
}

}  // namespace

std::string html_page(const Report& report) {
  return filled(asset("page.html"),
                {{"title", escaped(report.title)},
                 {"subtitle", escaped(subtitle(report))},
                 {"style", asset("page.css")},
                 {"tiles", tiles_html(report)},
                 {"notes", notes_html(report)},
                 {"summary", table_html(summary_table(report), true)},
                 {"tied", tied_html(report)},
                 {"counters", counters_html(report)},
                 {"failures", section_html("What failed", failure_table(report))},
                 {"limits", section_html("Measured limits", limits_table(report))},
                 {"environment", table_html(environment_table(report), false)},
                 {"commands", commands_html(report)},
                 {"data", page_data(report)},
                 {"vega", asset("vega.js")},
                 {"charts", asset("charts.js")},
                 {"script", asset("page.js")}});
}

}  // namespace rnntune::reports
