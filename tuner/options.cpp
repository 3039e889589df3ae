// SPDX-License-Identifier: Apache-2.0
#include "tuner/options.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <regex>

#include "devices.hpp"
#include "lookup.hpp"
#include "paths.hpp"
#include "simt/device.hpp"
#include "tuner/command.hpp"
#include "tuner/suite.hpp"

namespace rnntune::tuner {
namespace {

const CLI::Validator kPositiveSeconds(
    [](std::string& text) {
      double seconds = 0;
      const bool number = CLI::detail::lexical_cast(text, seconds);
      const bool fine = number && std::isfinite(seconds) && seconds > 0;
      return fine ? std::string() : "expected a positive number of seconds, got '" + text + "'";
    },
    "SECONDS");

std::vector<NamedProblem> all_problems(const Options& options) {
  std::vector<NamedProblem> problems;
  for (const std::string& path : options.suites) {
    for (SuiteProblem& row : value_or_throw(load_suite(path)).problems) {
      problems.push_back({row.name, row.problem, row.weight});
    }
  }
  for (const std::string& text : options.problems) {
    const Problem problem = value_or_throw(parse_problem(text));
    throw_unless(check(problem));
    problems.push_back({to_string(problem), problem, 1});
  }
  return problems;
}

}  // namespace

void throw_unless(const Status& status) {
  if (!status.ok()) throw BadInput(status.error().message);
}

std::function<bool(const std::string&)> finder(const std::string& filter) {
  try {
    return [regex = std::regex(filter)](const std::string& text) {
      return std::regex_search(text, regex);
    };
  } catch (const std::regex_error&) {
    throw BadInput("--filter: '" + filter + "' is not a regular expression");
  }
}

void add_device_options(CLI::App& app, Options& options) {
  app.add_option(
         "--device", options.device,
         "cpu; cuda:N, a CUDA GPU; simt, a GPU emulated on the host; or simt:checked, the same "
         "with its kernels checked for races")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "most threads; default: every core at hand")
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--isa", options.isa, "forbid instruction sets above this one, such as avx2");
}

void add_problem_options(CLI::App& app, Options& options) {
  app.add_option("suite", options.suites, "suite files");
  app.add_option("--problem", options.problems,
                 "a problem string such as lstm:T35,B20,I650,H650; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--filter", options.filter, "only problems whose name or string this regex finds");
}

void add_db_option(CLI::App& app, Options& options) {
  app.add_option("--db", options.db, "tuning database")->capture_default_str();
}

void add_journal_option(CLI::App& app, Options& options) {
  app.add_option("--journal", options.journal, "journal of all evaluations")->capture_default_str();
}

void add_against_option(CLI::App& app, Options& options) {
  app.add_option("--against", options.against, "contenders, such as unfused,onednn,cudnn")
      ->delimiter(',');
}

void add_budget_option(CLI::App& app, Options& options) {
  app.add_option("--budget", options.budget_s, "seconds for each problem")
      ->capture_default_str()
      ->check(kPositiveSeconds);
}

void add_search_options(CLI::App& app, Options& options) {
  add_budget_option(app, options);
  app.add_option("--evaluations", options.evaluations, "most configs tried for each problem")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--timeout", options.timeout_s, "seconds for one config")
      ->capture_default_str()
      ->check(kPositiveSeconds);
}

void add_counters_option(CLI::App& app, Options& options) {
  app.add_flag_callback(
      "--no-counters", [&options] { options.counters = false; },
      "do not count memory traffic, occupancy and stalls of a GPU after timing");
}

void add_seed_option(CLI::App& app, Options& options) {
  app.add_option("--seed", options.seed, "of inputs and of the search order")
      ->capture_default_str();
}

void add_output_options(CLI::App& app, Options& options) {
  app.add_flag("--json", options.json, "results as JSON");
  app.add_flag("--quiet", options.quiet, "no progress, only results and errors");
}

std::vector<NamedProblem> load_problems(const Options& options) {
  std::vector<NamedProblem> problems = all_problems(options);
  if (problems.empty()) throw BadInput("expected a suite file or --problem, got neither");
  if (options.filter.empty()) return problems;
  const auto matches = finder(options.filter);
  std::erase_if(problems, [&](const NamedProblem& candidate) {
    return !matches(candidate.name) && !matches(to_string(candidate.problem));
  });
  if (!problems.empty()) return problems;
  std::string files;
  for (const std::string& path : options.suites) files += (files.empty() ? " in " : ", ") + path;
  throw BadInput("--filter: no problem matches '" + options.filter + "'" + files);
}

Explanation chosen_config(const Problem& problem, const DeviceInfo& device, const std::string& db,
                          const std::string& config) {
  const Space space(problem, device);
  if (config.empty()) {
    return value_or_throw(
        lookup(problem, device, {db}, default_databases(), kernels_of(space, device)));
  }
  Explanation given;
  given.rung = Rung::given;
  given.config = value_or_throw(parse_config(config));
  const std::string why = space.why_not(given.config);
  if (why.empty()) return given;
  throw BadInput("--config: not valid for " + to_string(problem) + ": " + why);
}

// The emulator is no part of the library, so that it is opened here.
std::shared_ptr<Device> open_device(const Options& options) {
  if (options.device == "simt" || options.device == "simt:checked") {
    return value_or_throw(
        simt::open_simt({.seed = options.seed, .checked = options.device != "simt"}));
  }
  if (!is_device_name(options.device)) {
    throw BadInput("device: expected one of simt, simt:checked, " + device_names() + ", got '" +
                   options.device + "'");
  }
  return value_or_throw(
      rnntune::open_device(options.device, {.threads = options.threads, .isa = options.isa}));
}

void require_writable(const std::string& option, const std::string& path) {
  namespace fs = std::filesystem;
  if (path.empty()) throw BadInput(option + ": expected a file, got an empty path");
  std::error_code none;
  const fs::file_status status = fs::status(path, none);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw BadInput(option + ": expected a regular file, '" + path + "' is " +
                   (fs::is_directory(status) ? "a folder" : "a special file"));
  }
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, none)) {
    throw BadInput(option + ": cannot write '" + path + "', there is no folder '" +
                   folder.string() + "'");
  }
  if (access(folder.c_str(), W_OK) != 0 ||
      (fs::exists(status) && access(path.c_str(), W_OK) != 0)) {
    throw BadInput(option + ": no permission to write '" + path + "'");
  }
}

}  // namespace rnntune::tuner
