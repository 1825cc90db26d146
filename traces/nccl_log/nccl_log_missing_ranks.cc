// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_missing_ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

namespace railyard {
namespace {

constexpr uint64_t kReconstructedCallsMax = 20'000'000;  // as many as a program may have

// "0 to 3, 7": at most a handful of ranges, then how many more.
std::string DescribeRanks(const std::vector<uint32_t>& sorted) {
  std::string text;
  int ranges = 0;
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (++ranges > 4) return fmt::format("{} and {} more", text, sorted.size() - i);
    if (!text.empty()) text += ", ";
    text += end - i == 1 ? fmt::format("{}", sorted[i])
                         : fmt::format("{} to {}", sorted[i], sorted[end - 1]);
    i = end;
  }
  return text;
}

struct HandlesWithCalls {
  std::unordered_set<uint32_t> any;
  std::unordered_set<uint32_t> collective;
};

HandlesWithCalls FindHandlesWithCalls(const PlacedCalls& calls) {
  HandlesWithCalls handles;
  for (const std::vector<uint32_t>& of_rank : calls.by_rank()) {
    for (const uint32_t i : of_rank) {
      handles.any.insert(calls[i].handle);
      if (!IsP2p(calls[i])) handles.collective.insert(calls[i].handle);
    }
  }
  return handles;
}

// A collective needs every rank of its communicator.
bool RefuseSilentMembers(const JoinedCommunicator& communicator, const HandlesWithCalls& with_calls,
                         const SourceLocation& where, Diagnostics& diagnostics) {
  std::set<uint32_t> callers;
  bool has_collective = false;
  for (const auto& [communicator_rank, handle] : communicator.handle_of_rank) {
    if (with_calls.any.contains(handle)) callers.insert(communicator_rank);
    has_collective = has_collective || with_calls.collective.contains(handle);
  }
  if (!has_collective || callers.size() == communicator.size) return true;
  std::vector<uint32_t> silent;
  for (uint32_t r = 0; r < communicator.size; ++r) {
    if (!callers.contains(r)) silent.push_back(r);
  }
  diagnostics.Error(
      where, "missing_ranks",
      fmt::format("communicator {} has {} ranks, the logs hold no call of its rank {} (give "
                  "their logs as well, or missing_ranks: RECONSTRUCT to have them make the same "
                  "calls as those present)",
                  communicator.name, communicator.size, DescribeRanks(silent)));
  return false;
}

// Distance from rank to peer, which a missing rank keeps.
uint32_t ShiftOf(const LoggedCall& call, const PlacedCalls& calls) {
  const uint32_t size = calls.Handle(call.handle).rank_count;
  return (call.root_or_peer + size - calls.CommunicatorRankOf(call)) % size;
}

class Reconstructor {
 public:
  Reconstructor(const PlacedCalls& calls, Placement& placement, LogTraceBuilder& trace,
                ImportReport& report, Diagnostics& diagnostics)
      : calls_(calls),
        placement_(placement),
        trace_(trace),
        report_(report),
        diagnostics_(diagnostics) {}

  void Run() {
    GlobalRank first{0};
    while (calls_.by_rank()[first].empty()) ++first;
    const auto program = CallsByFamily(first);
    for (GlobalRank rank{first + 1}; rank < placement_.rank_count; ++rank) {
      if (calls_.by_rank()[rank].empty() || CallsByFamily(rank) == program) continue;
      diagnostics_.Error(
          calls_.PlaceOf(calls_[calls_.by_rank()[rank].front()]), "missing_ranks",
          fmt::format("rank {} makes other calls than rank {}, so the missing ranks {} cannot "
                      "repeat them (give the logs of every rank)",
                      rank, first, DescribeRanks(calls_.missing())));
      return;
    }
    const uint64_t calls = trace_.OperationsOf(first).size();
    if (calls * calls_.missing().size() > kReconstructedCallsMax) {
      diagnostics_.Error(calls_.FirstFile(), "missing_ranks",
                         fmt::format("{} ranks are missing, {} calls each: more than {} calls "
                                     "would be reconstructed (give the logs of more ranks)",
                                     calls_.missing().size(), calls, kReconstructedCallsMax));
      return;
    }
    for (const uint32_t rank : calls_.missing()) RepeatProgram(first, GlobalRank{rank});
    NoteReconstruction(first);
  }

 private:
  // Families a rank's kept calls use, by how many calls.
  std::map<uint32_t, uint64_t> CallsByFamily(GlobalRank rank) const {
    std::map<uint32_t, uint64_t> calls;
    for (const uint32_t i : calls_.by_rank()[rank]) {
      if (calls_[i].dropped) continue;
      const uint32_t family = placement_.communicators[calls_.CommunicatorOf(calls_[i])].family;
      if (CanRepeat(family)) ++calls[family];
    }
    return calls;
  }

  // A family whose communicators are known for every rank.
  bool CanRepeat(uint32_t family) const {
    return placement_.families[family].stride ||
           placement_.families[family].size == placement_.rank_count;
  }

  void RepeatProgram(GlobalRank from, GlobalRank to) {
    const std::vector<TraceOperation>& program = trace_.OperationsOf(from);
    // One more than where an operation of the program is in the copy; 0: nowhere.
    std::vector<uint32_t> place(program.size() + 1);
    size_t next = 0;  // into the program: time between calls, and one operation per kept call
    const auto repeat = [&](TraceOperation operation) {
      operation.after = place[operation.after];
      trace_.OperationsOf(to).push_back(operation);
      place[next] = static_cast<uint32_t>(trace_.OperationsOf(to).size());
    };
    for (const uint32_t i : calls_.by_rank()[from]) {
      const LoggedCall& call = calls_[i];
      if (call.dropped) continue;
      while (program[next].kind == CollectiveKind::kCompute) {
        const TraceOperation& gap = program[next++];
        repeat(gap);
      }
      TraceOperation operation = program[next++];
      const uint32_t family = placement_.communicators[calls_.CommunicatorOf(call)].family;
      if (!CanRepeat(family)) {
        not_repeated_.insert(calls_.CommunicatorOf(call));
        continue;
      }
      const auto [communicator, own_rank] = PlaceInFamily(family, to);
      operation.communicator = trace_.CommunicatorOf(communicator);
      if (IsP2p(call)) {
        operation.peer = (own_rank + ShiftOf(call, calls_)) % placement_.families[family].size;
      }
      operation.source_file = 0;
      operation.source_line = 0;
      repeat(operation);
      ++report_.calls_reconstructed;
    }
    ++report_.ranks_reconstructed;
  }

  // The communicator of the family that `rank` is in, made if the log holds none of its ranks, and
  // its rank there.
  std::pair<uint32_t, uint32_t> PlaceInFamily(uint32_t family_index, uint32_t rank) {
    const auto known = place_in_family_.find({family_index, rank});
    if (known != place_in_family_.end()) return known->second;
    CommunicatorFamily& family = placement_.families[family_index];
    if (indexed_families_.insert(family_index).second) {
      for (const uint32_t g : family.communicators) IndexMembers(family_index, g);
      return PlaceInFamily(family_index, rank);
    }
    const uint32_t tile = family.size * *family.stride;
    JoinedCommunicator made;
    made.name = fmt::format("comm{}", placement_.communicators.size());
    made.size = family.size;
    made.family = family_index;
    for (uint32_t r = 0; r < family.size; ++r) {
      made.ranks.push_back(rank / tile * tile + rank % *family.stride + r * *family.stride);
    }
    const auto g = static_cast<uint32_t>(placement_.communicators.size());
    placement_.communicators.push_back(std::move(made));
    family.communicators.push_back(g);
    IndexMembers(family_index, g);
    return place_in_family_.at({family_index, rank});
  }

  void IndexMembers(uint32_t family, uint32_t g) {
    const std::vector<uint32_t>& ranks = placement_.communicators[g].ranks;
    for (uint32_t r = 0; r < ranks.size(); ++r) {
      place_in_family_.try_emplace({family, ranks[r]}, g, r);
    }
  }

  void NoteReconstruction(uint32_t first) {
    report_.reconstructed.push_back(
        fmt::format("ranks {} make the calls of rank {}: {} calls, which no line stands for; peers "
                    "of Send and Recv keep their distance",
                    DescribeRanks(calls_.missing()), first, report_.calls_reconstructed));
    for (const uint32_t g : not_repeated_) {
      report_.reconstructed.push_back(
          fmt::format("calls on {} were not repeated: the log does not determine which ranks would "
                      "have a communicator like it",
                      placement_.communicators[g].name));
    }
  }

  const PlacedCalls& calls_;
  Placement& placement_;
  LogTraceBuilder& trace_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
  // Communicator and rank there, by family and rank.
  std::map<std::pair<uint32_t, uint32_t>, std::pair<uint32_t, uint32_t>> place_in_family_;
  std::set<uint32_t> indexed_families_;
  std::set<uint32_t> not_repeated_;  // communicators
};

}  // namespace

bool RefuseMissingRanks(const PlacedCalls& calls, Diagnostics& diagnostics) {
  const Placement& placement = calls.placement();
  std::vector<bool> has_process(placement.rank_count);
  std::vector<uint32_t> absent;
  uint32_t unplaced = 0;
  for (const Endpoint& endpoint : placement.endpoints) {
    if (endpoint.rank) {
      has_process[*endpoint.rank] = true;
    } else {
      ++unplaced;
    }
  }
  for (uint32_t rank = 0; rank < placement.rank_count; ++rank) {
    if (!has_process[rank]) absent.push_back(rank);
  }
  if (!absent.empty()) {
    diagnostics.Error(
        calls.FirstFile(), "missing_ranks",
        fmt::format("the job has {} ranks, the logs hold no process known to be rank {}{} (give "
                    "their logs as well, or missing_ranks: RECONSTRUCT to have them make the "
                    "same calls as those present)",
                    placement.rank_count, DescribeRanks(absent),
                    unplaced == 0 ? ""
                                  : fmt::format("; {} processes have no known rank: a rank_map "
                                                "says which they are, in the order of their names"
                                                "{}",
                                                unplaced, placement.rank_map_to_type)));
    return false;
  }
  const HandlesWithCalls with_calls = FindHandlesWithCalls(calls);
  bool complete = true;
  for (const JoinedCommunicator& communicator : placement.communicators) {
    complete =
        RefuseSilentMembers(communicator, with_calls, calls.FirstFile(), diagnostics) && complete;
  }
  return complete;
}

void CheckPointToPointAlike(const PlacedCalls& calls, const std::vector<uint32_t>& group_of,
                            Diagnostics& diagnostics) {
  using Message = std::tuple<CollectiveKind, uint32_t, uint64_t, Datatype>;
  using Batch = std::vector<Message>;
  struct Program {
    std::vector<Batch> batches;
    uint32_t first_call = 0;
  };
  std::map<uint32_t, std::map<uint32_t, Program>> programs_of;  // family, handle
  for (const std::vector<uint32_t>& of_rank : calls.by_rank()) {
    uint32_t last_group = 0;
    for (const uint32_t i : of_rank) {
      const LoggedCall& call = calls[i];
      if (call.dropped || !IsP2p(call)) continue;
      const uint32_t family = calls.placement().communicators[calls.CommunicatorOf(call)].family;
      const auto [entry, is_new] = programs_of[family].try_emplace(call.handle);
      Program& program = entry->second;
      if (is_new) program.first_call = i;
      if (group_of[i] == 0 || group_of[i] != last_group) program.batches.emplace_back();
      last_group = group_of[i];
      program.batches.back().emplace_back(call.kind, ShiftOf(call, calls), call.count,
                                          call.datatype);
    }
  }
  for (auto& [family, programs] : programs_of) {
    for (auto& [handle, program] : programs) {
      for (Batch& batch : program.batches) std::sort(batch.begin(), batch.end());
    }
    const Program& first = programs.begin()->second;
    for (const auto& [handle, program] : programs) {
      if (program.batches == first.batches) continue;
      diagnostics.Error(
          calls.PlaceOf(calls[program.first_call]), "missing_ranks",
          fmt::format("rank {} sends and receives otherwise than rank {} does from {} on, so "
                      "missing ranks cannot repeat it (give the logs of every rank)",
                      calls.RankOfHandle(handle), calls.RankOfHandle(programs.begin()->first),
                      calls.PlaceText(calls[first.first_call])));
      break;
    }
  }
}

void DropUnansweredMessages(PlacedCalls& calls) {
  using Sizes = std::vector<std::pair<uint64_t, Datatype>>;
  // By family, then by rank and distance from sender to receiver: the Sends and the Recvs.
  std::map<uint32_t, std::map<std::pair<uint32_t, uint32_t>, std::pair<Sizes, Sizes>>> messages_of;
  const auto family_of = [&calls](uint32_t i) {
    return calls.placement().communicators[calls.CommunicatorOf(calls[i])].family;
  };
  const auto is_message = [&calls](uint32_t i) { return !calls[i].dropped && IsP2p(calls[i]); };
  const auto& by_rank = calls.by_rank();
  for (uint32_t rank = 0; rank < by_rank.size(); ++rank) {
    for (const uint32_t i : by_rank[rank]) {
      if (!is_message(i)) continue;
      const LoggedCall& call = calls[i];
      const bool is_send = call.kind == CollectiveKind::kSend;
      const uint32_t size = calls.Handle(call.handle).rank_count;
      const uint32_t to_peer = ShiftOf(call, calls);
      auto& [sends, receives] =
          messages_of[family_of(i)][{rank, is_send ? to_peer : (size - to_peer) % size}];
      (is_send ? sends : receives).emplace_back(call.count, call.datatype);
    }
  }
  std::set<uint32_t> unanswered;
  for (const auto& [family, messages] : messages_of) {
    for (const auto& [place, both] : messages) {
      if (both.first != both.second) unanswered.insert(family);
    }
  }
  for (const std::vector<uint32_t>& of_rank : by_rank) {
    for (const uint32_t i : of_rank) {
      if (!is_message(i) || !unanswered.contains(family_of(i))) continue;
      calls.Drop(
          i, CallDropReason::kRanksMissing,
          "ranks that are not in the log do not repeat it: its peer would have no counterpart");
    }
  }
}

void ReconstructMissingRanks(const PlacedCalls& calls, Placement& placement, LogTraceBuilder& trace,
                             ImportReport& report, Diagnostics& diagnostics) {
  Reconstructor(calls, placement, trace, report, diagnostics).Run();
}

}  // namespace railyard
