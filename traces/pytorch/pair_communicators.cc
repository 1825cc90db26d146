// SPDX-License-Identifier: GPL-2.0-only
#include "traces/pytorch/pair_communicators.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace railyard {
namespace {

bool IsLoneMessage(const TraceOperation& operation) {
  return IsSendOrRecv(operation.kind) && operation.group == 0;
}

// Executes the calls of all ranks without times: a call ends when all of its ranks have come to it,
// a message when both have. A rank's call waits for those before it on its stream and communicator.
class Rendezvous {
 public:
  explicit Rendezvous(const Trace& trace) : trace_(trace), works_(trace.rank_count) {
    for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) AddRank(rank);
  }

  // Returns the communicators of the lone messages that wait when nothing moves any more.
  std::set<uint32_t> StalledCommunicators() {
    for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
      for (uint32_t work = 0; work < works_[rank].size(); ++work) {
        if (works_[rank][work].waits_for == 0) ready_.emplace_back(rank, work);
      }
    }
    while (!ready_.empty()) {
      const auto [rank, work] = ready_.back();
      ready_.pop_back();
      Arrive({rank, work});
    }
    std::set<uint32_t> stalled;
    for (const std::vector<Work>& of_rank : works_) {
      for (const Work& work : of_rank) {
        if (work.waits_for == 0 && work.open_parts > 0 && work.is_lone_message) {
          stalled.insert(work.communicator);
        }
      }
    }
    return stalled;
  }

 private:
  using WorkId = std::pair<uint32_t, uint32_t>;  // rank, and place in works_
  // Names a collective by communicator and number, a message also by sender and receiver.
  using MeetingId = std::tuple<uint32_t, GlobalRank, GlobalRank, uint64_t>;
  static constexpr GlobalRank kAllRanks{UINT32_MAX};

  struct Work {  // a call, or a group of messages
    uint32_t communicator = 0;
    uint32_t waits_for = 0;   // number of works before it that have not ended
    uint32_t open_parts = 0;  // number of its meetings that have not ended
    bool is_lone_message = false;
    std::vector<MeetingId> meetings = {};
    std::vector<uint32_t> next = {};  // works of the rank that wait for it
  };
  struct Meeting {
    uint32_t missing = 0;
    std::vector<WorkId> works = {};
  };

  void AddRank(GlobalRank rank) {
    std::vector<Work>& works = works_[rank];
    const std::vector<TraceOperation>& operations = std::as_const(trace_.operations)[rank];
    std::vector<uint32_t> work_of(operations.size());
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> work_of_group;
    std::map<uint32_t, uint32_t> last_of_stream;
    std::map<uint32_t, uint32_t> last_of_communicator;
    std::map<std::tuple<uint32_t, GlobalRank, GlobalRank>, uint64_t> count;  // of meetings so far
    for (size_t i = 0; i < operations.size(); ++i) {
      const TraceOperation& operation = operations[i];
      const uint32_t communicator = trace_.CommunicatorOf(rank, operation.communicator);
      uint32_t number = static_cast<uint32_t>(works.size());
      if (operation.group != 0) {
        number = work_of_group.try_emplace({operation.group, communicator}, number).first->second;
      }
      work_of[i] = number;
      if (number == works.size()) {
        works.push_back(
            {.communicator = communicator, .is_lone_message = IsLoneMessage(operation)});
        Follow(works, last_of_stream, operation.stream, number);
        if (operation.kind != CollectiveKind::kCompute) {
          Follow(works, last_of_communicator, communicator, number);
        }
        if (operation.after > 0) Wait(works, work_of[operation.after - 1], number);
      }
      AddMeeting(rank, operation, communicator, count, works[number]);
    }
  }

  static void Follow(std::vector<Work>& works, std::map<uint32_t, uint32_t>& last, uint32_t key,
                     uint32_t number) {
    const auto [at, is_first] = last.try_emplace(key, number);
    if (!is_first) Wait(works, std::exchange(at->second, number), number);
  }
  static void Wait(std::vector<Work>& works, uint32_t before, uint32_t number) {
    if (before == number) return;
    works[before].next.push_back(number);
    ++works[number].waits_for;
  }

  void AddMeeting(GlobalRank rank, const TraceOperation& operation, uint32_t communicator,
                  std::map<std::tuple<uint32_t, GlobalRank, GlobalRank>, uint64_t>& count,
                  Work& work) {
    if (operation.kind == CollectiveKind::kCompute) return;
    const std::vector<GlobalRank>& ranks = trace_.communicators[communicator].ranks;
    GlobalRank from = kAllRanks;
    GlobalRank to = kAllRanks;
    if (IsSendOrRecv(operation.kind)) {
      const bool is_send = operation.kind == CollectiveKind::kSend;
      from = is_send ? rank : ranks[operation.peer];
      to = is_send ? ranks[operation.peer] : rank;
      if (from == to) return;
    }
    const MeetingId id = {communicator, from, to, count[{communicator, from, to}]++};
    work.meetings.push_back(id);
    ++work.open_parts;
    const uint32_t size = from == kAllRanks ? static_cast<uint32_t>(ranks.size()) : 2;
    meetings_.try_emplace(id, Meeting{.missing = size});
  }

  void Arrive(const WorkId& id) {
    Work& work = works_[id.first][id.second];
    if (work.meetings.empty()) {
      End(id);
      return;
    }
    for (const MeetingId& meeting_id : work.meetings) {
      Meeting& meeting = meetings_.at(meeting_id);
      meeting.works.push_back(id);
      if (--meeting.missing > 0) continue;
      for (const WorkId& met : meeting.works) {
        if (--works_[met.first][met.second].open_parts == 0) End(met);
      }
    }
  }

  void End(const WorkId& id) {
    for (const uint32_t next : works_[id.first][id.second].next) {
      if (--works_[id.first][next].waits_for == 0) ready_.emplace_back(id.first, next);
    }
  }

  const Trace& trace_;
  std::vector<std::vector<Work>> works_;  // by rank
  std::map<MeetingId, Meeting> meetings_;
  std::vector<WorkId> ready_;
};

// Moves the lone messages of a communicator to those of pairs.
class PairSeparator {
 public:
  explicit PairSeparator(Trace& trace) : trace_(trace), stream_count_(trace.rank_count) {
    for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
      for (const TraceOperation& operation : std::as_const(trace.operations)[rank]) {
        stream_count_[rank] = std::max(stream_count_[rank], operation.stream + 1);
      }
    }
  }

  void Separate(uint32_t communicator) {
    const std::vector<GlobalRank> ranks = trace_.communicators[communicator].ranks;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> communicator_of;  // by ranks in it
    for (uint32_t own = 0; own < ranks.size(); ++own) {
      std::map<uint32_t, uint32_t> stream_of;  // by communicator
      for (TraceOperation& operation : trace_.operations[ranks[own]]) {
        if (operation.communicator != communicator || !IsLoneMessage(operation)) continue;
        if (operation.peer == own) continue;
        const std::pair<uint32_t, uint32_t> pair = std::minmax(own, operation.peer);
        const auto [at, is_new] =
            communicator_of.try_emplace(pair, static_cast<uint32_t>(trace_.communicators.size()));
        if (is_new) {
          trace_.communicators.push_back(
              {.name = fmt::format("{} {}:{}", trace_.communicators[communicator].name, pair.first,
                                   pair.second),
               .ranks = {ranks[pair.first], ranks[pair.second]}});
        }
        const auto [stream, is_new_stream] =
            stream_of.try_emplace(at->second, stream_count_[ranks[own]]);
        if (is_new_stream) ++stream_count_[ranks[own]];
        operation.communicator = at->second;
        operation.stream = stream->second;
        operation.peer = operation.peer == pair.second ? 1 : 0;
      }
    }
  }

 private:
  Trace& trace_;
  std::vector<uint32_t> stream_count_;  // by rank
};

}  // namespace

void SeparatePairsInCircles(Trace& trace, ImportReport& report) {
  bool has_lone_messages = false;
  for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
    has_lone_messages = has_lone_messages ||
                        std::ranges::any_of(std::as_const(trace.operations)[rank], IsLoneMessage);
  }
  if (!has_lone_messages) return;
  PairSeparator separator(trace);
  std::set<uint32_t> separated;
  // The messages that are left may come to a circle of their own.
  for (;;) {
    std::set<uint32_t> stalled = Rendezvous(trace).StalledCommunicators();
    std::erase_if(stalled, [&](uint32_t communicator) {
      return separated.contains(communicator) || trace.communicators[communicator].ranks.size() < 3;
    });
    if (stalled.empty()) return;
    for (const uint32_t communicator : stalled) {
      report.assumed.push_back(fmt::format(
          "Sends and Recvs of group \"{}\" outside batches would wait for each other in a circle "
          "if they followed each other: those of each pair of ranks have a communicator and a "
          "stream of their own, as PyTorch gives them",
          trace.communicators[communicator].name));
      separator.Separate(communicator);
      separated.insert(communicator);
    }
  }
}

}  // namespace railyard
