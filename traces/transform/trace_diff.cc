// SPDX-License-Identifier: GPL-2.0-only
#include "traces/transform/trace_diff.h"

#include <algorithm>

#include <fmt/format.h>

namespace railyard {
namespace {

const TraceCommunicator& CommunicatorOf(const Trace& trace, uint32_t rank,
                                        const TraceOperation& operation) {
  return trace.communicators[trace.CommunicatorOf(rank, operation.communicator)];
}

std::string NameOf(const Trace& trace, uint32_t rank, const TraceOperation& operation) {
  std::string name(CollectiveKindName(operation.kind));
  if (operation.kind != CollectiveKind::kCompute) {
    const size_t size = CommunicatorOf(trace, rank, operation).ranks.size();
    name += fmt::format(" of {} {} on {} ranks", operation.count, DatatypeName(operation.datatype),
                        size);
  }
  return fmt::format("{}, gap {} ps, stream {}", name, operation.compute_before_ps,
                     operation.stream);
}

bool IsSame(const Trace& a, const Trace& b, uint32_t rank, TraceOperation x, TraceOperation y) {
  if (x.kind != CollectiveKind::kCompute && y.kind != CollectiveKind::kCompute &&
      CommunicatorOf(a, rank, x).ranks != CommunicatorOf(b, rank, y).ranks) {
    return false;
  }
  y.communicator = x.communicator;
  y.source_file = x.source_file;
  y.source_line = x.source_line;
  return x == y;
}

}  // namespace

TraceDifferences DiffTraces(const Trace& a, const Trace& b) {
  TraceDifferences differences;
  const auto add = [&](std::string text) {
    ++differences.count;
    if (differences.first.size() < kDifferencesShown) differences.first.push_back(std::move(text));
  };
  if (a.rank_count != b.rank_count) {
    add(fmt::format("{} ranks and {}", a.rank_count, b.rank_count));
  }
  for (uint32_t rank = 0; rank < std::min(a.rank_count, b.rank_count); ++rank) {
    const auto& x = a.operations[rank];
    const auto& y = b.operations[rank];
    if (x.size() != y.size()) {
      add(fmt::format("rank {}: {} operations and {}", rank, x.size(), y.size()));
    }
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (IsSame(a, b, rank, x[i], y[i])) continue;
      add(fmt::format("rank {}, operation {}: {}; {}", rank, i, NameOf(a, rank, x[i]),
                      NameOf(b, rank, y[i])));
      break;
    }
  }
  return differences;
}

}  // namespace railyard
