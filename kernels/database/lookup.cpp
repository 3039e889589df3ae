// SPDX-License-Identifier: Apache-2.0
#include "database/lookup.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <tuple>
#include <unordered_set>

#include "database/cache.hpp"
#include "database/database.hpp"

namespace rnntune {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr const char* kObjective = "step";

// Notes of one kind that an explanation spells out; the rest is counted.
constexpr std::size_t kSpelled = 3;

struct Source {
  std::string path;
  bool given;
  std::shared_ptr<const CachedDatabase> file;
};

struct Candidate {
  double distance;
  bool stale;
  std::size_t source;
  const Entry* entry;
  const DeviceRecord* record;

  bool operator<(const Candidate& other) const {
    const auto rank = [](const Candidate& c) { return std::tuple(c.distance, c.stale, c.source); };
    if (rank(*this) != rank(other)) return rank(*this) < rank(other);
    return better(*entry, *other.entry);
  }
};

// Which records a rung asks, and for which entries.
enum class Reach { this_problem, this_silicon, this_architecture };

class Ladder {
 public:
  Ladder(const Problem& problem, const DeviceInfo& device, const Kernels& kernels)
      : problem_(problem), device_(device), kernels_(kernels) {}

  void add(const std::vector<std::string>& paths, bool given) {
    for (const std::string& path : paths) sources_.push_back({path, given, cached_database(path)});
  }

  // Whether an entry within this reach serves; the explanation then holds it.
  bool climb(Reach reach) {
    std::vector<Candidate> candidates = collect(reach);
    // The best one mostly serves: a heap spares the order of the rest.
    const auto worse = [](const Candidate& a, const Candidate& b) { return b < a; };
    std::make_heap(candidates.begin(), candidates.end(), worse);
    for (; !candidates.empty(); candidates.pop_back()) {
      std::pop_heap(candidates.begin(), candidates.end(), worse);
      const Candidate& candidate = candidates.back();
      const Entry& entry = *candidate.entry;
      if (const std::string why = kernels_.why_not(entry.config); !why.empty()) {
        passed_over_.push_back(sources_[candidate.source].path + ": " + to_string(entry.config) +
                               " of " + to_string(entry.problem) + " on " +
                               candidate.record->device.key + " passed over: " + why);
        continue;
      }
      accept(reach, candidate);
      return true;
    }
    return false;
  }

  Explanation finish() {
    note_files();
    note_skipped();
    add_notes(passed_over_, "entries passed over");
    return std::move(explanation_);
  }

  Explanation finish(Config built_in) {
    explanation_.config = std::move(built_in);
    return finish();
  }

 private:
  bool same_silicon(const DeviceInfo& other) const {
    return other.backend == device_.backend && other.key == device_.key;
  }

  bool within(Reach reach, const DeviceInfo& other) const {
    if (reach != Reach::this_architecture) return same_silicon(other);
    return !same_silicon(other) && other.backend == device_.backend &&
           other.architecture == device_.architecture && !device_.architecture.empty();
  }

  std::vector<Candidate> collect(Reach reach) const {
    std::vector<Candidate> candidates;
    const std::string text = to_string(problem_);
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (!sources_[i].file->error.empty()) continue;
      for (const CachedRecord& cached : sources_[i].file->records) {
        if (!within(reach, cached.record->device)) continue;
        const auto add = [&](const Entry& entry, double distance) {
          const bool stale = entry.kernel_hash != kernels_.kernel_hash(entry.config);
          candidates.push_back({distance, stale, i, &entry, cached.record});
        };
        if (reach == Reach::this_problem) {
          const auto [begin, end] = cached.by_problem.equal_range(text);
          for (auto at = begin; at != end; ++at)
            if (at->second->objective == kObjective) add(*at->second, 0);
          continue;
        }
        for (const Entry& entry : cached.record->entries) {
          const double distance = shape_distance(problem_, entry.problem);
          const bool tried = reach == Reach::this_silicon && entry.problem == problem_;
          if (distance <= kFarthest && !tried && entry.objective == kObjective)
            add(entry, distance);
        }
      }
    }
    return candidates;
  }

  void accept(Reach reach, const Candidate& candidate) {
    const Entry& entry = *candidate.entry;
    switch (reach) {
      case Reach::this_problem:
        explanation_.rung = candidate.stale ? Rung::stale : Rung::exact;
        break;
      case Reach::this_silicon:
        explanation_.rung = Rung::nearest;
        break;
      case Reach::this_architecture:
        explanation_.rung = Rung::architecture;
        break;
    }
    explanation_.config = entry.config;
    explanation_.problem = to_string(entry.problem);
    explanation_.distance = candidate.distance;
    const std::string& path = sources_[candidate.source].path;
    if (explanation_.rung == Rung::architecture)
      explanation_.notes.push_back(path + ": tuned on " + candidate.record->device.name + " (" +
                                   candidate.record->device.key + ")");
    if (candidate.stale)
      explanation_.notes.push_back(path + ": the kernels of " + entry.config.variant +
                                   " have changed since " + to_string(entry.problem) +
                                   " was tuned (" + entry.kernel_hash + ", now " +
                                   kernels_.kernel_hash(entry.config) + ")");
  }

  bool found() const {
    return explanation_.rung == Rung::exact || explanation_.rung == Rung::stale;
  }

  // A file that was named and is not there is always told. That a standard place holds none is the
  // usual case and no news; one that is there and cannot be read is.
  void note_files() {
    std::vector<std::string> asked;
    for (const Source& source : sources_) {
      const CachedDatabase& file = *source.file;
      if (file.error.empty())
        asked.push_back(source.path);
      else if (source.given || !file.missing)
        explanation_.notes.push_back(file.error);
    }
    if (found()) return;
    std::string where;
    for (std::size_t i = 0; i < std::min(asked.size(), kSpelled); ++i)
      where += (i ? ", " : " in ") + asked[i];
    if (asked.size() > kSpelled)
      where += " and " + std::to_string(asked.size() - kSpelled) + " more";
    explanation_.notes.push_back("no usable entry of " + to_string(problem_) + " for " +
                                 device_.key + (asked.empty() ? ": no database to ask" : where));
  }

  void note_skipped() {
    for (const Source& source : sources_) {
      std::vector<std::string> notes;
      const auto add = [&](const Skipped& skipped) {
        notes.push_back(source.path + ": " + skipped.place + ": " + skipped.reason);
      };
      for (const Skipped& skipped : source.file->database.skipped) add(skipped);
      for (const DeviceRecord& record : source.file->database.devices)
        if (within(Reach::this_silicon, record.device) ||
            (!found() && within(Reach::this_architecture, record.device)))
          for (const Skipped& skipped : record.skipped) add(skipped);
      add_notes(notes, "damaged entries: rnntune db validate " + source.path);
    }
  }

  void add_notes(const std::vector<std::string>& notes, const std::string& what) {
    const std::size_t spelled = std::min(notes.size(), kSpelled);
    for (std::size_t i = 0; i < spelled; ++i) explanation_.notes.push_back(notes[i]);
    if (notes.size() > spelled)
      explanation_.notes.push_back(std::to_string(notes.size() - spelled) + " more " + what);
  }

  const Problem& problem_;
  const DeviceInfo& device_;
  const Kernels& kernels_;
  std::vector<Source> sources_;
  std::vector<std::string> passed_over_;
  Explanation explanation_;
};

double log_ratio(std::int64_t a, std::int64_t b) {
  return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

bool same_model(const Problem& a, const Problem& b) {
  const auto form = [](const Problem& p) {
    return std::tuple(p.cell, p.layers, p.directions, p.rank, p.heads, p.bias, p.dtype, p.skip,
                      p.variable_lengths, p.projection > 0, p.dropout > 0);
  };
  if (form(a) != form(b)) return false;
  for (std::int64_t layer = 0; layer < a.layers; ++layer)
    if (a.group_count(layer) != b.group_count(layer)) return false;
  return true;
}

// The first time in this process that it is asked about a text. The set is bounded: a process that
// meets more different texts than that stays silent about the rest.
bool first_time(const std::string& text) {
  constexpr std::size_t kMost = 4096;
  static std::mutex mutex;
  static std::unordered_set<std::string> seen;
  const std::lock_guard lock(mutex);
  return seen.size() < kMost && seen.insert(text).second;
}

}  // namespace

Result<Explanation> lookup(const Problem& problem, const DeviceInfo& device,
                           const std::vector<std::string>& given,
                           const std::vector<std::string>& standard, const Kernels& kernels) {
  Result<Config> built_in = kernels.built_in();
  if (!built_in) return built_in.error();
  Ladder ladder(problem, device, kernels);
  ladder.add(given, true);
  ladder.add(standard, false);
  for (const Reach reach : {Reach::this_problem, Reach::this_silicon, Reach::this_architecture})
    if (ladder.climb(reach)) return ladder.finish();
  return ladder.finish(std::move(*built_in));
}

double shape_distance(const Problem& a, const Problem& b) {
  if (!same_model(a, b)) return kNever;
  const double projection = a.projection > 0 ? log_ratio(a.projection, b.projection) : 0;
  return std::max({log_ratio(a.batch, b.batch), log_ratio(a.input, b.input),
                   log_ratio(a.hidden, b.hidden), projection, 0.1 * log_ratio(a.time, b.time)});
}

void log_once(const Problem& problem, const DeviceInfo& device, const Explanation& explanation,
              const std::function<void(const std::string&)>& log) {
  if (!log || explanation.rung == Rung::given) return;
  if (explanation.rung == Rung::exact) {
    for (const std::string& note : explanation.notes)
      if (first_time(note)) log(note);
    return;
  }
  const std::string shape = to_string(problem) + " on " + device.backend + " " + device.key;
  if (first_time(shape)) log(shape + ": " + explanation.text());
}

}  // namespace rnntune
