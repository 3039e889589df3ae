// SPDX-License-Identifier: Apache-2.0
// What a cluster's barrier and its distributed shared memory cost (sm_90 and later). The emulator
// has no clusters: this text is compiled without a GPU, and has run on none yet.
//
// Block: kProbeThreads threads. Grid: whole clusters, along x.
#pragma once

#include "portable.cuh"
#include "probe_arguments.hpp"

namespace rnntune::cuda {
inline namespace RNNTUNE_DEVICE_TEXT {

__device__ inline void cluster_barrier() {
  __syncwarp();  // aligned: a warp arrives as one
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n\t"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

__device__ inline unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ inline unsigned cluster_blocks() {
  unsigned blocks;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
}

// Where the block of that rank keeps what this block keeps at `own`.
__device__ inline unsigned shared_of(unsigned rank, const void* own) {
  const unsigned local = static_cast<unsigned>(__cvta_generic_to_shared(own));
  unsigned remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(local), "r"(rank));
  return remote;
}

__device__ inline uint4 load_remote(unsigned address) {
  uint4 v;
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

__device__ inline void store_remote(unsigned address, unsigned value) {
  asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(address), "r"(value)
               : "memory");
}

__global__ void __launch_bounds__(kProbeThreads) probe_cluster_barriers(BarrierArguments p) {
  for (int round = 0; round < p.rounds; ++round) cluster_barrier();
}

// Behind each barrier a block must see what its neighbour wrote before it.
__global__ void __launch_bounds__(kProbeThreads) probe_cluster_checked(BarrierArguments p) {
  RNNTUNE_SHARED(word, unsigned[4]);
  const unsigned next = (cluster_rank() + 1) % cluster_blocks();
  for (int round = 1; round <= p.rounds; ++round) {
    if (threadIdx.x == 0) word[0] = static_cast<unsigned>(round) << 8 | cluster_rank();
    cluster_barrier();
    const unsigned seen = load_remote(shared_of(next, word)).x;
    if (threadIdx.x == 0 && seen != (static_cast<unsigned>(round) << 8 | next)) {
      atomicAdd(p.errors, 1u);
    }
    cluster_barrier();
  }
}

// What the block of a rank puts into vector i.
__device__ inline unsigned probe_pattern(unsigned rank, int i) {
  return rank * 0x10001u + static_cast<unsigned>(i);
}

// Reads in steps of kInFlight vectors a thread; `vectors` is a multiple of what a block takes in
// one. The sum is compared with what the owner wrote.
__global__ void __launch_bounds__(kProbeThreads) probe_remote_read(RemoteArguments p) {
  constexpr int kInFlight = 4;
  RNNTUNE_DYNAMIC_SHARED(uint4, own);
  const int thread = static_cast<int>(threadIdx.x);
  const unsigned rank = cluster_rank();
  const unsigned other = (rank + static_cast<unsigned>(p.distance)) % cluster_blocks();
  for (int i = thread; i < p.vectors; i += kProbeThreads) {
    const unsigned value = probe_pattern(rank, i);
    own[i] = make_uint4(value, value, value, value);
  }
  cluster_barrier();
  const unsigned address = shared_of(other, own);
  unsigned sum = 0;
  for (int round = 0; round < p.rounds; ++round) {
    for (int i = thread; i < p.vectors; i += kInFlight * kProbeThreads) {
      uint4 v[kInFlight];
      RNNTUNE_UNROLL
      for (int k = 0; k < kInFlight; ++k) {
        v[k] = load_remote(address + 16u * static_cast<unsigned>(i + k * kProbeThreads));
      }
      RNNTUNE_UNROLL
      for (int k = 0; k < kInFlight; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
    }
  }
  unsigned expected = 0;
  for (int i = thread; i < p.vectors; i += kProbeThreads) expected += 4 * probe_pattern(other, i);
  if (sum != expected * static_cast<unsigned>(p.rounds)) atomicAdd(p.errors, 1u);
  cluster_barrier();  // nobody leaves while its memory is read
}

__global__ void __launch_bounds__(kProbeThreads) probe_remote_write(RemoteArguments p) {
  RNNTUNE_DYNAMIC_SHARED(uint4, own);
  const int thread = static_cast<int>(threadIdx.x);
  const unsigned rank = cluster_rank(), blocks = cluster_blocks();
  const unsigned distance = static_cast<unsigned>(p.distance);
  cluster_barrier();  // everyone is there
  const unsigned address = shared_of((rank + distance) % blocks, own);
  for (int round = 0; round < p.rounds; ++round) {
    for (int i = thread; i < p.vectors; i += kProbeThreads) {
      store_remote(address + 16u * static_cast<unsigned>(i),
                   probe_pattern(rank, i) + static_cast<unsigned>(round));
    }
  }
  cluster_barrier();
  const unsigned writer = (rank + blocks - distance % blocks) % blocks;
  for (int i = thread; i < p.vectors; i += kProbeThreads) {
    const unsigned value = probe_pattern(writer, i) + static_cast<unsigned>(p.rounds - 1);
    if (own[i].x != value || own[i].w != value) atomicAdd(p.errors, 1u);
  }
}

}  // namespace RNNTUNE_DEVICE_TEXT
}  // namespace rnntune::cuda
