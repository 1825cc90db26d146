// SPDX-License-Identifier: GPL-2.0-only
#include "traces/chakra/chakra_node_ids.h"

#include <algorithm>

namespace railyard {

std::optional<uint64_t> ChakraNodeIds::Add(uint64_t id) {
  places_.emplace_back(id, static_cast<uint32_t>(places_.size()));
  if (places_.size() < check_at_) return std::nullopt;
  check_at_ *= 2;
  return Sort();
}

std::optional<uint64_t> ChakraNodeIds::Sort() {
  if (!std::is_sorted(places_.begin(), places_.end())) std::sort(places_.begin(), places_.end());
  const auto twice = std::adjacent_find(places_.begin(), places_.end(),
                                        [](auto a, auto b) { return a.first == b.first; });
  return twice == places_.end() ? std::nullopt : std::optional(twice->first);
}

std::optional<uint32_t> ChakraNodeIds::Find(uint64_t id) const {
  if (places_.empty() || id < places_.front().first) return std::nullopt;
  const uint64_t distance = id - places_.front().first;
  if (distance < places_.size() && places_[distance].first == id) return places_[distance].second;
  const auto at = std::lower_bound(places_.begin(), places_.end(), std::pair(id, uint32_t{0}));
  return at == places_.end() || at->first != id ? std::nullopt : std::optional(at->second);
}

}  // namespace railyard
