// SPDX-License-Identifier: Apache-2.0
// What the memory accesses of a kernel would cost a GPU, by source line: the lanes of a warp that
// execute one access together are one request, which touches sectors of 32 bytes of global memory,
// or takes wavefronts of shared memory, one for each word that a bank of 32 has to give.
//
// It is counted where the kernel is watched as for the race checker (race.hpp). Lanes are put
// together by how often each has executed the access: right where all lanes loop alike. Accesses of
// a thread side by side that follow each other on one line count as one of up to 16 bytes, as
// compilers of the host split what is one vector access of a GPU. What caches would absorb is not
// modelled.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "simt/shadow.hpp"

namespace rnntune::simt {

struct Thread;

struct MemoryLine {
  std::string kernel;  // its expression
  std::string line;    // "pointwise.cuh:38"
  Access access = Access::read;
  bool shared = false;             // shared memory, else global
  std::uint64_t requests = 0;      // of warps
  std::uint64_t bytes = 0;         // that lanes asked for
  std::uint64_t transactions = 0;  // sectors of global memory, wavefronts of shared memory
  std::uint64_t ideal = 0;         // that as many different bytes need at least

  double excess() const { return ideal == 0 ? 1 : double(transactions) / double(ideal); }
};

class Profile {
 public:
  void begin_launch(const std::string& kernel);
  void end_launch();
  void add(const Thread& thread, const void* at, std::size_t bytes, Access access, bool shared,
           const void* pc);

  // Of all launches, by kernel and line.
  std::vector<MemoryLine> lines() const;
  const std::map<std::string, std::uint64_t>& launches() const { return launches_; }

 private:
  struct Piece {  // an access of one thread
    std::uintptr_t begin = 0, end = 0;
    const void* pc = nullptr;
    Access access = Access::read;
    bool shared = false;
  };
  struct Lane {
    Piece last;  // may still grow
    std::unordered_map<const void*, std::uint64_t> executions;
  };
  struct Request {
    Piece lanes[32];
    unsigned mask = 0;
  };
  struct RequestKey {
    const void* pc;
    std::uint64_t block, execution;
    int warp;
    friend auto operator<=>(const RequestKey&, const RequestKey&) = default;
  };
  struct Block {
    std::vector<Lane> lanes;
  };

  const std::string& line_of(const void* pc);
  bool grow(Piece& last, const Piece& next);
  void commit(std::uint64_t block, int thread, Lane& lane);
  void count(const Request& request);
  void flush();

  std::string kernel_;
  std::map<std::string, std::uint64_t> launches_;
  std::unordered_map<std::uint64_t, Block> blocks_;  // that run
  std::map<RequestKey, Request> requests_;           // that not all lanes have come to
  std::unordered_map<const void*, std::string> lines_;
  std::map<std::pair<std::string, const void*>, MemoryLine> counts_;
};

}  // namespace rnntune::simt
