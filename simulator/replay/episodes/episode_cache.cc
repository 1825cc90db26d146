// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/episodes/episode_cache.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "simulator/units/mix64.h"

namespace railyard {

uint32_t EpisodeCache::NumberOf(StateSnapshot state) {
  const auto [first, last] = numbers_.equal_range(state.hash);
  for (auto it = first; it != last; ++it) {
    if (states_[it->second] == state) return it->second;
  }
  if (!Reserve(state.values.size() * sizeof(state.values.front()))) return kStateUnknown;
  const auto number = static_cast<uint32_t>(states_.size());
  numbers_.emplace(state.hash, number);
  state.values.shrink_to_fit();
  states_.push_back(std::move(state));
  return number;
}

uint64_t EpisodeCache::BytesMaxOf(uint64_t calls, bool keep_paths) {
  return kBytesMax + BytesOfOperations(calls, keep_paths) / 2;
}

uint64_t EpisodeCache::BytesOfOperations(uint64_t operations, bool has_paths) {
  const uint64_t bytes = sizeof(EpisodeOperation) + sizeof(Episode::end_order.front());
  return operations * (has_paths ? bytes + sizeof(EpisodePath) : bytes);
}

uint32_t EpisodeCache::Add(Episode episode) {
  if (!Reserve(BytesOfOperations(episode.operations.size(), !episode.paths.empty()) +
               episode.rests_ps.size() * sizeof(episode.rests_ps.front()) +
               (episode.changes.size() + episode.changes_after_end.size()) *
                   sizeof(episode.changes.front()))) {
    return kStateUnknown;
  }
  episode.end_order.resize(episode.operations.size());
  std::iota(episode.end_order.begin(), episode.end_order.end(), 0u);
  std::stable_sort(episode.end_order.begin(), episode.end_order.end(), [&](uint32_t a, uint32_t b) {
    return episode.operations[a].end_ps < episode.operations[b].end_ps;
  });
  const EpisodeOperation& first = episode.operations.front();
  by_key_[KeyOf(episode.begin_state, first.place, first.plan)].push_back(
      static_cast<uint32_t>(episodes_.size()));
  episodes_.push_back(std::move(episode));
  return static_cast<uint32_t>(episodes_.size() - 1);
}

std::vector<uint32_t>& EpisodeCache::Find(uint32_t state, EpisodePlace place, uint32_t plan) {
  return by_key_[KeyOf(state, place, plan)];
}

bool EpisodeCache::Reserve(uint64_t bytes) {
  if (bytes > bytes_max_ - bytes_) return false;
  bytes_ += bytes;
  return true;
}

uint64_t EpisodeCache::KeyOf(uint32_t state, EpisodePlace place, uint32_t plan) {
  // Keys may collide; the contents are compared.
  return Mix64(Mix64(uint64_t{state} << 32 | place) ^ plan);
}

}  // namespace railyard
