// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/p2p_order.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "simulator/units/divide_up.h"

namespace railyard {
namespace {

uint32_t ReverseBits(uint32_t value, uint32_t bit_count) {
  uint32_t reversed = 0;
  for (uint32_t bit = 0; bit < bit_count; ++bit) {
    reversed = reversed << 1 | (value >> bit & 1);
  }
  return reversed;
}

}  // namespace

P2pOrder::P2pOrder(const CommunicatorLayout& layout, uint32_t version, uint32_t channel_count)
    : version_(version),
      channel_count_(channel_count),
      node_count_(layout.node_count()),
      place_(layout.ranks.size()) {
  MakeGroups(layout);
  OrderGroups();
}

// From 2.28 on groups have eight ranks of a node, or the greatest common divisor of eight and all
// node sizes. Before, the nodes are the groups, or all ranks are one group if node sizes differ.
void P2pOrder::MakeGroups(const CommunicatorLayout& layout) {
  const uint32_t rank_count = static_cast<uint32_t>(layout.ranks.size());
  std::vector<std::vector<RankIndex>> nodes(node_count_);
  for (RankIndex rank{0}; rank < rank_count; ++rank) {
    nodes[layout.ranks[rank].node].push_back(rank);
  }
  uint32_t node_ranks_max = 0;
  bool uniform = true;
  for (const auto& ranks : nodes) {
    node_ranks_max = std::max(node_ranks_max, static_cast<uint32_t>(ranks.size()));
    uniform = uniform && ranks.size() == nodes.front().size();
  }
  if (version_ >= 22800) {
    group_size_ = kWorksPerBatch;
    for (const auto& ranks : nodes) {
      group_size_ = std::gcd(group_size_, static_cast<uint32_t>(ranks.size()));
    }
    base_group_size_ = group_size_;
  } else {
    group_size_ = uniform ? node_ranks_max : rank_count;
    base_group_size_ = node_ranks_max;
  }
  std::vector<RankIndex> member;  // [group * group_size_ + local] → rank
  member.reserve(rank_count);
  if (version_ < 22800 && !uniform) {
    for (RankIndex rank{0}; rank < rank_count; ++rank) member.push_back(rank);
  } else {
    for (const auto& ranks : nodes) member.insert(member.end(), ranks.begin(), ranks.end());
  }
  for (uint32_t i = 0; i < rank_count; ++i) {
    place_[member[i]] = {i / group_size_, i % group_size_};
  }
}

// Group deltas are the triangular numbers modulo a power of two, which visit each residue once.
void P2pOrder::OrderGroups() {
  const uint32_t group_count = static_cast<uint32_t>(place_.size()) / group_size_;
  const uint32_t modulus = std::bit_ceil(group_count);
  place_of_delta_.resize(group_count);
  uint32_t delta = 0;
  uint32_t place = 0;
  for (uint32_t i = 0; i < modulus; ++i) {
    delta = (delta + i) & (modulus - 1);
    if (delta < group_count) place_of_delta_[delta] = place++;
  }
}

uint32_t P2pOrder::RoundOf(RankIndex from, RankIndex to) const {
  const uint32_t group_count = static_cast<uint32_t>(place_of_delta_.size());
  const Place& a = place_[from];
  const Place& b = place_[to];
  const uint32_t group_delta = (b.group + group_count - a.group) % group_count;
  const uint32_t local_delta = (b.local + group_size_ - a.local) % group_size_;
  return place_of_delta_[group_delta] * group_size_ + local_delta;
}

uint32_t P2pOrder::ChannelOfPart(uint32_t round, uint32_t part) const {
  uint32_t base = round;
  if (node_count_ > 1) {
    const auto channels_per_group =
        static_cast<uint32_t>(DivideUp(base_group_size_, kWorksPerBatch));
    base =
        round / base_group_size_ * channels_per_group + round % base_group_size_ / kWorksPerBatch;
  }
  const uint32_t mask = channel_count_ - 1;
  const uint32_t bit_count = static_cast<uint32_t>(std::popcount(mask));
  // Neighbouring rounds (from 2.29) or parts (before) are spread over the channels.
  if (version_ >= 22900) return (ReverseBits(base & mask, bit_count) + part) & mask;
  return (base + ReverseBits(part, bit_count)) & mask;
}

}  // namespace railyard
