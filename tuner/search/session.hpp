// SPDX-License-Identifier: Apache-2.0
// A tuning session: problems -> space -> strategy proposes -> evaluate -> journal -> finalists ->
// database.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "space.hpp"
#include "tuner/contenders/evaluate.hpp"
#include "tuner/gpu/gpu_clock.hpp"
#include "tuner/options.hpp"
#include "tuner/progress.hpp"
#include "tuner/records/journal.hpp"
#include "tuner/search/strategy.hpp"

namespace rnntune::tuner {

// The search of one problem.
struct Search {
  NamedProblem named;
  Setting setting;
  std::unique_ptr<Space> space;
  std::unique_ptr<Strategy> strategy;
  double start_us = 0;
  std::set<std::string> tried;  // configs, as text
  std::vector<Record> records;  // of every config tried, resumed ones included
  std::int64_t evaluated = 0;   // in this session
  double best_us = std::numeric_limits<double>::infinity();
};

// What a problem ended with.
struct Tuned {
  NamedProblem named;
  std::optional<Final> winner;  // none: no valid config
  std::int64_t evaluated = 0;
  std::int64_t resumed = 0;
  std::int64_t failed = 0;
  std::string why;  // no winner: the first failure and the command that repeats it
};

class Session {
 public:
  // Opens journal and database for writing; throws BadInput where they cannot be. An infinite
  // budget_s leaves the number of evaluations as the only limit.
  Session(const Options& options, const StrategyRow& strategy);

  // Tunes the problems in order and saves each, then hands it to `done`; stops early when
  // interrupted.
  void run(const std::vector<NamedProblem>& problems,
           const std::function<void(const Tuned&)>& done);

 private:
  Tuned tune(const NamedProblem& named);
  Search begin(const NamedProblem& named);
  bool within_budget(const Search& search) const;
  void try_config(Search& search, const Config& config);
  Record record_of(Search& search, const Attempt& attempt);
  EvaluatePolicy policy(const Search& search) const;
  std::optional<Final> decide(Search& search);
  void rerun(Search& search, const std::vector<const Record*>& order, Final& final);
  std::vector<Contender> finalists(const Search& search, const std::vector<const Record*>& order);
  std::vector<Contender> contenders_here(const Search& search, Final& final);
  void meet_libraries(const Search& search, Final& final);
  std::vector<StepCounters> count(const Contender& winner, const std::vector<Contender>& others);
  void save(const Search& search, const Final& final);
  void show(const Search& search);

  Options options_;
  const StrategyRow& strategy_;
  std::shared_ptr<Device> device_;
  std::vector<std::string> here_;   // of --against: what is timed in this process
  std::vector<std::string> apart_;  // and what in another one
  std::shared_ptr<Clock> clock_;
  SourceNews news_;
  StepCounting counting_;
  Journal journal_;
  MachineLimits limits_;
  CaseCache cases_;
  Progress progress_;
};

}  // namespace rnntune::tuner
