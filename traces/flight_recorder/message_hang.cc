// SPDX-License-Identifier: GPL-2.0-only
#include "traces/flight_recorder/message_hang.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/reading/captured_matching.h"

namespace railyard {
namespace {

// One end of the messages from a rank to another in a group.
struct End {
  uint32_t rank = 0;          // global
  uint32_t member = 0;        // of the group
  std::vector<size_t> calls;  // places among the rank's calls, in order
};
struct Pair {
  End sender;
  End receiver;
};

class PairSearch {
 public:
  PairSearch(CapturedJob& job, const UnfinishedWork& unfinished, HangSearch& search,
             ImportReport& report)
      : job_(job), unfinished_(unfinished), search_(search), report_(report) {}

  void Run(uint32_t group, Pair& pair) {
    group_ = group;
    const std::optional<size_t> send = FirstBegun(pair.sender);
    const std::optional<size_t> recv = FirstBegun(pair.receiver);
    if (send && recv) {
      if (!MovesTheSame(pair.sender, *send, pair.receiver, *recv)) {
        Place(pair.sender, *send, pair.receiver, recv);
      }
    } else if (send) {
      Place(pair.sender, *send, pair.receiver, CounterpartOf(pair.sender, *send, pair.receiver));
    } else if (recv) {
      Place(pair.receiver, *recv, pair.sender, CounterpartOf(pair.receiver, *recv, pair.sender));
    } else if (IsWhole(pair.sender) && IsWhole(pair.receiver)) {
      const bool is_send = pair.sender.calls.size() > pair.receiver.calls.size();
      End& more = is_send ? pair.sender : pair.receiver;
      End& fewer = is_send ? pair.receiver : pair.sender;
      const size_t first = fewer.calls.size();
      if (first < more.calls.size() && IsUnfinished(more, first)) {
        Place(more, first, fewer, std::nullopt);
      }
    } else {
      RunByEnds(pair);
    }
  }

 private:
  // Aligns dumps that begin anywhere at the last call that has ended on either side. A call waits
  // for its peer if its rank has nothing else before it to wait for, or if the two move something
  // different.
  void RunByEnds(Pair& pair) {
    const size_t sent = EndedCount(pair.sender);
    const size_t received = EndedCount(pair.receiver);
    const bool sends = sent < pair.sender.calls.size();
    const bool receives = received < pair.receiver.calls.size();
    if (sends && receives) {
      if (!MovesTheSame(pair.sender, sent, pair.receiver, received)) {
        Place(pair.sender, sent, pair.receiver, received);
      }
      return;
    }
    // A dump of active calls alone does not have the peer's.
    if (sent == 0 || received == 0) return;
    if (sends && IsFirstUnfinished(pair.sender, sent)) {
      Place(pair.sender, sent, pair.receiver, std::nullopt);
    } else if (receives && IsFirstUnfinished(pair.receiver, received)) {
      Place(pair.receiver, received, pair.sender, std::nullopt);
    }
  }
  size_t EndedCount(const End& end) const {
    const auto first = First(end, [&](size_t i) { return IsUnfinished(end, i); });
    return first.value_or(end.calls.size());
  }
  bool IsFirstUnfinished(const End& end, size_t number) const {
    const auto first = unfinished_.messages.lower_bound({end.rank, 0});
    return first->first == std::pair(end.rank, end.calls[number]) &&
           std::ranges::none_of(unfinished_.collectives, [&](const auto& collective) {
             return collective.second.contains(end.rank);
           });
  }

  CapturedCall& At(const End& end, size_t number) {
    return job_.calls().at(end.rank)[end.calls[number]];
  }
  bool IsWhole(const End& end) const { return unfinished_.whole_dumps.contains(end.rank); }

  bool IsUnfinished(const End& end, size_t number) const {
    return unfinished_.messages.contains({end.rank, end.calls[number]});
  }

  template <typename Accepts>
  static std::optional<size_t> First(const End& end, Accepts accepts) {
    for (size_t i = 0; i < end.calls.size(); ++i) {
      if (accepts(i)) return i;
    }
    return std::nullopt;
  }
  // The peer's call in the same place; in dumps that are not whole, its first unfinished one.
  std::optional<size_t> CounterpartOf(const End& end, size_t number, const End& peer) const {
    if (IsWhole(end) && IsWhole(peer)) {
      return number < peer.calls.size() ? std::optional(number) : std::nullopt;
    }
    return First(peer, [&](size_t i) { return IsUnfinished(peer, i); });
  }
  std::optional<size_t> FirstBegun(const End& end) const {
    return First(end, [&](size_t i) {
      const auto state = unfinished_.messages.find({end.rank, end.calls[i]});
      return state != unfinished_.messages.end() && state->second.has_begun;
    });
  }

  bool MovesTheSame(const End& a, size_t of_a, const End& b, size_t of_b) {
    const TraceOperation& first = At(a, of_a).operation;
    const TraceOperation& second = At(b, of_b).operation;
    return first.count == second.count && first.datatype == second.datatype;
  }

  // `late_call` is the peer's call in the same place, if it has one.
  void Place(const End& waiting, size_t call, End& late, std::optional<size_t> late_call) {
    const TraceOperation awaited = At(waiting, call).operation;
    const bool is_send = awaited.kind == CollectiveKind::kSend;
    Hang hang;
    hang.group = group_;
    hang.waiting = {waiting.rank};
    hang.is_of_send = is_send;
    hang.collective =
        fmt::format("{} of {} {} {} rank {} in group \"{}\"", is_send ? "Send" : "Recv",
                    awaited.count, DatatypeName(awaited.datatype), is_send ? "to" : "from",
                    late.rank, job_.groups()[group_].name);
    if (!job_.calls().contains(late.rank)) {
      search_.unplaced.push_back(
          fmt::format("rank {} waits in {}, of which there is no dump (expected the dumps of both)",
                      waiting.rank, hang.collective));
      return;
    }
    hang.late = {late.rank};
    DropLater(waiting, call + 1);
    const bool differs = late_call && !MovesTheSame(waiting, call, late, *late_call);
    if (differs) {
      const TraceOperation& other = At(late, *late_call).operation;
      hang.other_calls = fmt::format("rank {} {} {} {}", late.rank, is_send ? "receives" : "sends",
                                     other.count, DatatypeName(other.datatype));
      DropCapturedCall(At(late, *late_call), CallDropReason::kRanksDisagree,
                       fmt::format("{}, where rank {} waits in {}", hang.other_calls, waiting.rank,
                                   hang.collective),
                       report_);
    }
    if (late_call) DropLater(late, *late_call + 1);
    if (late_call && !differs) {
      At(late, *late_call).operation.compute_before_ps = kHangPs;
    } else {
      AddCounterpart(waiting, call, late);
    }
    AlignBeginnings(waiting, late);
    search_.hangs.push_back(std::move(hang));
  }

  void DropLater(const End& end, size_t from) {
    for (size_t i = from; i < end.calls.size(); ++i) {
      DropCapturedCall(At(end, i), CallDropReason::kIncompleteOnRank,
                       "it never ran: the job hung in a call of its pair before it", report_);
    }
  }

  void AddCounterpart(const End& waiting, size_t call, End& late) {
    CapturedCall copy = At(waiting, call);
    copy.operation.kind = copy.operation.kind == CollectiveKind::kSend ? CollectiveKind::kRecv
                                                                       : CollectiveKind::kSend;
    copy.operation.peer = waiting.member;
    copy.operation.stream = job_.StreamOf(late.rank, group_);
    copy.operation.compute_before_ps = kHangPs;
    copy.operation.measured_ps = 0;
    copy.operation.source_line = 0;
    copy.is_reconstructed = true;
    std::vector<CapturedCall>& calls = job_.calls()[late.rank];
    late.calls.push_back(calls.size());
    calls.push_back(std::move(copy));
  }

  // Both ends have the call in which they hang as their last. Where one ring begins earlier, its
  // first calls have no counterpart.
  void AlignBeginnings(const End& a, const End& b) {
    const auto remaining = [&](const End& end) {
      std::vector<CapturedCall*> calls;
      for (size_t i = 0; i < end.calls.size(); ++i) {
        if (!At(end, i).dropped) calls.push_back(&At(end, i));
      }
      return calls;
    };
    std::vector<CapturedCall*> more = remaining(a);
    std::vector<CapturedCall*> fewer = remaining(b);
    if (more.size() < fewer.size()) std::swap(more, fewer);
    for (size_t i = 0; i < more.size() - fewer.size(); ++i) {
      DropCapturedCall(*more[i], CallDropReason::kIncompleteOnRank,
                       "the dump of its peer begins after it", report_);
    }
  }

  CapturedJob& job_;
  const UnfinishedWork& unfinished_;
  HangSearch& search_;
  ImportReport& report_;
  uint32_t group_ = 0;
};

}  // namespace

void PlaceMessageHangs(CapturedJob& job, const UnfinishedWork& unfinished, HangSearch& search,
                       ImportReport& report) {
  if (unfinished.messages.empty()) return;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Pair> pairs;  // by group, sender, receiver
  for (const auto& [rank, calls] : job.calls()) {
    for (size_t i = 0; i < calls.size(); ++i) {
      const TraceOperation& operation = calls[i].operation;
      if (calls[i].dropped || !IsSendOrRecv(operation.kind)) continue;
      const CapturedGroup& group = job.groups()[operation.communicator];
      const uint32_t member = CommunicatorRankIn(group, rank);
      if (member == kNotAMember || operation.peer >= group.ranks.size()) continue;
      const bool is_send = operation.kind == CollectiveKind::kSend;
      Pair& pair = pairs[{operation.communicator, is_send ? member : operation.peer,
                          is_send ? operation.peer : member}];
      End& own = is_send ? pair.sender : pair.receiver;
      End& other = is_send ? pair.receiver : pair.sender;
      own.rank = rank;
      own.member = member;
      other.rank = group.ranks[operation.peer];
      other.member = operation.peer;
      own.calls.push_back(i);
    }
  }
  PairSearch pair_search(job, unfinished, search, report);
  for (auto& [key, pair] : pairs) pair_search.Run(std::get<0>(key), pair);
}

}  // namespace railyard
