// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/plan_volume.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "workloads/plans/rank_timeline.h"

namespace railyard {
namespace {

// Equal calls of a program: number of the communicator, kind, peer, bytes of the call's count.
using CallKey = std::tuple<uint32_t, CollectiveKind, uint32_t, uint64_t>;

struct ProgramCalls {
  std::map<CallKey, uint64_t> counts;
  std::map<uint32_t, uint64_t> calls;  // by communicator's number; those of a group are one
  int64_t compute_ps = 0;
};

ProgramCalls CallsOf(const std::vector<TraceOperation>& program) {
  ProgramCalls calls;
  std::pair<uint32_t, uint32_t> last_group;  // communicator, group
  for (const TraceOperation& operation : program) {
    if (operation.stream == 0) calls.compute_ps += operation.compute_before_ps;
    if (operation.kind == CollectiveKind::kCompute) continue;
    ++calls.counts[{operation.communicator, operation.kind, operation.peer,
                    operation.count * DatatypeBytes(operation.datatype)}];
    const std::pair<uint32_t, uint32_t> group(operation.communicator, operation.group);
    if (operation.group == 0 || group != std::exchange(last_group, group)) {
      ++calls.calls[operation.communicator];
    }
  }
  return calls;
}

uint64_t SentBytes(CollectiveKind kind, uint64_t bytes, uint64_t size) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return static_cast<uint64_t>(static_cast<unsigned __int128>(bytes) * 2 * (size - 1) / size);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return bytes * (size - 1);
    case CollectiveKind::kSend:
    case CollectiveKind::kBroadcast:
      return bytes;
    default:
      return 0;  // Recv; plans have no others
  }
}

}  // namespace

PlanVolume VolumeOf(const Trace& trace) {
  PlanVolume volume;
  const std::vector<std::vector<GlobalRank>> ranks = trace.operations.RanksOfPrograms();
  for (uint32_t program = 0; program < ranks.size(); ++program) {
    if (ranks[program].empty()) continue;
    const ProgramCalls calls = CallsOf(trace.operations.program(program));
    volume.compute_ps = std::max(volume.compute_ps, calls.compute_ps);
    for (const GlobalRank rank : ranks[program]) {
      std::map<std::string, uint64_t> sent;
      for (const auto& [number, count] : calls.calls) {
        const uint32_t communicator = trace.CommunicatorOf(rank, number);
        volume.groups[GroupNameOf(trace.communicators[communicator])].calls += count;
      }
      for (const auto& [key, count] : calls.counts) {
        const auto& [number, kind, peer, bytes] = key;
        const TraceCommunicator& communicator =
            trace.communicators[trace.CommunicatorOf(rank, number)];
        GroupVolume& group = volume.groups[GroupNameOf(communicator)];
        const auto place = static_cast<size_t>(
            std::find(communicator.ranks.begin(), communicator.ranks.end(), rank) -
            communicator.ranks.begin());
        const size_t next =
            kind == CollectiveKind::kSend ? peer : (place + 1) % communicator.ranks.size();
        const uint64_t total = count * SentBytes(kind, bytes, communicator.ranks.size());
        if (total == 0 || next == place) continue;  // a rank's sends to itself cross no link
        // Plans' roots are rank 0.
        if (kind == CollectiveKind::kBroadcast && next == 0) continue;
        volume.pairs[{rank, communicator.ranks[next]}] += total;
        sent[GroupNameOf(communicator)] += total;
        group.bytes += total;
      }
      for (const auto& [name, bytes] : sent) {
        GroupVolume& group = volume.groups[name];
        group.largest_bytes = std::max(group.largest_bytes, bytes);
      }
    }
  }
  return volume;
}

}  // namespace railyard
