// SPDX-License-Identifier: Apache-2.0
#include "tuner/inspect/inspect_view.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "reports/format.hpp"

namespace rnntune::tuner {
namespace {

using reports::format_number;

constexpr double kSectorBytes = 32;

// ---- tables

using Cells = std::vector<std::string>;

// Columns as wide as their longest cell. `align` has 'l' or 'r' for each column, 'r' for those
// beyond it.
std::string table(const std::vector<Cells>& rows, std::string_view align) {
  std::vector<std::size_t> widths;
  for (const Cells& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Cells& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - row[i].size(), ' ');
      const bool left = i < align.size() && align[i] == 'l';
      line += "  " + (left ? row[i] + gap : gap + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string section(const std::string& title, const std::string& how) {
  return "\n" + title + (how.empty() ? "" : " (" + how + ")") + "\n";
}

std::string bytes_text(double bytes) {
  return reports::format_bytes(static_cast<std::int64_t>(bytes));
}

std::string flops_text(double flops) {
  const char* const units[] = {" FLOP", " kFLOP", " MFLOP", " GFLOP", " TFLOP"};
  std::size_t unit = 0;
  for (; flops >= 1000 && unit + 1 < std::size(units); ++unit) flops /= 1000;
  return format_number(flops, 3) + units[unit];
}

std::string extent_text(const gpu::Extent3& e) {
  std::string text = std::to_string(e.x);
  if (e.y > 1 || e.z > 1) text += "x" + std::to_string(e.y);
  if (e.z > 1) text += "x" + std::to_string(e.z);
  return text;
}

std::string name_of(std::size_t kernel) { return "k" + std::to_string(kernel + 1); }

// All kernels of ours are in one namespace.
std::string without_namespace(std::string expression) {
  const std::string prefix = "rnntune::cuda::";
  for (std::size_t at; (at = expression.find(prefix)) != std::string::npos;) {
    expression.erase(at, prefix.size());
  }
  return expression;
}

// ---- sections

std::string chosen_text(const Explanation& choice) {
  if (choice.rung == Rung::given) return "--config";
  std::string text = std::string("lookup: ") + to_string(choice.rung);
  if (!choice.problem.empty()) text += ", the entry of " + choice.problem;
  return text;
}

std::string plan_text(const InspectedPlan& plan, const std::string& device_kind,
                      const std::string& device_text) {
  std::vector<Cells> rows{{device_kind, device_text},
                          {"config", to_string(plan.choice.config)},
                          {"chosen by", chosen_text(plan.choice)}};
  for (const std::string& note : plan.choice.notes) rows.push_back({"", note});
  return to_string(plan.problem) + "\n" + table(rows, "ll");
}

std::string sizes_text(const PlanSizes& sizes, const std::string& how) {
  return section("Memory of the plan", how) +
         table({{"packed weights", bytes_text(double(sizes.packed))},
                {"workspace", bytes_text(double(sizes.workspace))},
                {"reserve", bytes_text(double(sizes.reserve))}},
               "l");
}

struct Traffic {
  double read = 0, written = 0;  // bytes of the sectors of global memory
  std::string uncounted;         // names of kernels
};

Traffic traffic_of(const simt::Recording& recording) {
  Traffic traffic;
  for (std::size_t i = 0; i < recording.kernels.size(); ++i) {
    const simt::RecordedKernel& kernel = recording.kernels[i];
    if (!kernel.uncounted.empty()) {
      traffic.uncounted += (traffic.uncounted.empty() ? ", without " : ", ") + name_of(i);
    }
    for (const simt::MemoryLine& line : kernel.lines) {
      if (line.shared) continue;
      const double bytes = kSectorBytes * double(line.transactions);
      (line.access == simt::Access::read ? traffic.read : traffic.written) += bytes;
    }
  }
  return traffic;
}

std::string moved_text(const simt::Moved& moved) { return bytes_text(double(moved.bytes)); }

std::string step_text(const Inspection& found) {
  const simt::Recording& recording = found.recording;
  std::uint64_t launches = 0, products = 0;
  double flops = 0, bytes = 0;
  for (const simt::RecordedKernel& kernel : recording.kernels) launches += kernel.launches;
  for (const simt::RecordedProduct& product : recording.products) {
    products += product.count;
    flops += double(product.count) * product.flops();
    bytes += double(product.count) * product.bytes();
  }
  const Traffic traffic = traffic_of(recording);
  const std::string kernels = bytes_text(traffic.read) + " read, " + bytes_text(traffic.written) +
                              " written" + traffic.uncounted;
  std::vector<Cells> rows{
      {"calls by the host", std::to_string(recording.calls), ""},
      {"graphs among them", std::to_string(recording.graphs), "what they hold is in these counts"},
      {"kernels", std::to_string(launches), kernels},
      {"products", std::to_string(products),
       bytes_text(bytes) + " with each operand moved once, " + flops_text(flops)},
      {"copies", std::to_string(recording.copies.count), moved_text(recording.copies)},
      {"fills", std::to_string(recording.fills.count), moved_text(recording.fills)},
  };
  std::erase_if(rows, [](const Cells& row) {
    return row[1] == "0" && row[0] != "kernels" && row[0] != "products";
  });
  return section("One training step", "noted from what the plan queued, which did not run") +
         table(rows, "lrl") + "  of " + flops_text(step_flops(found.plan.problem)) +
         " that the problem needs in products; arithmetic of the kernels is not counted\n";
}

std::string launches_text(const simt::Recording& recording) {
  std::vector<Cells> rows{{"", "kernel", "launches", "grid", "block"}};
  for (std::size_t i = 0; i < recording.kernels.size(); ++i) {
    const simt::RecordedKernel& kernel = recording.kernels[i];
    rows.push_back({name_of(i), without_namespace(kernel.kernel.expression),
                    std::to_string(kernel.launches), extent_text(kernel.grid),
                    extent_text(kernel.block)});
  }
  return section("Kernel launches", "noted; the grid is the largest of a kernel's") +
         table(rows, "ll");
}

std::string products_text(const simt::Recording& recording) {
  std::vector<Cells> rows{{"op", "m", "n", "k", "calls", "FLOP of one", "FLOP of all"}};
  for (const simt::RecordedProduct& product : recording.products) {
    const Gemm& g = product.gemm;
    const double flops = product.flops();
    rows.push_back({std::string(g.transpose_a ? "T" : "N") + (g.transpose_b ? "T" : "N") +
                        (g.beta == 0 ? "" : " +="),
                    std::to_string(g.m), std::to_string(g.n), std::to_string(g.k),
                    std::to_string(product.count), flops_text(flops),
                    flops_text(flops * double(product.count))});
  }
  return section("Products", "noted; column-major m x n x k as cuBLAS gets them") +
         table(rows, "l");
}

Cells resources_of(const simt::RecordedKernel& kernel, const cuda::Compiled& row) {
  const cuda::KernelUsage& usage = row.usage;
  Cells cells{std::to_string(usage.registers),
              std::to_string(usage.spill_store_bytes + usage.spill_load_bytes) + " B",
              bytes_text(usage.static_shared_bytes), bytes_text(kernel.shared_bytes)};
  if (row.resident_blocks < 0) return cells;
  cells.push_back(std::to_string(row.resident_blocks));
  cells.push_back(format_number(100 * row.resident_share, 3) + "%");
  cells.push_back(row.resident_limit);
  return cells;
}

// A compiler's message on one line.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::string resources_text(const Inspection& found, const std::string& architecture) {
  const std::string title = "Kernel resources";
  if (!found.not_compiled.empty()) {
    return section(title, "registers, spills, shared memory, occupancy") +
           "  unknown: " + one_line(found.not_compiled) + "\n";
  }
  std::vector<Cells> rows{
      {"", "registers", "spilled", "shared", "dynamic", "blocks", "occupancy", "limited by"}};
  std::string failed, reason;
  for (std::size_t i = 0; i < found.compiled.size(); ++i) {
    const cuda::Compiled& row = found.compiled[i];
    if (!row.error.empty()) {
      failed += (failed.empty() ? "" : ", ") + name_of(i);
      if (reason.empty()) reason = row.error;
      continue;
    }
    rows.push_back({name_of(i)});
    const Cells cells = resources_of(found.recording.kernels[i], row);
    rows.back().insert(rows.back().end(), cells.begin(), cells.end());
  }
  if (!failed.empty()) failed = "  did not compile: " + failed + ": " + one_line(reason) + "\n";
  if (rows.size() == 1) return section(title, "") + failed;
  return section(title, "compiled for " + architecture +
                            "; blocks of a multiprocessor and occupancy computed") +
         table(rows, "l") + failed;
}

Cells line_cells(const std::string& kernel, const simt::MemoryLine& line) {
  const double requests = std::max(1.0, double(line.requests));
  Cells cells{kernel, line.line,
              (line.shared ? "shared " : "") + std::string(to_string(line.access)),
              std::to_string(line.requests), bytes_text(double(line.bytes))};
  const std::string each = format_number(double(line.transactions) / requests, 3);
  const std::string least = format_number(double(line.ideal) / requests, 3);
  const Cells counts = line.shared ? Cells{"", "", each, least} : Cells{each, least, "", ""};
  cells.insert(cells.end(), counts.begin(), counts.end());
  return cells;
}

std::string lines_text(const simt::Recording& recording) {
  std::vector<Cells> rows{{"", "source line", "access", "requests", "asked for", "sectors", "least",
                           "wavefronts", "least"}};
  std::string notes;
  for (std::size_t i = 0; i < recording.kernels.size(); ++i) {
    const simt::RecordedKernel& kernel = recording.kernels[i];
    for (const simt::MemoryLine& line : kernel.lines) {
      rows.push_back(line_cells(name_of(i), line));
    }
    if (!kernel.uncounted.empty()) {
      notes += "  " + name_of(i) + ": not counted: " + kernel.uncounted + "\n";
    } else if (kernel.counted_share < 1) {
      notes += "  " + name_of(i) + ": " + reports::format_percent(kernel.counted_share) +
               " of the blocks of a launch ran, and stand for all\n";
    }
  }
  return section("Memory accesses of the kernels",
                 "counted on the emulator; one launch of each kind ran") +
         (rows.size() == 1 ? "" : table(rows, "lll")) + notes +
         "  Requests are of a warp; a request takes so many sectors of 32 bytes of global memory, "
         "or\n  wavefronts of shared memory, of which more than the least are bank conflicts. "
         "Caches are not\n  modelled.\n";
}

}  // namespace

std::string to_text(const Inspection& found, const std::string& gpu_text) {
  const std::string& architecture =
      found.compiled.empty() ? std::string() : found.compiled.front().architecture;
  return plan_text(found.plan, "gpu", gpu_text) +
         sizes_text(found.plan.sizes, found.with_products
                                          ? "as this device needs it"
                                          : "computed, without what cuBLAS(Lt) asks for") +
         step_text(found) + launches_text(found.recording) + resources_text(found, architecture) +
         products_text(found.recording) + lines_text(found.recording);
}

std::string to_text(const InspectedPlan& plan, const std::string& device_text) {
  return plan_text(plan, "cpu", device_text) + sizes_text(plan.sizes, "computed") +
         "\nA CPU launches no kernels: inspect a GPU with --device simt.\n";
}

}  // namespace rnntune::tuner
