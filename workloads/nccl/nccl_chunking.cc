// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/nccl_chunking.h"

#include <cmath>

#include "workloads/nccl/nccl_versions.h"

namespace railyard {

SlotRule SlotRuleOf(Protocol protocol, const NcclSettings& settings) {
  switch (protocol) {
    case Protocol::kLl:
      return {32u << 10, 16, 8, 16};
    case Protocol::kLl128:
      return {576'000, 1'920, 120, 128};
    default:
      return {settings.buffsize_bytes / kSlots, 512, 1, 1};
  }
}

StepsRule StepsRuleOf(CollectiveKind kind, const ReplayChoice& choice) {
  if (choice.algorithm != Algorithm::kRing || choice.protocol != Protocol::kSimple ||
      kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce) {
    return {1, 1};
  }
  return {4, 2};
}

MessageRule MessageRuleOf(const StepsRule& steps, const SlotRule& slot, uint32_t element_bytes) {
  MessageRule rule;
  rule.slices_per_chunk = static_cast<uint32_t>(steps.slots_per_chunk / steps.slots_per_slice);
  if (slot.line_payload_bytes == 1) {
    // src/device/prims_simple.h: slices of 16 elements' multiples, at least a 32nd of a slot's.
    rule.slice_bytes_min = steps.slots_per_slice * slot.payload_bytes / 32;
    rule.slice_grain_bytes = 16ULL * element_bytes;
  }
  rule.in_flight_messages = static_cast<uint32_t>(kSlots / steps.slots_per_slice);
  rule.line_payload_bytes = slot.line_payload_bytes;
  rule.line_wire_bytes = slot.line_wire_bytes;
  return rule;
}

uint64_t TreeChunkBytes(uint64_t share_bytes, uint64_t slot_bytes, const TreeRule& rule) {
  uint64_t chunk_bytes = slot_bytes;
  const auto halve = [&](double chunks_min, uint64_t bytes_min) {
    // NCCL divides integers here, and says that it means to.
    const auto chunks = [&] {
      const uint64_t whole = share_bytes / chunk_bytes;
      return static_cast<double>(whole);
    };
    while (chunks() < chunks_min && chunk_bytes > bytes_min) chunk_bytes /= 2;
  };
  const double node_levels = std::floor(std::log2(rule.nodes));
  if (rule.protocol == Protocol::kLl128) {
    const double levels = 1 + node_levels + 0.1 * rule.ranks_per_node;
    halve(levels * 64 / rule.ranks_per_node, 128u << 10);
    halve(levels * 16 / rule.ranks_per_node, 32u << 10);
  } else if (rule.protocol == Protocol::kSimple && rule.version < kFirstWholeTreeChunksVersion) {
    // The depth that connectTrees() states (src/graph/connect.cc).
    const double depth = std::floor(rule.ranks_per_node) - 1 + node_levels;
    halve(depth * 8, 128u << 10);
    halve(depth * 4, 64u << 10);
    halve(depth, 32u << 10);
  }
  return chunk_bytes;
}

uint64_t PatChunkBytes(uint64_t slot_bytes, uint64_t all_bytes, CollectiveKind kind) {
  const uint64_t chunks = kind == CollectiveKind::kAllGather ? 32 : 16;
  uint64_t chunk_bytes = slot_bytes;
  while (chunk_bytes * chunks > all_bytes && chunk_bytes > 64u << 10) chunk_bytes /= 2;
  return chunk_bytes;
}

uint64_t CollnetChunkBytes(uint64_t chunk_bytes, const CollnetRounds& rounds) {
  const auto count = [&] { return rounds.bytes / (rounds.chunks * chunk_bytes); };
  while (count() < rounds.depth * 64 && chunk_bytes > 128u << 10) chunk_bytes /= 2;
  while (count() < rounds.depth * 8 && chunk_bytes > 64u << 10) chunk_bytes /= 2;
  while (count() < rounds.fewest && chunk_bytes > 32u << 10) chunk_bytes /= 2;
  return chunk_bytes;
}

uint64_t NvlsChunkBytes(uint64_t chunk_bytes, uint64_t bytes, uint64_t heads) {
  if (bytes < 64 * heads * chunk_bytes && chunk_bytes > 64u << 10) chunk_bytes = 64u << 10;
  if (bytes < 8 * heads * chunk_bytes && chunk_bytes > 32u << 10) chunk_bytes = 32u << 10;
  if (bytes < 2 * heads * chunk_bytes && chunk_bytes > 16u << 10) chunk_bytes = 16u << 10;
  return chunk_bytes;
}
uint64_t NvlsTreeChunkBytes(uint64_t chunk_bytes, uint64_t bytes, uint64_t heads) {
  if (bytes < 32 * heads * chunk_bytes && chunk_bytes > 256u << 10) chunk_bytes = 256u << 10;
  if (bytes < 16 * heads * chunk_bytes && chunk_bytes > 128u << 10) chunk_bytes = 128u << 10;
  if (bytes < 4 * heads * chunk_bytes && chunk_bytes > 64u << 10) chunk_bytes = 64u << 10;
  if (bytes < heads * chunk_bytes && chunk_bytes > 32u << 10) chunk_bytes = 32u << 10;
  return chunk_bytes;
}

}  // namespace railyard
