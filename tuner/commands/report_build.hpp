// SPDX-License-Identifier: Apache-2.0
// Turns what tune and bench left behind into the records of a report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "database/database.hpp"
#include "reports/records.hpp"
#include "tuner/commands/results_view.hpp"
#include "tuner/measure/limits.hpp"
#include "tuner/options.hpp"
#include "tuner/records/journal_view.hpp"

namespace rnntune::tuner {

struct ReportSources {
  DeviceInfo device;  // whose entries are shown
  const DeviceRecord* database = nullptr;
  std::optional<JournalView> journal;  // of the same device
  std::optional<ResultsView> results;
  std::optional<MachineLimits> limits;
  std::vector<NamedProblem> chosen;  // names and order of a suite; empty: every problem there is
  std::string db_path;               // for the commands that repeat a row
};

// Problems in the order of `chosen`, else of the journal, else of the database. Figures of a bench
// run replace those of the database, these those of the journal.
reports::Report build_report(const ReportSources& sources);

}  // namespace rnntune::tuner
