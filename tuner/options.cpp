// SPDX-License-Identifier: Apache-2.0
#include "tuner/options.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <regex>
#include <utility>

#include "database/database.hpp"
#include "database/lookup.hpp"
#include "devices.hpp"
#include "paths.hpp"
#include "simt/device.hpp"
#include "tuner/command.hpp"
#include "tuner/records/suite.hpp"

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

// A problem string has a colon; a file of that name, should there be one, is a suite all the same.
bool is_problem(const std::string& argument) {
  std::error_code none;
  return argument.find(':') != argument.npos && !std::filesystem::exists(argument, none);
}

std::vector<NamedProblem> all_problems(const Options& options) {
  std::vector<NamedProblem> problems;
  const auto add = [&](const std::string& text) {
    const Problem problem = value_or_throw(parse_problem(text));
    problems.push_back({to_string(problem), problem, 1});
  };
  for (const std::string& path : options.suites) {
    if (is_problem(path)) {
      add(path);
      continue;
    }
    for (SuiteProblem& row : value_or_throw(load_suite(path)).problems) {
      problems.push_back({row.name, row.problem, row.weight});
    }
  }
  for (const std::string& text : options.problems) add(text);
  return problems;
}

// A file that the user named must be there and sound: a job that runs the built-in default in its
// place would never notice.
Status check_database(const std::string& path) {
  const Result<Database> database = read_database(path);
  if (database.ok()) return {};
  return Error{database.error().code, "--db: " + database.error().message};
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
  app.add_option("--threads", options.threads,
                 "most threads; default: the cores at hand, or OMP_NUM_THREADS")
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--isa", options.isa, "forbid instruction sets above this one, such as avx2");
}

void add_problem_options(CLI::App& app, Options& options) {
  app.add_option("suite", options.suites, "suite files, or problem strings");
  app.add_option("--problem", options.problems,
                 "a problem string such as lstm:T35,B20,I650,H650; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--filter", options.filter, "only problems whose name or string this regex finds");
}

void add_db_option(CLI::App& app, Options& options) {
  app.add_option("--db", options.db, "tuning database")
      ->capture_default_str()
      ->each([&options](const std::string&) { options.db_named = true; });
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
  if (problems.empty()) throw BadInput("expected a suite file or a problem string, got neither");
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

Explanation chosen_config(const Problem& problem, const DeviceInfo& device, const Options& options,
                          const std::string& config) {
  const Space space(problem, device);
  if (config.empty()) {
    if (options.db_named) throw_unless(check_database(options.db));
    std::vector<std::string> given{options.db}, standard = default_databases();
    // The default name is one more place to look at, which may be empty.
    if (!options.db_named) standard.insert(standard.begin(), std::exchange(given, {}).front());
    return value_or_throw(lookup(problem, device, given, standard, kernels_of(space, device)));
  }
  Explanation given;
  given.rung = Rung::given;
  given.config = value_or_throw(parse_config(config));
  const std::string why = space.why_not(given.config);
  if (why.empty()) return given;
  throw BadInput("--config: not valid for " + to_string(problem) + ": " + why);
}

std::string news_of(const Explanation& choice) {
  if (choice.rung == Rung::given || (choice.rung == Rung::exact && choice.notes.empty())) return {};
  return choice.text();
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
