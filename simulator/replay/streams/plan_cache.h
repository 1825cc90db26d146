// SPDX-License-Identifier: GPL-2.0-only
// Stores the plans of a job's collectives: NCCL's choice for each, its schedule, the costs of its
// steps, and its bound. A plan is made when it is first requested, and equal collectives of one
// communicator share it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/replay/streams/bound.h"
#include "simulator/replay/streams/call_table.h"
#include "simulator/transport/nic/nic_settings.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/collectives/schedule.h"
#include "workloads/job/job.h"
#include "workloads/layout/communicator_planners.h"
#include "workloads/nccl/gpu_costs.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {

// Identifies the connections that do not use the NICs of their plans, because NICs failed. Bounds
// do not count the bytes that these carry.
class MovedConnections {
 public:
  virtual ~MovedConnections() = default;
  // Returns the number of moves so far; bounds are valid until it changes.
  virtual uint64_t move_count() const = 0;
  // `from` and `to` are ranks of the communicator.
  virtual bool HasMoved(CommunicatorIndex communicator, uint32_t channel, RankIndex from,
                        RankIndex to, ConnectionUse use) const = 0;
};

class PlanCache {
 public:
  // Holds the properties that are equal for collectives of a communicator that share a plan: kind,
  // count, datatype, root, and the algorithm and protocol in the log.
  using Key = std::array<uint64_t, 5>;

  // Rank r of the job is GPU r of the fabric. `graph`, `job` and `moved` must outlive this.
  // `planners` are those of the job's communicators; if there are none, the cache makes them.
  // Precondition: NcclPlanner::Choose finds a choice for every collective.
  PlanCache(const FabricGraph& graph, const Job& job, NcclSettings nccl, GpuCosts gpu,
            const NicSettings& nic, const MovedConnections& moved,
            const CommunicatorPlanners& planners = {});

  uint32_t communicator_count() const { return static_cast<uint32_t>(communicators_.size()); }
  const NcclPlanner& planner(CommunicatorIndex communicator) const {
    return *communicators_[communicator].planner;
  }
  // Returns the GPUs by rank of the communicator.
  const std::vector<GpuIndex>& gpus(CommunicatorIndex communicator) const {
    return communicators_[communicator].gpus;
  }
  // Discards the plans of a part of the job whose ranks have moved to other GPUs.
  void Relocate(PartIndex part);

  // --- By collective -----------------------------------------------------------------------------
  Key KeyOf(CollectiveIndex collective) const;
  // Returns the choice of a collective. Precondition: the collective is not made of Send and Recv.
  ReplayChoice ChoiceOf(CollectiveIndex collective) const;
  // Returns the choice with which the collective is replayed: its plan's, else ChoiceOf(). The
  // precondition is the same.
  ReplayChoice ReplayedBy(CollectiveIndex collective) const;
  StepCosts CostsOf(CollectiveIndex collective);
  // Returns the costs of the lanes whose messages consist of lines; for Send and Recv, those of LL.
  StepCosts LineCostsOf(CollectiveIndex collective);
  // Returns the schedule of a collective. The precondition is the same.
  const CollectiveSchedule& ScheduleOf(CollectiveIndex collective) {
    return *PlanOf(collective).schedule;
  }
  // Returns a time in ps that no schedule of the same bytes over the same links can beat (bound.h).
  int64_t BoundOf(CollectiveIndex collective);

  // --- By call -----------------------------------------------------------------------------------
  // Returns the schedule of the rank's Send and Recv, which is made anew each time, or that of the
  // collective.
  std::shared_ptr<const CollectiveSchedule> ScheduleOf(const Call& call);
  // Describes the part of a call in the network.
  struct OnNetwork {
    std::vector<GpuIndex> gpus;  // whose NICs carry data that it sends or receives, ascending
    bool is_relayed = false;     // some of it by the NIC of a GPU that does not send it (PXN)
  };
  // Returns that part. Valid until the next call of this function.
  const OnNetwork& OnNetworkOf(const Call& call);

  // Returns the assumptions about layouts that NCCL's rules do not cover.
  std::vector<std::string> Assumptions() const;

 private:
  struct Plan {
    std::shared_ptr<const CollectiveSchedule> schedule;
    ReplayChoice choice;
    StepCosts costs;
    int64_t bound_ps = -1;                             // -1 if not computed yet
    uint64_t bound_moves = 0;                          // move_count() when it was computed
    std::vector<std::optional<OnNetwork>> on_network;  // by rank, if requested before
  };
  struct Communicator {
    std::shared_ptr<const NcclPlanner> planner;
    std::vector<GpuIndex> gpus;
    std::map<Key, Plan> plans;  // regular jobs have few
  };

  // Makes a planner if `planner` is nullptr.
  Communicator BuildCommunicator(CommunicatorIndex number,
                                 std::shared_ptr<const NcclPlanner> planner) const;
  void FindP2pCalls();
  Plan& PlanOf(CollectiveIndex collective);
  int64_t BoundOfSchedule(CommunicatorIndex communicator, const CollectiveSchedule& schedule);
  void AddToBound(CommunicatorIndex communicator, uint32_t channel, RankIndex from, RankIndex to,
                  ConnectionUse use, uint64_t bytes);
  void AddOnNetwork(const Communicator& communicator, const JobCollective& collective,
                    const Call& call, OnNetwork& on_network);

  const FabricGraph& graph_;
  const Job& job_;
  NcclSettings nccl_;
  GpuCosts gpu_;
  const MovedConnections& moved_;
  BoundModel bound_model_;
  std::vector<Communicator> communicators_;
  std::vector<std::vector<Call>> p2p_calls_;  // by collective, if made of Send and Recv
  OnNetwork scratch_on_network_;              // result of OnNetworkOf()
};

}  // namespace railyard
