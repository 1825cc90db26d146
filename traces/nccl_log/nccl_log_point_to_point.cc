// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_point_to_point.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

namespace railyard {
namespace {

void CutTo(const std::vector<uint32_t>& indices, size_t length, uint32_t peer, PlacedCalls& calls) {
  if (std::binary_search(calls.missing().begin(), calls.missing().end(), peer)) return;
  for (size_t i = length; i < indices.size(); ++i) {
    calls.Drop(indices[i], CallDropReason::kIncompleteOnRank,
               fmt::format("incomplete on rank {}", peer));
  }
}

bool HasPointToPoint(const PlacedCalls& calls) {
  for (uint32_t i = 0; i < calls.size(); ++i) {
    if (IsP2p(calls[i])) return true;
  }
  return false;
}

}  // namespace

void CutPointToPoint(PlacedCalls& calls) {
  struct Direction {
    std::vector<uint32_t> sends;
    std::vector<uint32_t> receives;
  };
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Direction> directions;
  for (const std::vector<uint32_t>& of_rank : calls.by_rank()) {
    for (const uint32_t i : of_rank) {
      const LoggedCall& call = calls[i];
      if (!IsP2p(call) || call.dropped) continue;
      const uint32_t g = calls.CommunicatorOf(call);
      const uint32_t self = calls.CommunicatorRankOf(call);
      if (call.kind == CollectiveKind::kSend) {
        directions[{g, self, call.root_or_peer}].sends.push_back(i);
      } else {
        directions[{g, call.root_or_peer, self}].receives.push_back(i);
      }
    }
  }
  for (auto& [key, direction] : directions) {
    const auto& [g, from, to] = key;
    const JoinedCommunicator& communicator = calls.placement().communicators[g];
    if (communicator.ranks.empty()) continue;
    const size_t pairs = std::min(direction.sends.size(), direction.receives.size());
    CutTo(direction.sends, pairs, communicator.ranks[to], calls);
    CutTo(direction.receives, pairs, communicator.ranks[from], calls);
  }
}

std::vector<uint32_t> GroupPointToPoint(const PlacedCalls& calls, ImportReport& report) {
  std::vector<uint32_t> group_of(calls.size(), 0);
  if (!HasPointToPoint(calls)) return group_of;
  std::set<uint32_t> counting;  // handles whose opCount changes
  std::unordered_map<uint32_t, uint64_t> op_count_of;
  for (uint32_t i = 0; i < calls.size(); ++i) {
    const LoggedCall& call = calls[i];
    const auto [entry, is_new] = op_count_of.try_emplace(call.handle, call.op_count);
    if (!is_new && entry->second != call.op_count) counting.insert(call.handle);
  }
  uint64_t guessed = 0;
  for (const std::vector<uint32_t>& of_rank : calls.by_rank()) {
    uint32_t group = 0;
    std::vector<uint32_t> members;
    int64_t balance = 0;  // sends minus receives
    const auto close = [&] {
      if (members.size() > 1) {
        ++group;
        for (const uint32_t i : members) group_of[i] = group;
      }
      members.clear();
      balance = 0;
    };
    for (const uint32_t i : of_rank) {
      const LoggedCall& call = calls[i];
      if (call.dropped) continue;
      if (!IsP2p(call)) {
        close();
        continue;
      }
      if (!members.empty()) {
        const LoggedCall& first = calls[members.front()];
        const bool same = first.handle == call.handle && first.stream == call.stream &&
                          first.op_count == call.op_count;
        const bool again = same && balance == 0 && !counting.contains(call.handle) &&
                           first.kind == call.kind && first.root_or_peer == call.root_or_peer;
        guessed += again ? 1 : 0;
        if (!same || again) close();
      }
      members.push_back(i);
      balance += call.kind == CollectiveKind::kSend ? 1 : -1;
    }
    close();
  }
  if (guessed > 0) {
    report.assumed.push_back(
        fmt::format("{} groups of Send and Recv end where their first call comes again: their "
                    "opCount never changes",
                    guessed));
  }
  return group_of;
}

}  // namespace railyard
