// SPDX-License-Identifier: GPL-2.0-only
// All paths of a network, one behind the other in one table: a packet names the position of its
// path's first link, and finds the next one hop further on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/lossless_classes.h"

namespace railyard {

// A path of the fabric: the position of its first link in the network's table, and how many links
// it has. A path of no links leads nowhere.
struct PathRef {
  uint32_t first = 0;
  uint8_t hop_count = 0;
};

class PathTable {
 public:
  // Paths stay valid for the life of the table. Precondition: at most 255 links. Where `classes`
  // has several, the path's classes stand beside its links; `detour_hop` is that of
  // LosslessClasses::OfPath().
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
  // Has the cache ready for the link at this position.
  void Fetch(uint32_t position) const { __builtin_prefetch(&links_[position]); }

 private:
  std::vector<LinkId> links_;
  std::vector<uint8_t> classes_;  // where there are several, of each of links_
};

}  // namespace railyard
