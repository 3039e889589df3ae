// SPDX-License-Identifier: Apache-2.0
// The flags that subcommands share, so that each means the same everywhere. A subcommand keeps one
// Options alive in its Run and adds the groups it has.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rnntune/device.hpp"
#include "rnntune/problem.hpp"
#include "rnntune/rnn.hpp"

namespace CLI {
class App;
}

namespace rnntune::tuner {

struct Options {
  std::string device = "cpu";
  int threads = 0;  // 0: every core this process may run on
  std::string isa;  // cap on instruction sets; empty: the best there is
  std::string db = "rnntune.db.json";
  bool db_named = false;  // on the command line
  std::string journal = "rnntune.journal.jsonl";
  std::vector<std::string> suites;    // files, or problem strings
  std::vector<std::string> problems;  // problem strings
  std::string filter;                 // regular expression on name or problem string
  std::vector<std::string> against;   // opponents and variants
  double budget_s = 60;               // per problem
  std::int64_t evaluations = 0;       // per problem; 0: no limit
  double timeout_s = 60;              // per evaluation
  std::uint64_t seed = 1;
  bool counters = true;  // of the GPU
  bool json = false;
  bool quiet = false;
};

void add_device_options(CLI::App& app, Options& options);   // --device --threads --isa
void add_problem_options(CLI::App& app, Options& options);  // SUITE|PROBLEM... --problem --filter
void add_db_option(CLI::App& app, Options& options);        // --db
void add_journal_option(CLI::App& app, Options& options);   // --journal
void add_against_option(CLI::App& app, Options& options);   // --against
void add_search_options(CLI::App& app, Options& options);   // --budget --evaluations --timeout
void add_budget_option(CLI::App& app, Options& options);    // --budget
void add_counters_option(CLI::App& app, Options& options);  // --no-counters
void add_seed_option(CLI::App& app, Options& options);      // --seed
void add_output_options(CLI::App& app, Options& options);   // --json --quiet

// A problem with the name that its suite gives it (the problem string itself for --problem).
struct NamedProblem {
  std::string name;
  Problem problem;
  double weight = 1;
};

// Every problem that the options name. Throws BadInput for no problem at all, a bad file or string,
// and a filter that matches nothing.
std::vector<NamedProblem> load_problems(const Options& options);

// Whether a text holds what the regular expression of --filter finds. Throws BadInput for one that
// is none.
std::function<bool(const std::string&)> finder(const std::string& filter);

// The config given as text, or what the lookup ladder finds where that is empty: what an
// application would get. Throws BadInput for one that the space rejects, and for a --db that was
// named and cannot be read.
Explanation chosen_config(const Problem& problem, const DeviceInfo& device, const Options& options,
                          const std::string& config);

// One line for the user where the choice is not the database's own entry of the problem: which rung
// answered, and why none above it did. Empty where there is nothing to tell.
std::string news_of(const Explanation& choice);

// Throws BadInput where there is no such device.
std::shared_ptr<Device> open_device(const Options& options);

// The value, or BadInput with the error's sentence.
template <class T>
T value_or_throw(Result<T> result);
void throw_unless(const Status& status);

// Throws BadInput unless a file can be written there, before hours of work: not empty, no folder,
// no special file, its folder exists and is writable. `option` is named in the message.
void require_writable(const std::string& option, const std::string& path);

}  // namespace rnntune::tuner

#include "tuner/options-inl.hpp"
