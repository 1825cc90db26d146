// SPDX-License-Identifier: GPL-2.0-only
#include "traces/chakra/chakra_node.h"

#include <iterator>
#include <utility>

#include "simulator/diagnostics/check.h"

namespace railyard {
namespace {

constexpr std::pair<uint64_t, CollectiveKind> kKinds[] = {
    {0, CollectiveKind::kAllReduce},     {1, CollectiveKind::kReduce},
    {2, CollectiveKind::kAllGather},     {3, CollectiveKind::kGather},
    {4, CollectiveKind::kScatter},       {5, CollectiveKind::kBroadcast},
    {6, CollectiveKind::kAllToAll},      {7, CollectiveKind::kReduceScatter},
    {8, CollectiveKind::kReduceScatter},  // REDUCE_SCATTER_BLOCK, whose blocks are equal
};

}  // namespace

std::optional<CollectiveKind> ChakraKindOf(uint64_t comm_type) {
  for (const auto& [number, kind] : kKinds) {
    if (number == comm_type) return kind;
  }
  return std::nullopt;
}

uint64_t ChakraCommType(CollectiveKind kind) {
  for (const auto& [number, known] : kKinds) {
    if (known == kind) return number;
  }
  SIM_CHECK(false, "the kind has no number in Chakra");
  return 0;
}

}  // namespace railyard
