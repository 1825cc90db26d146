// SPDX-License-Identifier: GPL-2.0-only
// Determines whether a simulated call uses resources of a partition of NICs that is replayed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "simulator/replay/partitions/partition.h"
#include "simulator/replay/partitions/partition_host.h"
#include "simulator/replay/partitions/partition_map.h"
#include "simulator/replay/streams/call_ledger.h"
#include "simulator/replay/streams/call_table.h"
#include "simulator/replay/streams/plan_cache.h"
#include "simulator/replay/streams/stream_runner.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

class PartitionNeighbours {
 public:
  // All must outlive this. If the map has partitions of NICs, `ledger` must record which calls have
  // begun.
  PartitionNeighbours(const FabricGraph& graph, const CallTable& calls, PlanCache& plans,
                      const PartitionMap& map, const StreamRunner& streams,
                      const CallLedger& ledger, PartitionHost& host)
      : graph_(graph),
        calls_(calls),
        plans_(plans),
        map_(map),
        streams_(streams),
        ledger_(ledger),
        host_(host) {}

  // Returns true if the operation crosses NICs of the partition. Precondition: it is a partition of
  // NICs.
  bool Touches(const Call& call, const Partition& partition);
  // Returns true if a call other than `own` uses the partition's NICs, or may begin to use them
  // before `until_ps`. A call that waits for ranks of the partition does not use them before that
  // (PartitionHost::WaitsFor). Operations that wait only for the ends of calls are
  // assumed to begin at once, and calls to take the least time; Touches() detects a wrong answer
  // when a call begins.
  bool MayTouch(const Partition& partition, std::span<const Call> own, int64_t now_ps,
                int64_t until_ps);

 private:
  // Describes a call of a rank that may use a partition; it runs, or its start is known. If it is
  // part of the episode, its times are not needed.
  struct NearCall {
    Call call;
    int64_t begin_ps = 0;
    int64_t end_ps = 0;        // earliest end
    bool is_own = false;       // it is part of the episode
    bool is_replayed = false;  // it is replayed in another partition
    bool is_launched = false;
  };
  std::vector<NearCall> CallsNear(const Partition& partition, std::span<const Call> own,
                                  int64_t now_ps) const;
  // Returns the least duration of a rank's call.
  int64_t LeastDurationPs(const Call& call);
  bool MayRankTouch(const Partition& partition, std::span<const Call> own,
                    std::span<const NearCall> near, int64_t now_ps, int64_t until_ps);
  bool EndsAfter(const Call& call, std::span<const Call> own) const;
  bool SendsAfter(const Call& call, std::span<const Call> own);
  std::optional<Call> LaterCallOf(CollectiveIndex collective, const Call& before) const;
  DeviceId NicOf(GpuIndex gpu) const { return graph_.NicOfGpu(graph_.gpus()[gpu]).value(); }

  const FabricGraph& graph_;
  const CallTable& calls_;
  PlanCache& plans_;
  const PartitionMap& map_;
  const StreamRunner& streams_;
  const CallLedger& ledger_;
  PartitionHost& host_;
  // These are scratch memory of MayRankTouch().
  std::vector<int64_t> ends_ps_;
  std::vector<std::pair<uint32_t, int64_t>> end_of_stream_;
};

}  // namespace railyard
