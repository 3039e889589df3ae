// SPDX-License-Identifier: Apache-2.0
// rnntune db show|merge|validate: looking into tuning databases, and joining them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <regex>

#include "database/database.hpp"
#include "tuner/command.hpp"
#include "tuner/options.hpp"
#include "tuner/records/database_lint.hpp"
#include "tuner/records/database_write.hpp"

namespace rnntune::tuner {
namespace {

struct DbOptions {
  Options shared;
  std::vector<std::string> files;
  std::string out;
};

using Row = std::vector<std::string>;

std::string formatted(const char* format, double number) {
  char text[64];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

std::string interval(const TimeUs& time) {
  if (std::isnan(time.low)) return "-";
  const double half = std::max(time.high - time.median, time.median - time.low);
  return formatted("%.1f%%", 100 * half / time.median);
}

std::string against(const Entry& entry) {
  std::string text;
  for (const Against& a : entry.against)
    text += (text.empty() ? "" : " ") + a.opponent + " " + formatted("%.2fx", a.ratio.median);
  return text.empty() ? "-" : text;
}

Row row_of(const Entry& entry) {
  const double mebibytes =
      static_cast<double>(entry.workspace_bytes + entry.reserve_bytes) / (1024.0 * 1024.0);
  return {to_string(entry.problem),
          formatted("%.1f", entry.time_us.median),
          interval(entry.time_us),
          formatted("%.1f", 1e-3 * step_flops(entry.problem) / entry.time_us.median),
          formatted("%.2f", mebibytes),
          formatted("%.2f", entry.validation.error / entry.validation.bound),
          against(entry),
          std::to_string(entry.evaluations) + (entry.complete ? "" : ", partial"),
          entry.time.substr(0, 10),
          entry.objective,
          to_string(entry.config)};
}

void print_table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += row[i] + (i + 1 < row.size() ? std::string(widths[i] - row[i].size() + 2, ' ') : "");
    std::printf("  %s\n", line.c_str());
  }
}

void print_database(const Database& database) {
  for (const DeviceRecord& record : database.devices) {
    std::printf("%s: %s (%s)\n", record.device.backend.c_str(), record.device.name.c_str(),
                record.device.key.c_str());
    std::vector<Row> rows{{"problem", "time_us", "+-", "GFLOP/s", "MiB", "error/bound", "against",
                           "evaluations", "date", "objective", "config"}};
    for (const Entry& entry : record.entries) rows.push_back(row_of(entry));
    print_table(rows);
  }
}

void warn_of_skipped(const std::string& path, const Database& database) {
  std::size_t skipped = database.skipped.size();
  for (const DeviceRecord& record : database.devices) skipped += record.skipped.size();
  if (skipped)
    std::fprintf(stderr, "rnntune: %s: %zu damaged entries passed over; rnntune db validate %s\n",
                 path.c_str(), skipped, path.c_str());
}

std::size_t entry_count(const Database& database) {
  std::size_t count = 0;
  for (const DeviceRecord& record : database.devices) count += record.entries.size();
  return count;
}

std::string summary(const Database& database) {
  const std::size_t devices = database.devices.size();
  const std::size_t entries = entry_count(database);
  return std::to_string(entries) + (entries == 1 ? " entry" : " entries") + " of " +
         std::to_string(devices) + (devices == 1 ? " device" : " devices");
}

std::regex compile(const std::string& filter) {
  try {
    return std::regex(filter);
  } catch (const std::regex_error&) {
    throw BadInput("--filter: '" + filter + "' is not a regular expression");
  }
}

// What --filter finds: problem, config, device key or name.
void filter_entries(Database& database, const std::string& pattern) {
  const std::regex filter = compile(pattern);
  for (DeviceRecord& record : database.devices) {
    if (std::regex_search(record.device.key, filter) ||
        std::regex_search(record.device.name, filter))
      continue;
    std::erase_if(record.entries, [&](const Entry& entry) {
      return !std::regex_search(to_string(entry.problem), filter) &&
             !std::regex_search(to_string(entry.config), filter);
    });
  }
  std::erase_if(database.devices, [](const DeviceRecord& r) { return r.entries.empty(); });
  if (database.devices.empty()) throw BadInput("--filter: no entry matches '" + pattern + "'");
}

int show(const DbOptions& options) {
  Database all;
  const std::vector<std::string> standard{options.shared.db};
  for (const std::string& path : options.files.empty() ? standard : options.files) {
    const Database database = value_or_throw(read_database(path));
    warn_of_skipped(path, database);
    merge(all, database);
  }
  if (!options.shared.filter.empty()) filter_entries(all, options.shared.filter);
  if (options.shared.json) {
    std::fputs(write_text(all).c_str(), stdout);
    return kFine;
  }
  print_database(all);
  if (!options.shared.quiet) std::fprintf(stderr, "%s\n", summary(all).c_str());
  return kFine;
}

int merge_files(const DbOptions& options) {
  Database added;
  for (const std::string& path : options.files) {
    const Database database = value_or_throw(read_database(path));
    warn_of_skipped(path, database);
    merge(added, database);
  }
  Database merged;
  std::size_t before = 0;
  throw_unless(update_database(options.out, [&](Database& database) {
    before = entry_count(database);
    merge(database, added);
    merged = database;
  }));
  if (!options.shared.quiet)
    std::fprintf(stderr, "%s: %s, %zu of them new\n", options.out.c_str(), summary(merged).c_str(),
                 entry_count(merged) - std::min(before, entry_count(merged)));
  return kFine;
}

int validate(const DbOptions& options) {
  int code = kFine;
  const std::vector<std::string> standard{options.shared.db};
  for (const std::string& path : options.files.empty() ? standard : options.files) {
    const std::vector<std::string> problems = value_or_throw(lint_database(path));
    for (const std::string& problem : problems) std::printf("%s\n", problem.c_str());
    if (!problems.empty()) {
      code = kCheckFailed;
    } else if (!options.shared.quiet) {
      const std::string what = summary(value_or_throw(read_database(path)));
      std::fprintf(stderr, "%s: %s, all sound\n", path.c_str(), what.c_str());
    }
  }
  return code;
}

Run setup(CLI::App& app) {
  const auto options = std::make_shared<DbOptions>();
  app.require_subcommand(1);
  CLI::App* show_app = app.add_subcommand("show", "the entries as a table");
  show_app->add_option("file", options->files, "databases, shown as one; default: --db");
  show_app->add_option("--filter", options->shared.filter,
                       "only entries whose problem, config or device this regex finds");
  CLI::App* merge_app = app.add_subcommand("merge", "add the entries of files to one");
  merge_app->add_option("out", options->out, "database to add to; made where there is none")
      ->required();
  merge_app->add_option("in", options->files, "databases to take from")->required();
  CLI::App* validate_app = app.add_subcommand("validate", "a line for everything that is wrong");
  validate_app->add_option("file", options->files, "databases; default: --db");
  for (CLI::App* sub : {show_app, validate_app}) add_db_option(*sub, options->shared);
  add_output_options(*show_app, options->shared);
  for (CLI::App* sub : {merge_app, validate_app})
    sub->add_flag("--quiet", options->shared.quiet, "no summary");
  return [options, show_app, merge_app] {
    if (show_app->parsed()) return show(*options);
    return merge_app->parsed() ? merge_files(*options) : validate(*options);
  };
}

}  // namespace

extern const Command kDb;
const Command kDb{"db", "show, merge and validate tuning databases", setup};

}  // namespace rnntune::tuner
