// SPDX-License-Identifier: Apache-2.0
#include "tuner/commands/results_view.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tuner/commands/bench_results.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/records/record.hpp"

namespace rnntune::tuner {
namespace {

std::string text_of(const Json& json, const char* field) {
  const auto found = json.find(field);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// NaN where the field is missing or no number.
double number_of(const Json& json, const char* field) {
  const auto found = json.find(field);
  return found != json.end() && found->is_number() ? found->get<double>()
                                                   : std::numeric_limits<double>::quiet_NaN();
}

double us_per_unit(const std::string& unit) {
  static const std::map<std::string, double> kUnits = {
      {"ns", 1e-3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}};
  const auto found = kUnits.find(unit);
  return found == kUnits.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

// The object that a string field holds as JSON text.
Json nested(const Json& json, const char* field) {
  Json object = Json::parse(text_of(json, field), nullptr, false);
  return object.is_object() ? object : Json::object();
}

std::string config_text(const Json& label) {
  Config config;
  if (label.contains("config") && decode(label["config"], config).empty()) {
    return to_string(config);
  }
  return text_of(label, "config");
}

// What the GPU counted, from the fields of a row and from its label.
std::optional<StepCounters> counters_of(const Json& benchmark, const Json& label,
                                        const std::string& contender) {
  if (!label.contains("gpu") || !label["gpu"].is_object()) return std::nullopt;
  Json json = {{"contender", contender}, {"chip", text_of(label["gpu"], "chip")}};
  json["passes"] = label["gpu"].value("passes", Json());
  json["values"] = Json::object();
  for (const auto& [field, value] : benchmark.items()) {
    if (field.starts_with(kGpuPrefix)) json["values"][field.substr(kGpuPrefix.size())] = value;
  }
  StepCounters counters;
  if (!from_json(json, counters).empty()) return std::nullopt;
  return counters;
}

void fill_row(const Json& benchmark, ResultRow& row) {
  const Json label = nested(benchmark, "label");
  if (row.problem.empty()) row.problem = text_of(label, "problem");
  if (row.config.empty()) row.config = config_text(label);
  if (row.version.empty()) row.version = text_of(label, "version");
  if (row.algorithm.empty()) row.algorithm = text_of(label, "algorithm");
  if (benchmark.value("error_occurred", Json(false)) == true) {
    row.error = text_of(benchmark, "error_message");
    if (row.error.empty()) row.error = "failed";
  }
  const Ratio ratio{number_of(benchmark, "ratio"), number_of(benchmark, "ratio_low"),
                    number_of(benchmark, "ratio_high")};
  if (!row.counters) row.counters = counters_of(benchmark, label, row.contender);
  if (!row.ratio && ratio.median > 0) row.ratio = ratio;
}

std::vector<ResultRow> rows_of(const Json& benchmarks) {
  std::vector<ResultRow> rows;
  std::vector<std::vector<double>> samples;
  std::map<std::string, std::size_t> places;
  for (const Json& benchmark : benchmarks) {
    if (!benchmark.is_object() || text_of(benchmark, "run_type") == "aggregate") continue;
    const std::string name = text_of(benchmark, "name");
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos) continue;
    const std::string contender = name.substr(slash + 1, name.find('/', slash + 1) - slash - 1);
    const std::string key = name.substr(0, slash) + "/" + contender;
    const auto [place, added] = places.try_emplace(key, rows.size());
    if (added) {
      rows.push_back({});
      rows.back().name = name.substr(0, slash);
      rows.back().contender = contender;
      samples.emplace_back();
    }
    fill_row(benchmark, rows[place->second]);
    const double time_us =
        number_of(benchmark, "real_time") * us_per_unit(text_of(benchmark, "time_unit"));
    if (rows[place->second].error.empty()) samples[place->second].push_back(time_us);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].time_us = to_time_us(summarize(samples[i]));
  return rows;
}

}  // namespace

Result<ResultsView> parse_results(std::string_view text, const std::string& path) {
  const Result<Json> json = parse_json(text, path);
  if (!json.ok()) return json.error();
  if (!json->is_object() || !json->contains("context") || !(*json)["context"].is_object() ||
      !json->contains("benchmarks") || !(*json)["benchmarks"].is_array()) {
    return Error{ErrorCode::bad_file,
                 path +
                     ": expected results of `rnntune bench`: an object with 'context' and "
                     "'benchmarks'"};
  }
  const Json& context = (*json)["context"];
  ResultsView view;
  view.date = text_of(context, "date");
  view.version = text_of(context, "rnntune_library");
  DeviceInfo device;
  if (decode(nested(context, "rnntune_device"), device).empty()) view.device = device;
  Environment environment;
  if (decode(nested(context, "rnntune_environment"), environment).empty()) {
    view.environment = environment;
  }
  view.rows = rows_of((*json)["benchmarks"]);
  return view;
}

Result<ResultsView> read_results(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) return Error{ErrorCode::not_found, "cannot read the results '" + path + "'"};
  std::ostringstream text;
  text << file.rdbuf();
  return parse_results(text.str(), path);
}

}  // namespace rnntune::tuner
