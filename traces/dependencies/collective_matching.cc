// SPDX-License-Identifier: GPL-2.0-only
#include "traces/dependencies/collective_matching.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace railyard {
namespace {

bool IsCollective(CollectiveKind kind) {
  return kind != CollectiveKind::kCompute && !IsSendOrRecv(kind);
}

class CommunicatorMatcher {
 public:
  // `calls` are those of one communicator, in order on each rank.
  CommunicatorMatcher(const DependencyGraph& graph, const TraceCommunicator& communicator,
                      const std::vector<GraphPlace>& calls)
      : graph_(graph), communicator_(communicator) {
    for (const GlobalRank rank : communicator.ranks) {
      const bool repeats = !graph.repeats_another.empty() && graph.repeats_another[rank];
      if (!repeats) calls_of_[rank];
    }
    for (const GraphPlace place : calls) calls_of_[place.rank].push_back(place.operation);
  }

  void Run(std::vector<UnmatchedCollective>& unmatched) const {
    size_t shortest = SIZE_MAX;
    GlobalRank ends_first{};
    for (const auto& [rank, calls] : calls_of_) {
      if (calls.size() >= shortest) continue;
      shortest = calls.size();
      ends_first = rank;
    }
    size_t agreed = 0;
    std::string difference;
    while (agreed < shortest && Agree(agreed, difference)) ++agreed;
    for (const auto& [rank, calls] : calls_of_) {
      for (size_t i = agreed; i < calls.size(); ++i) {
        UnmatchedCollective& added = unmatched.emplace_back();
        added.place = {rank, calls[i]};
        if (agreed < shortest) {
          added.detail = i == agreed ? difference : "after a call on which the ranks disagree";
        } else {
          added.reason = CallDropReason::kIncompleteOnRank;
          added.detail = fmt::format("rank {} has only {} calls of group \"{}\"", ends_first,
                                     shortest, communicator_.name);
        }
      }
    }
  }

 private:
  const GraphOperation& At(GlobalRank rank, uint32_t operation) const {
    return graph_.ranks[rank][operation];
  }

  bool Agree(size_t n, std::string& difference) const {
    const auto& [first_rank, first_calls] = *calls_of_.begin();
    const GraphOperation& first = At(first_rank, first_calls[n]);
    for (const auto& [rank, calls] : calls_of_) {
      const GraphOperation& other = At(rank, calls[n]);
      if (other.kind == first.kind && other.count == first.count && other.root == first.root) {
        continue;
      }
      difference =
          fmt::format("call {} of group \"{}\": rank {} makes {}, rank {} {}", n + 1,
                      communicator_.name, first_rank, Described(first), rank, Described(other));
      return false;
    }
    return true;
  }

  static std::string Described(const GraphOperation& operation) {
    return fmt::format("{} of {} bytes from rank {}", ReportedKindName(operation.kind),
                       operation.stated_bytes, operation.root);
  }

  const DependencyGraph& graph_;
  const TraceCommunicator& communicator_;
  std::map<GlobalRank, std::vector<uint32_t>> calls_of_;  // by rank, which may have none
};

}  // namespace

std::vector<UnmatchedCollective> FindUnmatchedCollectives(const DependencyGraph& graph,
                                                          const std::vector<GraphPlace>& order) {
  std::vector<std::vector<GraphPlace>> calls(graph.communicators.size());
  for (const GraphPlace place : order) {
    const GraphOperation& operation = graph.ranks[place.rank][place.operation];
    if (IsCollective(operation.kind)) calls[operation.communicator].push_back(place);
  }
  std::vector<UnmatchedCollective> unmatched;
  for (size_t c = 0; c < calls.size(); ++c) {
    if (calls[c].empty()) continue;
    CommunicatorMatcher(graph, graph.communicators[c], calls[c]).Run(unmatched);
  }
  return unmatched;
}

}  // namespace railyard
