// SPDX-License-Identifier: Apache-2.0
#include "tuner/gpu/counters.hpp"

namespace rnntune::tuner {

// A stall's share is its count over warps_active_count: both are warps, summed over the cycles of
// every scheduler. "selected" is not a stall: the warp issued.
const std::vector<Counter>& counters() {
  static const std::vector<Counter> all{
      {"time_ns", {"gpu__time_duration.sum"}},
      {"dram_read_bytes", {"dram__bytes_read.sum", "dram__bytes_op_read.sum"}},
      {"dram_write_bytes", {"dram__bytes_write.sum", "dram__bytes_op_write.sum"}},
      {"dram_throughput_percent", {"dram__throughput.avg.pct_of_peak_sustained_elapsed"}},
      {"l2_bytes", {"lts__t_bytes.sum"}},
      {"occupancy_percent", {"sm__warps_active.avg.pct_of_peak_sustained_active"}},
      {"tensor_pipe_percent", {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"}},
      {"fma_pipe_percent", {"sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed"}},
      {"warps_active_count", {"smsp__warps_active.sum"}},
      {"selected_count", {"smsp__warps_issue_stalled_selected.sum"}},
      {"stall_long_scoreboard_count", {"smsp__warps_issue_stalled_long_scoreboard.sum"}},
      {"stall_short_scoreboard_count", {"smsp__warps_issue_stalled_short_scoreboard.sum"}},
      {"stall_barrier_count", {"smsp__warps_issue_stalled_barrier.sum"}},
      {"stall_membar_count", {"smsp__warps_issue_stalled_membar.sum"}},
      {"stall_math_pipe_throttle_count", {"smsp__warps_issue_stalled_math_pipe_throttle.sum"}},
      {"stall_mio_throttle_count", {"smsp__warps_issue_stalled_mio_throttle.sum"}},
      {"stall_lg_throttle_count", {"smsp__warps_issue_stalled_lg_throttle.sum"}},
      {"stall_gmma_count", {"smsp__warps_issue_stalled_gmma.sum"}},  // Hopper's tensor cores only
      {"stall_wait_count", {"smsp__warps_issue_stalled_wait.sum"}},
      {"stall_sleeping_count", {"smsp__warps_issue_stalled_sleeping.sum"}},
      {"stall_no_instruction_count", {"smsp__warps_issue_stalled_no_instruction.sum"}},
      {"stall_not_selected_count", {"smsp__warps_issue_stalled_not_selected.sum"}},
  };
  return all;
}

}  // namespace rnntune::tuner
