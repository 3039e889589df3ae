// SPDX-License-Identifier: Apache-2.0
#include "tuner/search/session.hpp"

#include <algorithm>
#include <cmath>

#include "reports/format.hpp"
#include "tuner/command.hpp"
#include "tuner/contenders/finalists.hpp"
#include "tuner/contenders/meeting.hpp"
#include "tuner/interrupt.hpp"
#include "tuner/measure/environment.hpp"
#include "tuner/records/database_write.hpp"
#include "tuner/search/seeds.hpp"

namespace rnntune::tuner {
namespace {

constexpr double kSearchShare = 0.85;  // of the budget; the rest is for the finalists
constexpr std::size_t kFinalists = 4;
constexpr double kFinalistWithin = 1.1;  // of the best time: drift between them is less than that

// A sixtieth of the budget for each config, within what is sensible for any step.
MeasurePolicy screening_policy(double budget_s, double best_us) {
  MeasurePolicy policy;
  policy.min_samples = kFewestForInterval;
  policy.budget_us = std::clamp(budget_s * 1e6 / 60, 0.1e6, 1e6);
  policy.best_us = best_us;
  return policy;
}

constexpr int kFewestRounds = 8;

MeasurePolicy final_policy(double budget_s) {
  MeasurePolicy policy;
  policy.min_samples = kFewestRounds;
  policy.budget_us = std::clamp(budget_s * 1e6 * (1 - kSearchShare) / kFinalists, 0.2e6, 5e6);
  return policy;
}

bool timed(const Record& record) { return record.outcome == Outcome::ok && record.time_us; }

// A journal of an earlier version may hold a time that was thrown away for being below a roofline
// that was measured too low.
bool condemned_in_haste(const Record& record, const EvaluatePolicy& policy) {
  return record.outcome == Outcome::untrusted && record.time_us &&
         record.time_us->median >= policy.impossible_us;
}

// The records that were timed, fastest first.
std::vector<const Record*> ranked(const std::vector<Record>& records) {
  std::vector<const Record*> order;
  for (const Record& record : records) {
    if (timed(record)) order.push_back(&record);
  }
  std::stable_sort(order.begin(), order.end(), [](const Record* a, const Record* b) {
    return a->time_us->median < b->time_us->median;
  });
  return order;
}

const Record& record_of_config(const std::vector<Record>& records, const Config& config) {
  return *std::find_if(records.begin(), records.end(),
                       [&](const Record& record) { return record.attempt.config == config; });
}

std::string why_no_winner(const Search& search) {
  for (const Record& record : search.records) {
    if (record.outcome == Outcome::ok) continue;
    return std::string(to_string(record.outcome)) + ": " + record.reason +
           "\n  repeat: " + repro_command(search.setting, record.attempt.config);
  }
  const Result<Config> built_in = search.space->built_in();
  return built_in.ok() ? "nothing was tried" : built_in.error().message;
}

// Everything that bad input can spoil is asked before this: here the first file is made.
Journal open_files(const Options& options, const DeviceInfo& device) {
  throw_unless(check_writable(options.db));
  return value_or_throw(Journal::open(options.journal, device.key));
}

Tuned summarize(const Search& search, std::optional<Final> winner) {
  Tuned tuned;
  tuned.named = search.named;
  tuned.winner = std::move(winner);
  tuned.evaluated = search.evaluated;
  tuned.resumed = static_cast<std::int64_t>(search.records.size()) - search.evaluated;
  tuned.failed = std::count_if(search.records.begin(), search.records.end(),
                               [](const Record& record) { return record.outcome != Outcome::ok; });
  if (!tuned.winner) tuned.why = why_no_winner(search);
  return tuned;
}

}  // namespace

Session::Session(const Options& options, const StrategyRow& strategy)
    : options_(options),
      strategy_(strategy),
      device_(open_device(options)),
      clock_(value_or_throw(open_clock(device_))),
      counting_(open_counting(device_, clock_, options.counters)),
      journal_(open_files(options, device_->info())),
      limits_(limits_of(device_->info())),
      progress_(options.quiet) {
  for (const std::string& name : contender_names(options.against, device_->info())) {
    (must_meet_apart(device_->info(), name) ? apart_ : here_).push_back(name);
  }
}

void Session::run(const std::vector<NamedProblem>& problems,
                  const std::function<void(const Tuned&)>& done) {
  SessionHeader header;
  header.device = device_->info();
  header.environment = environment(*clock_);
  header.seed = options_.seed;
  header.strategy = strategy_.name;
  header.budget_s = std::isfinite(options_.budget_s) ? options_.budget_s : 0;
  for (const NamedProblem& named : problems) {
    header.problems.emplace_back(named.name, to_string(named.problem));
  }
  journal_.write(header);
  progress_.say(news_.read(*clock_));
  for (const NamedProblem& named : problems) {
    if (interrupted()) return;
    const Tuned tuned = tune(named);
    progress_.clear();
    progress_.say(news_.read(*clock_));
    done(tuned);
  }
}

Tuned Session::tune(const NamedProblem& named) {
  Search search = begin(named);
  for (const Config& config : seeds(named.problem, device_->info(), *search.space, options_.db)) {
    // The first one is tried whatever it costs, so that there is a result.
    if (!interrupted() && (search.records.empty() || within_budget(search))) {
      try_config(search, config);
    }
  }
  while (within_budget(search)) {
    const std::optional<Config> config = search.strategy->propose();
    if (!config) break;
    try_config(search, *config);
  }
  std::optional<Final> winner = decide(search);
  if (winner) {
    save(search, *winner);  // before libraries of others are let in
    if (!apart_.empty() && !interrupted()) {
      meet_libraries(search, *winner);
      save(search, *winner);
    }
    journal_.write(*winner);
  }
  return summarize(search, std::move(winner));
}

Search Session::begin(const NamedProblem& named) {
  const double start_us = steady_clock().now_us();
  progress_.show(named.name, 0, "computing the reference");
  Setting setting{device_, cases_.get(named.problem, options_.seed), clock_};
  auto space = std::make_unique<Space>(named.problem, device_->info());
  auto strategy = strategy_.make(*space, options_.seed);
  Search search;
  search.named = named;
  search.setting = std::move(setting);
  search.space = std::move(space);
  search.strategy = std::move(strategy);
  search.start_us = start_us;
  return search;
}

bool Session::within_budget(const Search& search) const {
  if (interrupted()) return false;
  const auto tried = static_cast<std::int64_t>(search.records.size());
  if (options_.evaluations > 0 && tried >= options_.evaluations) return false;
  const double spent_s = (steady_clock().now_us() - search.start_us) * 1e-6;
  return spent_s < kSearchShare * options_.budget_s;
}

void Session::try_config(Search& search, const Config& config) {
  if (!search.tried.insert(to_string(config)).second) return;
  show(search);
  const std::string hash = find_variant(device_->info().backend, config.variant)->kernel_hash;
  const Record record = record_of(search, {to_string(search.named.problem), config, hash});
  const double failed = std::numeric_limits<double>::infinity();
  const double time_us = timed(record) ? record.time_us->median : failed;
  search.best_us = std::min(search.best_us, time_us);
  search.strategy->observe(config, time_us);
  search.records.push_back(record);
}

// The journal's record where the evaluation was finished before; else it is made now.
Record Session::record_of(Search& search, const Attempt& attempt) {
  const EvaluatePolicy policy = this->policy(search);
  const Journal::History* history = journal_.history(attempt);
  if (history != nullptr && history->record && !condemned_in_haste(*history->record, policy)) {
    return *history->record;
  }
  if (history != nullptr && history->unfinished > 1) {
    Record crashed;
    crashed.attempt = attempt;
    crashed.outcome = Outcome::crashed;
    crashed.reason = "the process died in it, twice";
    journal_.write(crashed);
    return crashed;
  }
  journal_.write(attempt);
  ++search.evaluated;
  const Record record = evaluate(search.setting, attempt, policy);
  if (timed(record) && record.time_us->median < policy.roofline_us) {
    const int threads = device_->info().threads;
    limits_.raise(threads, step_flops(search.named.problem) / record.time_us->median * 1e-3);
    static_cast<void>(save_limits(limits_));
  }
  journal_.write(record);
  return record;
}

EvaluatePolicy Session::policy(const Search& search) const {
  EvaluatePolicy policy;
  policy.measure = screening_policy(options_.budget_s, search.best_us);
  policy.timeout_us = options_.timeout_s * 1e6;
  policy.roofline_us = roofline_us(search.named.problem, limits_, device_->info().threads);
  policy.impossible_us = impossible_us(search.named.problem, device_->info());
  return policy;
}

// Races the best configs with the contenders that can be timed here. An interrupted search has no
// time for that: its best config is taken with the time it had.
std::optional<Final> Session::decide(Search& search) {
  const std::vector<const Record*> order = ranked(search.records);
  if (order.empty()) return std::nullopt;
  Final final;
  final.problem = to_string(search.named.problem);
  final.config = order.front()->attempt.config;
  final.time_us = *order.front()->time_us;
  final.evaluations = static_cast<std::int64_t>(search.records.size());
  final.space = search.space->count();
  final.complete = search.strategy->complete();
  if (!interrupted()) rerun(search, order, final);
  return final;
}

// A contender that is a variant of ours may win as well: what loses to a config that was measured
// beside it is never kept.
void Session::rerun(Search& search, const std::vector<const Record*>& order, Final& final) {
  progress_.show(search.named.name, kSearchShare, "finalists and the baseline");
  std::vector<Contender> racers = finalists(search, order);
  if (racers.empty()) return;
  const std::size_t finalists = racers.size();
  for (Contender& contender : contenders_here(search, final)) {
    racers.push_back(std::move(contender));
  }
  const auto result = race(racers, final_policy(options_.budget_s), *clock_);
  if (!result.ok()) return progress_.say(search.named.name + ": " + result.error().message);
  const Comparison& times = result->comparison;
  const Contender& winner = racers[result->winner];
  // The entry is made from its record.
  if (!search.tried.contains(to_string(winner.config))) try_config(search, winner.config);
  if (!timed(record_of_config(search.records, winner.config))) {
    return progress_.say(to_string(winner.config) + " won the race and failed when it was tried");
  }
  final.config = winner.config;
  final.time_us = to_time_us(times.timings[result->winner]);
  for (const std::size_t i : result->tied) {
    const Config& config = racers[i].config;
    const bool known = std::find(final.tied.begin(), final.tied.end(), config) != final.tied.end();
    if (config != final.config && !known) final.tied.push_back(config);
  }
  const std::span others = std::span(racers).subspan(finalists);
  const auto their_timings = std::span(times.timings).subspan(finalists);
  std::vector<Contender> fastest;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (!fastest_of_name(others, their_timings, i)) continue;
    fastest.push_back(others[i]);
    final.against.push_back(to_against(others[i], their_timings[i], times.ratios[finalists + i]));
  }
  progress_.say(news_.read(*clock_));
  final.counters = count(winner, fastest);
  progress_.say(counting_.news());
}

// The winner again, with libraries that may take the process down.
void Session::meet_libraries(const Search& search, Final& final) {
  const double budget_s = final_policy(options_.budget_s).budget_us * 1e-6 * kFinalists;
  const Result<Meeting> meeting = meet_apart(
      search.setting, {final.config, apart_, budget_s, kFewestRounds},
      [&](const std::string& doing) { progress_.show(search.named.name, kSearchShare, doing); });
  if (interrupted()) return;
  if (!meeting.ok()) {
    progress_.say(search.named.name + ": no comparison: " + meeting.error().message);
    for (const std::string& name : apart_) {
      final.notes.emplace_back(name, std::vector{meeting.error().message});
    }
    return;
  }
  for (const std::string& line : meeting->news()) progress_.say(search.named.name + ": " + line);
  final.notes.insert(final.notes.end(), meeting->absences.begin(), meeting->absences.end());
  for (std::size_t i = 1; i < meeting->contenders.size(); ++i) {
    final.against.push_back(to_against(meeting->contenders[i], meeting->comparison.timings[i],
                                       meeting->comparison.ratios[i]));
  }
}

std::vector<StepCounters> Session::count(const Contender& winner,
                                         const std::vector<Contender>& others) {
  std::vector<CountedStep> steps{{"rnntune", winner.step}};
  for (const Contender& other : others) {
    if (other.on_device) steps.push_back({other.name, other.step});
  }
  return counting_.count(steps);
}

std::vector<Contender> Session::finalists(const Search& search,
                                          const std::vector<const Record*>& order) {
  std::vector<Contender> contenders;
  for (const Record* record : order) {
    if (contenders.size() == kFinalists) break;
    if (record->time_us->median > kFinalistWithin * order.front()->time_us->median) break;
    Record again;
    if (auto contender = prepare(search.setting, record->attempt.config, again)) {
      contenders.push_back(std::move(*contender));
    } else {
      progress_.say(to_string(record->attempt.config) + " failed as a finalist: " + again.reason);
    }
  }
  return contenders;
}

std::vector<Contender> Session::contenders_here(const Search& search, Final& final) {
  std::vector<Contender> contenders;
  for (const std::string& name : here_) {
    std::vector<std::string> notes;
    Result<std::vector<Contender>> found = find_contenders(search.setting, name, notes);
    if (!found.ok()) {
      progress_.say(search.named.name + ": no " + name + ": " + found.error().message);
      final.notes.emplace_back(name, std::vector{found.error().message});
      continue;
    }
    for (Contender& contender : *found) {
      for (const std::string& note : contender.notes) progress_.say(name + ": " + note);
      if (!contender.notes.empty()) final.notes.emplace_back(name, contender.notes);
      contenders.push_back(std::move(contender));
    }
  }
  return contenders;
}

void Session::save(const Search& search, const Final& final) {
  const Record& record = record_of_config(search.records, final.config);
  Entry entry;
  entry.problem = search.named.problem;
  entry.config = final.config;
  entry.kernel_hash = record.attempt.kernel_hash;
  entry.time_us = final.time_us;
  entry.workspace_bytes = record.workspace_bytes;
  entry.reserve_bytes = record.reserve_bytes;
  entry.packed_bytes = record.packed_bytes;
  entry.validation = *record.validation;
  entry.against = final.against;
  entry.tied = final.tied;
  entry.environment = environment(*clock_);
  entry.seed = options_.seed;
  entry.budget_s = std::isfinite(options_.budget_s) ? options_.budget_s : 0;
  entry.evaluations = final.evaluations;
  entry.complete = final.complete;
  entry.time = utc_now();
  throw_unless(update_database(
      options_.db, [&](Database& database) { put(database, device_->info(), std::move(entry)); }));
}

void Session::show(const Search& search) {
  const double spent_s = (steady_clock().now_us() - search.start_us) * 1e-6;
  const auto tried = static_cast<double>(search.records.size());
  double done = spent_s / options_.budget_s;
  if (options_.evaluations > 0) {
    done = std::max(done, tried / static_cast<double>(options_.evaluations));
  }
  std::string detail;
  if (std::isfinite(search.best_us)) {
    detail = std::to_string(search.records.size()) + " configs tried, best " +
             reports::format_time(search.best_us);
  }
  progress_.show(search.named.name, done, detail);
}

}  // namespace rnntune::tuner
