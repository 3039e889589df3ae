// SPDX-License-Identifier: Apache-2.0
// rnntune report: one HTML page and one Markdown file of what tune and bench found.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "reports/html.hpp"
#include "reports/markdown.hpp"
#include "reports/summary.hpp"
#include "tuner/command.hpp"
#include "tuner/commands/report_build.hpp"

namespace rnntune::tuner {
namespace {

struct ReportOptions {
  Options shared;
  bool db_named = false;  // on the command line, so it must be there
  bool journal_named = false;
  std::string results;
  std::string html = "rnntune-report.html";
  std::string markdown = "rnntune-report.md";
};

// A default file that is not there is left out.
template <class T>
std::optional<T> read_if_there(Result<T> (*read)(const std::string&), const std::string& path,
                               bool required) {
  Result<T> result = read(path);
  const bool absent = !result.ok() && result.error().code == ErrorCode::not_found;
  if (absent && !required) return std::nullopt;
  return value_or_throw(std::move(result));
}

// The device of the journal's last session; else the only one of the database, or this machine.
DeviceInfo chosen_device(const ReportOptions& options, const std::optional<JournalView>& journal,
                         const std::optional<Database>& database,
                         const std::optional<ResultsView>& results) {
  if (journal) return journal->device;
  if (database && database->devices.size() == 1) return database->devices.front().device;
  if (!database && results) return results->device;
  const DeviceInfo here = open_device(options.shared)->info();
  if (database && !find_device(*database, here)) {
    std::string names;
    for (const DeviceRecord& one : database->devices) names += " '" + one.device.name + "'";
    throw BadInput("--db: no entries of this machine ('" + here.name + "') in '" +
                   options.shared.db + "', only of" + (names.empty() ? " none" : names));
  }
  return here;
}

void write_file(const std::string& option, const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw BadInput(option + ": cannot write '" + path + "'");
}

std::string why_empty(const ReportSources& sources) {
  if (!sources.database || sources.database->skipped.empty()) return "no problem was tried yet";
  const Skipped& first = sources.database->skipped.front();
  return "every entry of the database is unusable, " + first.place + ": " + first.reason;
}

int report(const ReportOptions& options) {
  require_writable("--html", options.html);
  require_writable("--markdown", options.markdown);
  const Options& shared = options.shared;
  const auto journal = read_if_there(&read_journal, shared.journal, options.journal_named);
  const auto database = read_if_there(&read_database, shared.db, options.db_named);
  const auto results =
      options.results.empty() ? std::nullopt : read_if_there(&read_results, options.results, true);
  if (!journal && !database && !results) {
    throw BadInput("nothing to report: there is neither '" + shared.db + "' nor '" +
                   shared.journal + "'; rnntune tune writes both");
  }
  ReportSources sources;
  sources.device = chosen_device(options, journal, database, results);
  if (database) sources.database = find_device(*database, sources.device);
  sources.journal = journal;
  sources.results = results;
  if (Result<MachineLimits> limits = load_limits(sources.device); limits.ok()) {
    sources.limits = std::move(limits.value());
  }
  if (!shared.suites.empty() || !shared.problems.empty()) sources.chosen = load_problems(shared);
  sources.db_path = shared.db;

  reports::Report made = build_report(sources);
  if (made.problems.empty()) throw BadInput("nothing to report: " + why_empty(sources));
  if (database) made.sources.push_back(shared.db);
  if (journal) made.sources.push_back(shared.journal);
  if (results) made.sources.push_back(options.results);
  write_file("--html", options.html, reports::html_page(made));
  write_file("--markdown", options.markdown, reports::markdown_page(made));
  std::printf("%s\n%s\n%s\n", reports::summary_text(made).c_str(),
              std::filesystem::absolute(options.html).c_str(),
              std::filesystem::absolute(options.markdown).c_str());
  return kFine;
}

}  // namespace

extern const Command kReport;
const Command kReport{
    "report", "Write an HTML page and Markdown of what was found", [](CLI::App& app) -> Run {
      auto options = std::make_shared<ReportOptions>();
      add_problem_options(app, options->shared);
      add_db_option(app, options->shared);
      add_journal_option(app, options->shared);
      app.add_option("--results", options->results, "JSON that rnntune bench wrote");
      app.add_option("--html", options->html, "page to write")->capture_default_str();
      app.add_option("--markdown", options->markdown, "Markdown to write")->capture_default_str();
      return [=, &app] {
        options->db_named = app.count("--db") > 0;
        options->journal_named = app.count("--journal") > 0;
        return report(*options);
      };
    }};

}  // namespace rnntune::tuner
