// SPDX-License-Identifier: Apache-2.0
#include "tests/fixtures.hpp"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace rnntune::reference {
namespace {

using Json = nlohmann::json;

template <class T>
void flatten(const Json& nested, std::vector<T>& out) {
  if (nested.is_number()) {
    out.push_back(nested.get<T>());
    return;
  }
  for (const Json& part : nested) flatten(part, out);
}

template <class T>
std::vector<T> flat(const Json& nested) {
  std::vector<T> out;
  flatten(nested, out);
  return out;
}

Problem problem_of(const Json& fixture) {
  const Json& sizes = fixture.at("sizes");
  std::string text = fixture.at("cell").get<std::string>() + ":";
  for (const char* name : {"L", "D", "T", "B", "I", "H"})
    text += name + std::to_string(sizes.at(name).get<int>()) + ",";
  if (sizes.contains("P")) text += "P" + std::to_string(sizes.at("P").get<int>()) + ",";
  return parse_problem(text + "f32").value();
}

// The gates of one table stacked in our order; a gate that is absent is zero.
std::vector<float> stacked(const Json& fixture, const char* table, std::size_t gate_size) {
  std::vector<float> out;
  for (const Json& gate : fixture.at("gate_order")) {
    std::vector<float> part;
    if (fixture.contains(table) && fixture[table].contains(gate.get<std::string>()))
      flatten(fixture[table][gate.get<std::string>()], part);
    part.resize(gate_size);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

Inputs inputs_of(const Json& fixture, const Problem& p) {
  const TensorCounts counts = tensor_counts(p);
  const auto H = static_cast<std::size_t>(p.hidden);
  Inputs in;
  in.x = flat<float>(fixture.at("x"));
  in.h_0 = flat<float>(fixture.at("h0"));
  if (fixture.contains("c0")) in.c_0 = flat<float>(fixture["c0"]);
  in.dy.assign(static_cast<std::size_t>(counts.y), 1);
  in.dh_n.assign(static_cast<std::size_t>(counts.h), 1);
  in.dc_n.assign(static_cast<std::size_t>(counts.c), 1);
  LayerTensors<float> w;
  w.weight_ih = stacked(fixture, "weight_ih", H * static_cast<std::size_t>(p.input));
  w.weight_hh = stacked(fixture, "weight_hh", H * static_cast<std::size_t>(p.output()));
  w.bias_ih = stacked(fixture, "bias_ih", H);
  w.bias_hh = stacked(fixture, "bias_hh", H);
  if (fixture.contains("weight_hr")) w.weight_hr = flat<float>(fixture["weight_hr"]);
  in.weights.push_back(std::move(w));
  return in;
}

// The last time step of c [T][B][H]; empty for a cell without c.
std::vector<double> last(const Json& results) {
  return results.contains("c") ? flat<double>(results["c"].back()) : std::vector<double>();
}

}  // namespace

std::string Fixture::difference(const std::vector<float>& out_y,
                                const std::vector<float>& out_c_n) const {
  auto compare = [&](const char* name, const std::vector<float>& out,
                     const std::vector<double>& expected) -> std::string {
    if (out.size() != expected.size()) return id + ": " + name + " has the wrong size";
    for (std::size_t k = 0; k < out.size(); ++k)
      if (!(std::abs(out[k] - expected[k]) <= tolerance))
        return id + " (" + purpose + "): " + name + "[" + std::to_string(k) + "] is " +
               std::to_string(out[k]) + ", expected " + std::to_string(expected[k]);
    return {};
  };
  const std::string wrong_y = compare("y", out_y, y);
  return wrong_y.empty() ? compare("c_n", out_c_n, c_n) : wrong_y;
}

std::vector<Fixture> read_fixtures(const std::string& path) {
  const Json document = Json::parse(std::ifstream(path));
  std::vector<Fixture> out;
  for (const Json& f : document.at("fixtures")) {
    const Problem problem = problem_of(f);
    Fixture fixture{f.at("id"),
                    f.at("purpose"),
                    problem,
                    inputs_of(f, problem),
                    flat<double>(f.at("expected").at("h")),
                    last(f["expected"]),
                    {},
                    f.at("tolerance")};
    for (const Json& w : f.at("wrong"))
      fixture.wrong.push_back({w.at("mistake"), flat<double>(w.at("h")), last(w)});
    out.push_back(std::move(fixture));
  }
  return out;
}

}  // namespace rnntune::reference
