// SPDX-License-Identifier: GPL-2.0-only
#include "traces/transform/trace_diff.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace railyard {
namespace {

const TraceCommunicator& CommunicatorOf(const Trace& trace, GlobalRank rank,
                                        const TraceOperation& operation) {
  return trace.communicators[trace.CommunicatorOf(rank, operation.communicator)];
}

std::string NameOf(const Trace& trace, GlobalRank rank, const TraceOperation& operation) {
  std::string name(CollectiveKindName(operation.kind));
  if (operation.kind != CollectiveKind::kCompute) {
    const size_t size = CommunicatorOf(trace, rank, operation).ranks.size();
    name += fmt::format(" of {} {} on {} ranks", operation.count, DatatypeName(operation.datatype),
                        size);
  }
  return fmt::format("{}, gap {} ps, stream {}", name, operation.compute_before_ps,
                     operation.stream);
}

// Returns the names of the fields in which two operations differ and that NameOf() does not show.
std::vector<std::string_view> OtherFields(const TraceOperation& x, const TraceOperation& y) {
  std::vector<std::string_view> names;
  const auto add = [&](bool differs, std::string_view name) {
    if (differs) names.push_back(name);
  };
  add(x.root != y.root, "root");
  add(x.peer != y.peer, "peer");
  add(x.group != y.group, "group");
  add(x.all_to_all != y.all_to_all || x.expert != y.expert, "AllToAllv");
  add(x.loss_tolerance_ppm != y.loss_tolerance_ppm, "loss tolerance");
  add(x.measured_ps != y.measured_ps, "measured duration");
  add(x.after != y.after, "operation waited for");
  add(x.algorithm != y.algorithm, "algorithm");
  add(x.protocol != y.protocol, "protocol");
  add(x.begins_iteration != y.begins_iteration, "beginning of an iteration");
  add(x.in_place != y.in_place, "in-place buffer");
  return names;
}

// Tells which communicator of one trace is which of the other, by the calls that have been
// compared.
class SameCommunicators {
 public:
  SameCommunicators(const Trace& a, const Trace& b) : a_(a), b_(b) {}

  // Returns in what they differ; empty if they may be the same.
  std::string_view Compare(GlobalRank rank, const TraceOperation& x, const TraceOperation& y) {
    if (x.kind == CollectiveKind::kCompute || y.kind == CollectiveKind::kCompute) return {};
    const TraceCommunicator& first = CommunicatorOf(a_, rank, x);
    const TraceCommunicator& second = CommunicatorOf(b_, rank, y);
    if (first.ranks != second.ranks) return "ranks of the communicator";
    if (first.rings != second.rings || first.tree_parents != second.tree_parents) {
      return "rings or trees of the communicator";
    }
    const uint32_t number = a_.CommunicatorOf(rank, x.communicator);
    const uint32_t other = b_.CommunicatorOf(rank, y.communicator);
    const bool is_same = other_of_.try_emplace(number, other).first->second == other &&
                         first_of_.try_emplace(other, number).first->second == number;
    return is_same ? std::string_view() : "communicator";
  }

 private:
  const Trace& a_;
  const Trace& b_;
  std::map<uint32_t, uint32_t> other_of_;
  std::map<uint32_t, uint32_t> first_of_;
};

bool IsSame(const TraceOperation& x, TraceOperation y) {
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
  SameCommunicators communicators(a, b);
  for (GlobalRank rank{0}; rank < std::min(a.rank_count, b.rank_count); ++rank) {
    const auto& x = a.operations[rank];
    const auto& y = b.operations[rank];
    if (x.size() != y.size()) {
      add(fmt::format("rank {}: {} operations and {}", rank, x.size(), y.size()));
    }
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      const std::string_view of_communicator = communicators.Compare(rank, x[i], y[i]);
      if (of_communicator.empty() && IsSame(x[i], y[i])) continue;
      const std::string first = NameOf(a, rank, x[i]);
      const std::string second = NameOf(b, rank, y[i]);
      std::vector<std::string_view> others = OtherFields(x[i], y[i]);
      if (!of_communicator.empty()) others.push_back(of_communicator);
      add(fmt::format("rank {}, operation {}: {}; {}{}{}", rank, i, first, second,
                      others.empty() ? "" : "; they differ in: ", fmt::join(others, ", ")));
      break;
    }
  }
  return differences;
}

}  // namespace railyard
