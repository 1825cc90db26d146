// SPDX-License-Identifier: GPL-2.0-only
// Stores all paths of a network in one table, one after the other. A packet contains the position
// of its path's first link; its next link is one position further for each hop.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/lossless_classes.h"

namespace railyard {

// Refers to a path of the fabric by the position of its first link in the network's table and its
// number of links. A path without links leads nowhere.
struct PathRef {
  uint32_t first = 0;
  uint8_t hop_count = 0;
};

class PathTable {
 public:
  // Adds a path, which stays valid for the life of the table. With several lossless `classes`, the
  // path's classes are stored beside its links; `detour_hop` is that of LosslessClasses::OfPath().
  // Precondition: at most 255 links.
  PathRef Add(const std::vector<LinkId>& links, std::optional<uint32_t> detour_hop,
              const LosslessClasses& classes);

  LinkId LinkAt(uint32_t position) const { return links_[position]; }
  // Precondition: there are several lossless classes.
  uint8_t ClassAt(uint32_t position) const { return classes_[position]; }
  LinkId LinkOf(PathRef path, uint32_t hop) const { return links_[path.first + hop]; }
  std::vector<LinkId> LinksOf(PathRef path) const {
    const auto first = links_.begin() + path.first;
    return {first, first + path.hop_count};
  }
  // Prefetches the link at this position.
  void Fetch(uint32_t position) const { __builtin_prefetch(&links_[position]); }

 private:
  std::vector<LinkId> links_;
  std::vector<uint8_t> classes_;  // by position; empty unless there are several classes
};

}  // namespace railyard
