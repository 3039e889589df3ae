// SPDX-License-Identifier: Apache-2.0
#include "tuner/records/record.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace rnntune::tuner {
namespace {

constexpr std::array<const char*, 9> kOutcomes = {
    "ok",        "rejected", "build_failed", "resource_limit", "launch_failed",
    "timed_out", "crashed",  "wrong_result", "untrusted"};

void add_attempt(Json& json, const Attempt& attempt) {
  json["problem"] = attempt.problem;
  json["config"] = encode(attempt.config);
  json["kernel_hash"] = attempt.kernel_hash;
}

// Fewer than six samples have no interval: the fields are left out.
Json encode_time(const TimeUs& time) {
  Json json = encode(time);
  if (std::isnan(time.low)) {
    for (const char* field : {"low", "high", "noise"}) json.erase(field);
  }
  return json;
}

std::string decode_time(const Json& json, TimeUs& time) {
  if (json.contains("low")) return decode(json, time);
  Json filled = json;
  for (const char* field : {"low", "high", "noise"}) filled[field] = 0;
  std::string why = decode(filled, time);
  time.low = time.high = time.noise = std::numeric_limits<double>::quiet_NaN();
  return why;
}

template <class T>
T get_or(const Json& json, const char* field, T otherwise) {
  const auto found = json.find(field);
  if (found == json.end()) return otherwise;
  try {
    return found->get<T>();
  } catch (const Json::exception&) {
    return otherwise;
  }
}

}  // namespace

const char* to_string(Outcome outcome) { return kOutcomes[static_cast<std::size_t>(outcome)]; }

std::optional<Outcome> parse_outcome(std::string_view text) {
  const auto found = std::find(kOutcomes.begin(), kOutcomes.end(), text);
  if (found == kOutcomes.end()) return std::nullopt;
  return static_cast<Outcome>(found - kOutcomes.begin());
}

TimeUs to_time_us(const Summary& summary, const char* stop) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const Interval interval = summary.interval.value_or(Interval{none, none});
  return {.median = summary.median,
          .low = interval.low,
          .high = interval.high,
          .samples = summary.samples,
          .noise = summary.noise().value_or(none),
          .stop = stop};
}

TimeUs to_time_us(const Timing& timing) {
  return to_time_us(timing.summary, to_string(timing.stop));
}

Json to_json(const Attempt& attempt) {
  Json json = {{"type", "start"}};
  add_attempt(json, attempt);
  return json;
}

Json to_json(const Record& record) {
  Json json = {{"type", "outcome"}};
  add_attempt(json, record.attempt);
  json["outcome"] = to_string(record.outcome);
  json["reason"] = record.reason;
  json["repeatable"] = record.repeatable;
  if (record.time_us) json["time_us"] = encode_time(*record.time_us);
  json["workspace_bytes"] = record.workspace_bytes;
  json["reserve_bytes"] = record.reserve_bytes;
  json["packed_bytes"] = record.packed_bytes;
  if (record.validation) json["validation"] = encode(*record.validation);
  json["cost_us"] = {{"prepare", record.prepare_us},
                     {"validate", record.validate_us},
                     {"measure", record.measure_us}};
  return json;
}

Json to_json(const Final& final) {
  Json json = {{"type", "final"}, {"problem", final.problem}};
  json["config"] = encode(final.config);
  json["time_us"] = encode_time(final.time_us);
  json["tied"] = Json::array();
  for (const Config& config : final.tied) json["tied"].push_back(encode(config));
  json["against"] = Json::array();
  for (const Against& against : final.against) json["against"].push_back(encode(against));
  for (const StepCounters& counters : final.counters) {
    json["counters"].push_back(to_json(counters));
  }
  for (const auto& [opponent, notes] : final.notes) json["notes"][opponent] = notes;
  json["evaluations"] = final.evaluations;
  json["space"] = final.space;
  json["complete"] = final.complete;
  return json;
}

std::string from_json(const Json& json, Attempt& attempt) {
  for (const char* field : {"problem", "kernel_hash"}) {
    if (!json.contains(field) || !json[field].is_string()) {
      return std::string(".") + field + ": expected a string";
    }
  }
  if (!json.contains("config")) return ".config: expected an object";
  attempt.problem = json["problem"];
  attempt.kernel_hash = json["kernel_hash"];
  const std::string why = decode(json["config"], attempt.config);
  return why.empty() ? why : ".config" + why;
}

std::string from_json(const Json& json, Record& record) {
  if (std::string why = from_json(json, record.attempt); !why.empty()) return why;
  const auto outcome = parse_outcome(get_or<std::string>(json, "outcome", ""));
  if (!outcome) return ".outcome: not one of the known outcomes";
  record.outcome = *outcome;
  record.reason = get_or<std::string>(json, "reason", "");
  record.repeatable = get_or(json, "repeatable", true);
  record.workspace_bytes = get_or<std::int64_t>(json, "workspace_bytes", 0);
  record.reserve_bytes = get_or<std::int64_t>(json, "reserve_bytes", 0);
  record.packed_bytes = get_or<std::int64_t>(json, "packed_bytes", 0);
  if (json.contains("time_us")) {
    std::string why = decode_time(json["time_us"], record.time_us.emplace());
    if (!why.empty()) return ".time_us" + why;
  }
  if (json.contains("validation")) {
    std::string why = decode(json["validation"], record.validation.emplace());
    if (!why.empty()) return ".validation" + why;
  }
  if (record.outcome == Outcome::ok && !record.time_us) return ".time_us: missing";
  return {};
}

std::string from_json(const Json& json, Final& final) {
  for (const char* field : {"problem", "config", "time_us"}) {
    if (!json.contains(field)) return std::string(".") + field + ": missing";
  }
  final.problem = get_or<std::string>(json, "problem", "");
  if (std::string why = decode(json["config"], final.config); !why.empty()) return ".config" + why;
  if (std::string why = decode_time(json["time_us"], final.time_us); !why.empty()) {
    return ".time_us" + why;
  }
  for (const Json& config : get_or(json, "tied", Json::array())) {
    std::string why = decode(config, final.tied.emplace_back());
    if (!why.empty()) return ".tied" + why;
  }
  for (const Json& against : get_or(json, "against", Json::array())) {
    std::string why = decode(against, final.against.emplace_back());
    if (!why.empty()) return ".against" + why;
  }
  for (const Json& counters : get_or(json, "counters", Json::array())) {
    std::string why = from_json(counters, final.counters.emplace_back());
    if (!why.empty()) return ".counters" + why;
  }
  const Json notes_of = get_or(json, "notes", Json::object());
  for (const auto& [opponent, notes] : notes_of.items()) {
    final.notes.emplace_back(opponent, std::vector<std::string>());
    for (const Json& note : notes) {
      if (note.is_string()) final.notes.back().second.push_back(note);
    }
  }
  final.evaluations = get_or<std::int64_t>(json, "evaluations", 0);
  final.space = get_or<std::int64_t>(json, "space", 0);
  final.complete = get_or(json, "complete", false);
  return {};
}

}  // namespace rnntune::tuner
