// SPDX-License-Identifier: Apache-2.0
#include "simt/profile.hpp"

#include <algorithm>
#include <tuple>

#include "simt/scheduler.hpp"
#include "simt/source_line.hpp"

namespace rnntune::simt {
namespace {

constexpr std::uintptr_t kSector = 32, kBankWord = 4, kVector = 16;
constexpr std::uintptr_t kBanks = 32;

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit;
}

// How many different units of `unit` bytes the pieces touch.
template <class Pieces>
std::vector<std::uintptr_t> touched(const Pieces& pieces, std::uintptr_t unit) {
  std::vector<std::uintptr_t> units;
  for (const auto* piece : pieces) {
    for (std::uintptr_t at = piece->begin / unit; at * unit < piece->end; ++at) units.push_back(at);
  }
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

std::uint64_t most_of_a_bank(const std::vector<std::uintptr_t>& words) {
  std::uint64_t counts[kBanks] = {};
  for (const std::uintptr_t word : words) ++counts[word % kBanks];
  return *std::max_element(std::begin(counts), std::end(counts));
}

}  // namespace

void Profile::begin_launch(const std::string& kernel) {
  kernel_ = kernel;
  ++launches_[kernel];
}

void Profile::end_launch() { flush(); }

void Profile::add(const Thread& thread, const void* at, std::size_t bytes, Access access,
                  bool shared, const void* pc) {
  const Scheduler& scheduler = *thread.home->scheduler;
  const std::uint64_t id = thread.home->id;
  // Blocks of a launch that is not cooperative run one after the other.
  if (scheduler.blocks().size() == 1 && !blocks_.contains(id)) flush();
  Block& block = blocks_[id];
  block.lanes.resize(thread.home->threads.size());
  Lane& lane = block.lanes[static_cast<std::size_t>(thread.id)];
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const Piece piece{begin, begin + bytes, pc, access, shared};
  if (grow(lane.last, piece)) return;
  commit(id, thread.id, lane);
  lane.last = piece;
}

const std::string& Profile::line_of(const void* pc) {
  std::string& line = lines_[pc];
  if (line.empty()) line = source_line(pc);
  return line;
}

bool Profile::grow(Piece& last, const Piece& next) {
  if (last.pc == nullptr || last.pc == next.pc) return false;
  if (last.access != next.access || last.shared != next.shared) return false;
  if (next.begin != last.end && next.end != last.begin) return false;
  const std::uintptr_t begin = std::min(last.begin, next.begin), end = std::max(last.end, next.end);
  if (begin / kVector != (end - 1) / kVector) return false;
  if (line_of(last.pc) != line_of(next.pc)) return false;
  last.begin = begin;
  last.end = end;
  return true;
}

void Profile::commit(std::uint64_t block, int thread, Lane& lane) {
  if (lane.last.pc == nullptr) return;
  const RequestKey key{lane.last.pc, block, lane.executions[lane.last.pc]++, thread / kWarpSize};
  Request& request = requests_[key];
  request.lanes[thread % kWarpSize] = lane.last;
  request.mask |= 1u << (thread % kWarpSize);
  lane.last = {};
  if (request.mask != ~0u) return;
  count(request);
  requests_.erase(key);
}

// A wide access to shared memory takes turns: 16 lanes of 8 bytes at a time, or 8 of 16.
void Profile::count(const Request& request) {
  std::vector<const Piece*> pieces;
  for (int i = 0; i < kWarpSize; ++i) {
    if ((request.mask >> i & 1) != 0) pieces.push_back(&request.lanes[i]);
  }
  const Piece& one = *pieces.front();
  MemoryLine& line = counts_[{kernel_, one.pc}];
  line.access = one.access;
  line.shared = one.shared;
  ++line.requests;
  for (const Piece* piece : pieces) line.bytes += piece->end - piece->begin;
  if (!one.shared) {
    line.transactions += touched(pieces, kSector).size();
    line.ideal += rounded_up(touched(pieces, 1).size(), kSector);
    return;
  }
  const auto width = std::max(kBankWord, one.end - one.begin);
  const auto turn = static_cast<std::ptrdiff_t>(kBanks * kBankWord / width);
  for (int first = 0; first < kWarpSize; first += static_cast<int>(turn)) {
    pieces.clear();
    for (int i = first; i < first + turn; ++i) {
      if ((request.mask >> i & 1) != 0) pieces.push_back(&request.lanes[i]);
    }
    if (pieces.empty()) continue;
    const std::vector<std::uintptr_t> words = touched(pieces, kBankWord);
    line.transactions += most_of_a_bank(words);
    line.ideal += rounded_up(words.size(), kBanks);
  }
}

void Profile::flush() {
  for (auto& [id, block] : blocks_) {
    for (std::size_t i = 0; i < block.lanes.size(); ++i) {
      commit(id, static_cast<int>(i), block.lanes[i]);
    }
  }
  for (const auto& [key, request] : requests_) count(request);
  requests_.clear();
  blocks_.clear();
}

std::vector<MemoryLine> Profile::lines() const {
  std::map<std::tuple<std::string, std::string, bool, Access>, MemoryLine> merged;
  for (const auto& [key, count] : counts_) {
    const auto known = lines_.find(key.second);
    const std::string line = known == lines_.end() ? source_line(key.second) : known->second;
    MemoryLine& sum = merged[{key.first, line, count.shared, count.access}];
    sum.kernel = key.first;
    sum.line = line;
    sum.access = count.access;
    sum.shared = count.shared;
    sum.requests += count.requests;
    sum.bytes += count.bytes;
    sum.transactions += count.transactions;
    sum.ideal += count.ideal;
  }
  std::vector<MemoryLine> lines;
  for (auto& [key, line] : merged) lines.push_back(std::move(line));
  return lines;
}

}  // namespace rnntune::simt
