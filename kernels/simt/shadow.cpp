// SPDX-License-Identifier: Apache-2.0
#include "simt/shadow.hpp"

namespace rnntune::simt {
namespace {

constexpr int kWarpLanes = 32;

bool conflict(const Record& a, const Record& b) {
  if ((a.bytes & b.bytes) == 0) return false;
  return a.access != b.access || a.access == Access::write;
}

// Keeps `now` among the records. Of one kind and the same bytes two are enough. One that is ordered
// before `now` gives way: what comes later and races with it races with `now` too, unless it is of
// another block. Where both race with `now`, they stand for it within a block; so that they do for
// every block, the two should be of two blocks.
void keep(std::vector<Record>& records, const Record& now) {
  Record* first = nullptr;
  Record* second = nullptr;
  for (Record& record : records) {
    if (record.access != now.access || record.bytes != now.bytes) continue;
    if (ordered(record, now)) {
      record = now;
      return;
    }
    (first ? second : first) = &record;
  }
  if (!second) {
    records.push_back(now);
  } else if (first->block == second->block && now.block != first->block) {
    *second = now;
  }
}

}  // namespace

bool ordered(const Record& earlier, const Record& later) {
  if (earlier.block != later.block) return earlier.grid_interval != later.grid_interval;
  if (earlier.thread == later.thread || earlier.interval != later.interval) return true;
  return earlier.thread / kWarpLanes == later.thread / kWarpLanes &&
         earlier.warp_interval != later.warp_interval;
}

Shadow::Records& Shadow::records(std::uintptr_t granule) {
  const std::uintptr_t number = granule / kPageGranules;
  if (!last_page_ || number != last_number_) {
    std::unique_ptr<Page>& page = pages_[number];
    if (!page) page = std::make_unique<Page>();
    last_page_ = page.get();
    last_number_ = number;
  }
  return (*last_page_)[granule % kPageGranules];
}

const Record* Shadow::add(std::uintptr_t granule, const Record& now) {
  Records& known = records(granule);
  const Record* race = nullptr;
  for (const Record& record : known) {
    if (conflict(record, now) && !ordered(record, now)) {
      race_ = record;
      race = &race_;
      break;
    }
  }
  keep(known, now);
  return race;
}

void Shadow::forget(std::uintptr_t begin, std::size_t bytes) {
  for (std::uintptr_t at = begin / kGranule; at * kGranule < begin + bytes; ++at) {
    records(at).clear();
  }
}

void Shadow::clear() {
  pages_.clear();
  last_page_ = nullptr;
}

}  // namespace rnntune::simt
