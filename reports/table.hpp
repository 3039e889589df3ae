// SPDX-License-Identifier: Apache-2.0
// Tables between records and writers: what is in a cell is decided once, how it looks is the
// writer's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/records.hpp"

namespace rnntune::reports {

enum class Tone { plain, good, bad };

struct Cell {
  std::string text;
  std::string detail;           // second, smaller line: interval, parameters
  std::optional<double> order;  // sorts by this; without it by the text
  Tone tone = Tone::plain;
};

enum class Kind { text, number, fraction };  // a fraction may be drawn as a bar: order is 0 to 1

struct Column {
  std::string title;
  std::string help;
  Kind kind = Kind::text;
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // as long as columns
};

// One row per problem; one column per opponent that any problem was measured against.
Table summary_table(const Report& report);
// One row per outcome that was not ok: how many configs of which problem, and the first reason.
Table failure_table(const Report& report);
Table environment_table(const Report& report);
Table limits_table(const Report& report);

// Opponents in order of first appearance.
std::vector<std::string> opponents(const Report& report);

// Geometric mean of the valid ratios against an opponent, with how many there are.
struct MeanRatio {
  double ratio = 0;
  int count = 0;
};
MeanRatio mean_ratio(const Report& report, const std::string& opponent);

}  // namespace rnntune::reports
