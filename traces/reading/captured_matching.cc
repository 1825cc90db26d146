// SPDX-License-Identifier: GPL-2.0-only
#include "traces/reading/captured_matching.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace railyard {
namespace {

// The calls of one rank in one group, in order.
struct RankCalls {
  uint32_t rank = 0;
  uint32_t communicator_rank = 0;
  std::vector<CapturedCall*> calls;
};

bool HasParts(const CapturedCall& call) { return !call.sends.empty(); }

// All parts of the call are of `count` elements, which it is set to.
bool HasEqualParts(const CapturedCall& call, uint64_t& count) {
  if (!HasParts(call)) {
    count = call.operation.count;
    return true;
  }
  count = call.sends.front();
  const auto is_equal = [&](uint64_t part) { return part == count; };
  return std::all_of(call.sends.begin(), call.sends.end(), is_equal) &&
         std::all_of(call.receives.begin(), call.receives.end(), is_equal);
}

class GroupMatcher {
 public:
  GroupMatcher(const CapturedGroup& group, std::vector<RankCalls> ranks, ImportReport& report)
      : group_(group), ranks_(std::move(ranks)), report_(report) {}

  void Run() {
    if (AllHaveIdentities()) {
      KeepCommonIdentities();
      // The calls behind one on which ranks disagree are known by their own identities.
      for (size_t n = 0; n < ranks_.front().calls.size(); ++n) {
        if (!Agree(n)) DropOnAllRanks(n, CallDropReason::kRanksDisagree, disagreement_);
      }
      return;
    }
    size_t shortest = SIZE_MAX;
    uint32_t ends_first = 0;
    for (const RankCalls& of_rank : ranks_) {
      if (of_rank.calls.size() >= shortest) continue;
      shortest = of_rank.calls.size();
      ends_first = of_rank.rank;
    }
    size_t agreed = 0;
    while (agreed < shortest && Agree(agreed)) ++agreed;
    for (const RankCalls& of_rank : ranks_) {
      for (size_t i = agreed; i < of_rank.calls.size(); ++i) {
        if (agreed < shortest) {
          Drop(*of_rank.calls[i], CallDropReason::kRanksDisagree,
               i == agreed ? disagreement_ : "after a call on which the ranks disagree");
        } else {
          Drop(*of_rank.calls[i], CallDropReason::kIncompleteOnRank,
               fmt::format("rank {} has only {} calls of group \"{}\"", ends_first, shortest,
                           group_.name));
        }
      }
    }
  }

 private:
  void Drop(CapturedCall& call, CallDropReason reason, std::string detail) {
    DropCapturedCall(call, reason, std::move(detail), report_);
  }

  bool AllHaveIdentities() const {
    for (const RankCalls& of_rank : ranks_) {
      for (const CapturedCall* call : of_rank.calls) {
        if (call->identity == 0) return false;
      }
    }
    return true;
  }

  void KeepCommonIdentities() {
    std::map<uint64_t, size_t> ranks_with;
    for (RankCalls& of_rank : ranks_) {
      std::set<uint64_t> seen;
      for (CapturedCall* call : of_rank.calls) {
        if (seen.insert(call->identity).second) {
          ++ranks_with[call->identity];
        } else {
          Drop(*call, CallDropReason::kRecordedTwice, "");
        }
      }
    }
    for (RankCalls& of_rank : ranks_) {
      for (CapturedCall* call : of_rank.calls) {
        if (!call->dropped && ranks_with[call->identity] < ranks_.size()) {
          Drop(*call, CallDropReason::kIncompleteOnRank,
               fmt::format("{} of {} captured ranks of group \"{}\" have it",
                           ranks_with[call->identity], ranks_.size(), group_.name));
        }
      }
      std::erase_if(of_rank.calls, [](const CapturedCall* call) { return call->dropped; });
    }
  }

  // Returns whether the n-th call is one collective on all ranks. If so, an AllToAll becomes one of
  // equal parts or of stated ones, or is dropped on all ranks if they do not state its parts alike.
  bool Agree(size_t n) {
    const TraceOperation& first = ranks_.front().calls[n]->operation;
    bool has_equal_parts = true;
    bool has_unknown_parts = false;
    uint64_t common = 0;
    for (const RankCalls& of_rank : ranks_) {
      const CapturedCall& call = *of_rank.calls[n];
      const TraceOperation& operation = call.operation;
      uint64_t count = 0;
      has_equal_parts = HasEqualParts(call, count) && has_equal_parts;
      if (&of_rank == &ranks_.front()) common = count;
      has_equal_parts = has_equal_parts && count == common;
      has_unknown_parts = has_unknown_parts || call.has_unknown_parts;
      if (operation.kind != first.kind || operation.root != first.root ||
          operation.datatype != first.datatype ||
          (operation.kind != CollectiveKind::kAllToAll && operation.count != first.count)) {
        return Disagree(first, of_rank.rank, operation);
      }
    }
    if (first.kind != CollectiveKind::kAllToAll) return true;
    const auto has_parts = [n](const RankCalls& rank) { return HasParts(*rank.calls[n]); };
    if (has_equal_parts && !has_unknown_parts) {
      for (const RankCalls& of_rank : ranks_) SetEqualParts(*of_rank.calls[n], common);
    } else if (has_unknown_parts || std::ranges::none_of(ranks_, has_parts)) {
      DropOnAllRanks(n, CallDropReason::kSizesNotRecorded,
                     "an AllToAll of unequal parts, which are not listed");
    } else if (!AgreeOnParts(n)) {
      DropOnAllRanks(n, CallDropReason::kRanksDisagree, disagreement_);
    }
    return true;
  }

  void DropOnAllRanks(size_t n, CallDropReason reason, const std::string& detail) {
    for (const RankCalls& of_rank : ranks_) Drop(*of_rank.calls[n], reason, detail);
  }

  bool Disagree(const TraceOperation& first, uint32_t rank, const TraceOperation& other) {
    const auto described = [](const TraceOperation& operation) {
      return fmt::format("{} of {} {} from rank {}", ReportedKindName(operation.kind),
                         operation.count, DatatypeName(operation.datatype), operation.root);
    };
    disagreement_ = fmt::format("rank {} makes {}, rank {} {}", ranks_.front().rank,
                                described(first), rank, described(other));
    return false;
  }

  static void SetEqualParts(CapturedCall& call, uint64_t count) {
    call.operation.count = count;
    call.sends.clear();
    call.receives.clear();
  }

  // Returns true if every part that a rank sends equals the part that its receiver states.
  bool AgreeOnParts(size_t n) {
    for (const RankCalls& of_rank : ranks_) {
      CapturedCall& call = *of_rank.calls[n];
      if (!HasParts(call)) {
        call.sends.assign(group_.size, call.operation.count);
        call.receives = call.sends;
      }
    }
    for (const RankCalls& from : ranks_) {
      for (const RankCalls& to : ranks_) {
        const uint64_t sent = from.calls[n]->sends[to.communicator_rank];
        const uint64_t received = to.calls[n]->receives[from.communicator_rank];
        if (sent == received) continue;
        disagreement_ = fmt::format("rank {} sends {} elements to rank {}, which receives {}",
                                    from.rank, sent, to.rank, received);
        return false;
      }
    }
    ++exchanges_;
    for (const RankCalls& of_rank : ranks_) {
      of_rank.calls[n]->operation.all_to_all = exchanges_;
      if (ranks_.size() == group_.size) continue;
      Drop(*of_rank.calls[n], CallDropReason::kRanksMissing,
           "an AllToAll of unequal parts, from which the parts of missing ranks do not follow");
    }
    return true;
  }

  const CapturedGroup& group_;
  std::vector<RankCalls> ranks_;
  ImportReport& report_;
  std::string disagreement_;
  uint32_t exchanges_ = 0;
};

// Drops the first calls of the side that has more of those that have ended: they are before the
// window in which the other side was captured.
void AlignEnds(std::vector<CapturedCall*>& sends, std::vector<CapturedCall*>& receives,
               ImportReport& report) {
  const auto is_placed = [](const CapturedCall* call) { return call->is_reconstructed; };
  if (std::ranges::any_of(sends, is_placed) || std::ranges::any_of(receives, is_placed)) return;
  const auto ended = [](const std::vector<CapturedCall*>& calls) {
    size_t count = calls.size();
    while (count > 0 && calls[count - 1]->is_unfinished) --count;
    return count;
  };
  const size_t sent = ended(sends);
  const size_t received = ended(receives);
  std::vector<CapturedCall*>& more = sent > received ? sends : receives;
  const auto first = more.begin() + static_cast<std::ptrdiff_t>(std::max(sent, received) -
                                                                std::min(sent, received));
  for (auto call = more.begin(); call != first; ++call) {
    DropCapturedCall(**call, CallDropReason::kIncompleteOnRank,
                     "the capture of its peer begins after it", report);
  }
  more.erase(more.begin(), first);
}

// Sends of one rank to another and its Recvs are matched in order.
void MatchPointToPoint(const CapturedJob& job, const std::vector<RankCalls>& ranks,
                       ImportReport& report) {
  using Pair = std::pair<uint32_t, uint32_t>;  // communicator ranks of sender and receiver
  std::map<Pair, std::pair<std::vector<CapturedCall*>, std::vector<CapturedCall*>>> calls_of;
  std::set<uint32_t> captured;
  std::set<uint32_t> windows;
  for (const RankCalls& of_rank : ranks) {
    captured.insert(of_rank.communicator_rank);
    if (job.IsWindow(of_rank.rank)) windows.insert(of_rank.communicator_rank);
    for (CapturedCall* call : of_rank.calls) {
      const uint32_t self = of_rank.communicator_rank;
      if (call->operation.kind == CollectiveKind::kSend) {
        calls_of[{self, call->operation.peer}].first.push_back(call);
      } else {
        calls_of[{call->operation.peer, self}].second.push_back(call);
      }
    }
  }
  for (auto& [pair, calls] : calls_of) {
    if (!captured.contains(pair.first) || !captured.contains(pair.second)) continue;
    auto& [sends, receives] = calls;
    if (windows.contains(pair.first) || windows.contains(pair.second)) {
      AlignEnds(sends, receives, report);
    }
    const size_t both = std::min(sends.size(), receives.size());
    size_t agreed = 0;
    while (agreed < both && sends[agreed]->operation.count == receives[agreed]->operation.count &&
           sends[agreed]->operation.datatype == receives[agreed]->operation.datatype) {
      ++agreed;
    }
    for (const auto* side : {&sends, &receives}) {
      for (size_t i = agreed; i < side->size(); ++i) {
        const bool disagrees = agreed < both;
        DropCapturedCall(
            *(*side)[i],
            disagrees ? CallDropReason::kRanksDisagree : CallDropReason::kIncompleteOnRank,
            disagrees ? "what is sent is not what is received" : "its peer has no such call",
            report);
      }
    }
  }
}

}  // namespace

uint32_t CommunicatorRankIn(const CapturedGroup& group, uint32_t rank) {
  // Most groups list their ranks without a gap.
  if (!group.ranks.empty() && rank >= group.ranks.front()) {
    const uint32_t guess = rank - group.ranks.front();
    if (guess < group.ranks.size() && group.ranks[guess] == rank) return guess;
  }
  const auto found = std::find(group.ranks.begin(), group.ranks.end(), rank);
  return found == group.ranks.end() ? kNotAMember
                                    : static_cast<uint32_t>(found - group.ranks.begin());
}

void DropCapturedCall(CapturedCall& call, CallDropReason reason, std::string detail,
                      ImportReport& report) {
  if (call.dropped) return;
  call.dropped = true;
  if (call.operation.kind == CollectiveKind::kCompute || call.is_reconstructed) return;
  report.Drop(reason, call.operation.source_file, call.operation.source_line, std::move(detail));
}

bool MatchCapturedCalls(CapturedJob& job, bool silent_ranks_repeat, ImportReport& report) {
  bool has_silent_ranks = false;
  // By group: its captured ranks in order of rank, whether they have calls or not.
  std::vector<std::vector<RankCalls>> collectives(job.groups().size());
  std::vector<std::vector<RankCalls>> point_to_point(job.groups().size());
  std::map<std::pair<uint32_t, uint32_t>, size_t> index_of;  // by group and rank
  for (uint32_t g = 0; g < job.groups().size(); ++g) {
    const std::vector<uint32_t>& ranks = job.groups()[g].ranks;
    for (uint32_t r = 0; r < ranks.size(); ++r) {
      if (!job.calls().contains(ranks[r])) continue;
      index_of[{g, ranks[r]}] = collectives[g].size();
      collectives[g].push_back({.rank = ranks[r], .communicator_rank = r, .calls = {}});
    }
    point_to_point[g] = collectives[g];
  }
  for (auto& [rank, calls] : job.calls()) {
    for (CapturedCall& call : calls) {
      const CollectiveKind kind = call.operation.kind;
      if (call.dropped || kind == CollectiveKind::kCompute) continue;
      const uint32_t g = call.operation.communicator;
      (IsSendOrRecv(kind) ? point_to_point : collectives)[g][index_of.at({g, rank})]
          .calls.push_back(&call);
    }
  }
  for (uint32_t g = 0; g < collectives.size(); ++g) {
    const auto is_silent = [](const RankCalls& of_rank) { return of_rank.calls.empty(); };
    const auto silent = std::count_if(collectives[g].begin(), collectives[g].end(), is_silent);
    if (silent < std::ssize(collectives[g])) {
      if (silent > 0 && silent_ranks_repeat) {
        std::erase_if(collectives[g], is_silent);
        has_silent_ranks = true;
      }
      GroupMatcher(job.groups()[g], std::move(collectives[g]), report).Run();
    }
    MatchPointToPoint(job, point_to_point[g], report);
  }
  return has_silent_ranks;
}

}  // namespace railyard
