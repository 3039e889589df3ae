// SPDX-License-Identifier: Apache-2.0
#include "rnntune/problem.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "checked.hpp"

namespace rnntune {
namespace {

struct CellRow {
  const char* name;
  std::int64_t gates;
};

constexpr std::array<CellRow, 6> kCells{{{"lstm", 4},
                                         {"lstm_peephole", 4},
                                         {"lstm_coupled", 3},
                                         {"gru", 3},
                                         {"rnn_tanh", 1},
                                         {"rnn_relu", 1}}};
constexpr std::array<const char*, 4> kDtypes{"f32", "f16", "bf16", "tf32"};

// What a part of a problem string says: which kind of part it is, so that it is accepted once, or
// why it cannot be read.
struct Part {
  char kind = 0;
  std::string error;
};

Part not_expected(std::string_view name, const char* expected, std::string_view got) {
  const std::string came = got.empty() ? "nothing" : "'" + std::string(got) + "'";
  return {0, std::string(name) + ": expected " + expected + ", got " + came};
}

// The whole text as a number; empty where it is none, or one that 64 bits do not hold.
std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

// Sizes of 1 and more. `name` is what messages call it.
Part parse_size(std::string_view name, std::string_view text, std::int64_t& size) {
  const auto value = parse_int(text);
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  if (!value && digits) return not_expected(name, "at most 9223372036854775807", text);
  if (!value) return not_expected(name, "a whole number of at least 1", text);
  if (*value < 1) return not_expected(name, "at least 1", text);
  size = *value;
  return {name[0], {}};
}

// Dimensions written as one letter and a number.
struct Dimension {
  char letter;
  std::int64_t Problem::*field;
};

constexpr std::array<Dimension, 8> kDimensions{{{'L', &Problem::layers},
                                                {'T', &Problem::time},
                                                {'B', &Problem::batch},
                                                {'I', &Problem::input},
                                                {'H', &Problem::hidden},
                                                {'P', &Problem::projection},
                                                {'R', &Problem::rank},
                                                {'N', &Problem::heads}}};

Part parse_groups(std::string_view text, Problem& problem) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('/', at), text.size());
    std::int64_t groups = 0;
    if (Part part = parse_size("G", text.substr(at, end - at), groups); part.kind == 0) return part;
    problem.groups.push_back(groups);
    at = end + 1;
  }
  if (problem.groups == std::vector<std::int64_t>{1}) problem.groups.clear();
  return {'G', {}};
}

Part parse_dropout(std::string_view text, Problem& problem) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), problem.dropout);
  const bool whole = code == std::errc{} && end == text.data() + text.size();
  if (whole && problem.dropout >= 0 && problem.dropout < 1) return {'d', {}};
  return not_expected("drop", "a number of at least 0 and below 1", text);
}

Part parse_directions(std::string_view text, Problem& problem) {
  const auto value = parse_int(text);
  if (value != 1 && value != 2) return not_expected("D", "1 or 2", text);
  problem.directions = static_cast<int>(*value);
  return {'D', {}};
}

// A part that is a word, perhaps with a number; no kind and no error where it is none.
Part parse_word(std::string_view word, Problem& problem) {
  const auto dtype = std::find(kDtypes.begin(), kDtypes.end(), word);
  if (dtype != kDtypes.end()) {
    problem.dtype = static_cast<Dtype>(dtype - kDtypes.begin());
    return {'t', {}};
  }
  if (word == "skip") return problem.skip = true, Part{'s', {}};
  if (word == "var") return problem.variable_lengths = true, Part{'v', {}};
  if (word == "bias1") return problem.bias = Bias::one, Part{'b', {}};
  if (word == "nobias") return problem.bias = Bias::none, Part{'b', {}};
  if (word.starts_with("drop")) return parse_dropout(word.substr(4), problem);
  return {};
}

Part parse_part(std::string_view part, Problem& problem) {
  if (part.empty()) return {0, "a part is empty, between commas or at the end"};
  Part word = parse_word(part, problem);
  if (word.kind != 0 || !word.error.empty()) return word;
  const std::string_view number = part.substr(1);
  if (part[0] == 'G') return parse_groups(number, problem);
  if (part[0] == 'D') return parse_directions(number, problem);
  for (const Dimension& dimension : kDimensions) {
    if (dimension.letter == part[0])
      return parse_size(part.substr(0, 1), number, problem.*dimension.field);
  }
  return {0, "cannot read '" + std::string(part) +
                 "', known are L T B I H P G R D N with a number, skip, var, drop0.1, bias1, "
                 "nobias, f32, f16, bf16 and tf32"};
}

Error bad_problem(std::string_view text, const std::string& why) {
  return invalid_argument("problem '" + std::string(text) + "': " + why +
                          " (expected e.g. 'lstm:L2,T35,B20,I650,H650,f32')");
}

Status check_range(const Problem& p) {
  for (const Dimension& dimension : kDimensions) {
    const bool optional = dimension.letter == 'P' || dimension.letter == 'R';
    const std::int64_t value = p.*dimension.field;
    if (value < (optional ? 0 : 1)) {
      return invalid_argument(std::string(1, dimension.letter) + " must be at least 1, got " +
                              std::to_string(value));
    }
  }
  const int cell = static_cast<int>(p.cell);
  if (cell < 0 || cell >= static_cast<int>(kCells.size()))
    return invalid_argument("cell must be a known cell, got " + std::to_string(cell));
  if (p.directions != 1 && p.directions != 2)
    return invalid_argument("D must be 1 or 2, got " + std::to_string(p.directions));
  if (!(p.dropout >= 0 && p.dropout < 1))
    return invalid_argument("dropout must be in [0, 1), got " + std::to_string(p.dropout));
  return {};
}

Status check_model(const Problem& p) {
  const bool lstm =
      p.cell == Cell::lstm || p.cell == Cell::lstm_peephole || p.cell == Cell::lstm_coupled;
  if (!lstm && (p.projection || p.rank || !p.groups.empty() || p.heads != 1))
    return invalid_argument("P, G, R and N belong to the LSTM cells, the cell is " +
                            std::string(to_string(p.cell)));
  if (p.projection > p.hidden)
    return invalid_argument("P must be at most H = " + std::to_string(p.hidden) + ", got " +
                            std::to_string(p.projection));
  if (p.rank && !p.groups.empty()) return invalid_argument("G and R exclude each other");
  if (p.groups.size() > 1 && static_cast<std::int64_t>(p.groups.size()) != p.layers)
    return invalid_argument("G needs one value or one per layer, L = " + std::to_string(p.layers) +
                            ", got " + std::to_string(p.groups.size()));
  for (std::int64_t layer = 0; layer < p.layers && !p.groups.empty(); ++layer) {
    const std::int64_t g = p.group_count(layer);
    if (p.hidden % g || p.output() % g || p.layer_input(layer) % g)
      return invalid_argument("G = " + std::to_string(g) + " must divide I, H and P of layer " +
                              std::to_string(layer));
  }
  if (p.hidden % p.heads)
    return invalid_argument("N = " + std::to_string(p.heads) +
                            " must divide H = " + std::to_string(p.hidden));
  if (p.skip && p.input != p.hidden)
    return invalid_argument("skip needs I = H, got I = " + std::to_string(p.input));
  return {};
}

Status check_sizes(const Problem& p) {
  // The largest buffer any plan derives: gates and states of every time step, in bytes of f64.
  Checked n = Checked(8) * (p.gates() + 4) * p.layers * p.directions;
  const Checked activations =
      n * (Checked(p.time) + 1) * (Checked(p.batch) + 63) * (Checked(p.hidden) + p.input + 128);
  const Checked weights = n * (Checked(p.hidden) + 64) * (Checked(p.input) + p.hidden * 2 + 128);
  if (activations.ok() && weights.ok()) return {};
  return Error{ErrorCode::size_overflow, "size overflow: the tensors of " + to_string(p) +
                                             " do not fit 63 bits (L, T, B, I, H)"};
}

}  // namespace

const char* to_string(Cell cell) { return kCells[static_cast<std::size_t>(cell)].name; }
const char* to_string(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)]; }

std::int64_t Problem::gates() const { return kCells[static_cast<std::size_t>(cell)].gates; }
std::int64_t Problem::output() const { return projection ? projection : hidden; }
std::int64_t Problem::layer_input(std::int64_t layer) const {
  return layer == 0 ? input : directions * output();
}
std::int64_t Problem::group_count(std::int64_t layer) const {
  if (groups.empty()) return 1;
  return groups.size() == 1 ? groups[0] : groups[static_cast<std::size_t>(layer)];
}

Result<Problem> parse_problem(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view cell = text.substr(0, colon);
  Problem problem;
  const auto row =
      std::find_if(kCells.begin(), kCells.end(), [&](const CellRow& r) { return cell == r.name; });
  if (row == kCells.end()) {
    std::string known;
    for (const CellRow& r : kCells) known += std::string(known.empty() ? "" : ", ") + r.name;
    return bad_problem(text, "unknown cell '" + std::string(cell) + "', known are " + known);
  }
  problem.cell = static_cast<Cell>(row - kCells.begin());
  if (colon == std::string_view::npos) return bad_problem(text, "sizes are missing after the cell");
  std::set<char> seen;
  for (std::size_t at = colon + 1; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const Part read = parse_part(part, problem);
    if (read.kind == 0) return bad_problem(text, read.error);
    if (!seen.insert(read.kind).second)
      return bad_problem(text, "'" + std::string(part) + "' is given twice");
    at = end + 1;
  }
  if (problem.skip && !seen.contains('I')) {
    problem.input = problem.hidden;
    seen.insert('I');
  }
  for (const char required : {'T', 'B', 'I', 'H'})
    if (!seen.contains(required))
      return bad_problem(text, std::string(1, required) + " is missing");
  if (Status status = check(problem); !status)
    return Error{status.error().code,
                 "problem '" + std::string(text) + "': " + status.error().message};
  return problem;
}

std::string to_string(const Problem& p) {
  std::string text = std::string(to_string(p.cell)) + ":L" + std::to_string(p.layers) + ",T" +
                     std::to_string(p.time) + ",B" + std::to_string(p.batch) + ",I" +
                     std::to_string(p.input) + ",H" + std::to_string(p.hidden);
  const auto add = [&](const std::string& part) { text += "," + part; };
  if (p.projection) add("P" + std::to_string(p.projection));
  if (!p.groups.empty()) {
    std::string groups;
    for (const std::int64_t g : p.groups)
      groups += (groups.empty() ? "G" : "/") + std::to_string(g);
    add(groups);
  }
  if (p.rank) add("R" + std::to_string(p.rank));
  if (p.directions != 1) add("D" + std::to_string(p.directions));
  if (p.heads != 1) add("N" + std::to_string(p.heads));
  if (p.skip) add("skip");
  if (p.variable_lengths) add("var");
  if (p.dropout > 0) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), p.dropout).ptr;
    add("drop" + std::string(digits.data(), end));
  }
  if (p.bias != Bias::two) add(p.bias == Bias::one ? "bias1" : "nobias");
  add(to_string(p.dtype));
  return text;
}

Status check(const Problem& problem) {
  if (Status status = check_range(problem); !status) return status;
  if (Status status = check_model(problem); !status) return status;
  return check_sizes(problem);
}

double step_flops(const Problem& p) {
  double forward = 0;
  const double samples = static_cast<double>(p.time) * static_cast<double>(p.batch);
  for (std::int64_t layer = 0; layer < p.layers; ++layer) {
    const auto in = static_cast<double>(p.skip && layer == 0 ? 0 : p.layer_input(layer));
    const auto out = static_cast<double>(p.output());
    const auto rows = static_cast<double>(p.gates() * p.hidden);
    const auto groups = static_cast<double>(p.group_count(layer));
    const auto heads = static_cast<double>(p.heads);
    double macs = rows * (in + out / heads) / groups;
    if (p.rank) macs = static_cast<double>(p.rank) * (in + out + rows);
    if (p.projection) macs += static_cast<double>(p.hidden) * out;
    forward += 2 * macs * samples * p.directions;
  }
  return 3 * forward;
}

std::int64_t parameter_count(const Problem& p) {
  std::int64_t total = 0;
  const std::int64_t rows = p.gates() * p.hidden;
  const std::int64_t biases = p.bias == Bias::two ? 2 : p.bias == Bias::one ? 1 : 0;
  for (std::int64_t layer = 0; layer < p.layers; ++layer) {
    const std::int64_t in = p.skip && layer == 0 ? 0 : p.layer_input(layer);
    std::int64_t count = (rows * in + rows * p.output() / p.heads) / p.group_count(layer);
    if (p.rank) count = p.rank * (in + p.output() + rows);
    count += biases * rows + p.projection * p.hidden;
    if (p.cell == Cell::lstm_peephole) count += 3 * p.hidden;
    total += count * p.directions;
  }
  return total;
}

TensorCounts tensor_counts(const Problem& p) {
  const bool lstm =
      p.cell == Cell::lstm || p.cell == Cell::lstm_peephole || p.cell == Cell::lstm_coupled;
  const std::int64_t states = p.layers * p.directions * p.batch;
  return {.x = p.time * p.batch * p.input,
          .y = p.time * p.batch * p.directions * p.output(),
          .h = states * p.output(),
          .c = lstm ? states * p.hidden : 0};
}

}  // namespace rnntune
