// SPDX-License-Identifier: GPL-2.0-only
// Plans the schedule of a job's collective on one communicator by NCCL's rules, and the connections
// between its ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "workloads/collectives/head_table.h"
#include "workloads/collectives/replayable.h"
#include "workloads/collectives/ring_schedule.h"
#include "workloads/collectives/schedule.h"
#include "workloads/job/job.h"
#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_channels.h"
#include "workloads/nccl/nccl_settings.h"
#include "workloads/nccl/nccl_tuner.h"
#include "workloads/nccl/nvls_schedule.h"
#include "workloads/nccl/p2p_order.h"
#include "workloads/nccl/pcie_paths.h"
#include "workloads/nccl/tree_schedule.h"

namespace railyard {

// Describes the route of a connection's data from one rank to another.
struct ConnectionRoute {
  bool network = false;  // else inside the server, over NVLink or PCIe
  // The local index of the GPU of the sender's server whose NIC sends; it is the sender's index
  // unless the data is relayed (PXN).
  uint32_t sending_local_index = 0;
  bool over_host_memory = false;  // inside the server: SHM
};

// Plans the collectives of one communicator. Send/Recv use Simple, as NCCL does on networks by
// default, and LL for small messages inside a server. Registered user buffers are left out.
class NcclPlanner {
 public:
  // Preconditions: the layout is as BuildChannels requires; buffsize_bytes at least 64 KiB and the
  // p2p chunk sizes at least 4 KiB.
  NcclPlanner(CommunicatorLayout layout, NcclSettings settings);

  const CommunicatorLayout& layout() const { return layout_; }
  const CommunicatorChannels& channels() const { return channels_; }
  const TreeTable& trees() const { return *trees_; }  // by channel
  // HasNvls() returns true if the GPUs of a server have NVLink SHARP, HasCollnet() if the network
  // can reduce over servers.
  bool HasNvls() const;
  bool HasCollnet() const;

  // Returns the algorithm and protocol of a collective: those that `stated` fixes, and otherwise
  // the tuner's choice among those that have a schedule. Returns nullopt if no stated choice suits
  // its kind and this communicator. Precondition: the collective is not is_p2p().
  std::optional<ReplayChoice> Choose(const JobCollective& collective,
                                     const ReplayChoice& stated) const;
  // Returns the schedule, which has no steps with one rank or no bytes. Precondition: Choose()
  // returned this choice for this collective.
  std::shared_ptr<const CollectiveSchedule> Plan(const JobCollective& collective,
                                                 const ReplayChoice& choice) const;
  // Plans one rank's grouped sends and receives; only that rank's lanes are defined. Data that the
  // rank sends to itself is copied, or stays in place with `in_place`.
  std::shared_ptr<const CollectiveSchedule> PlanP2p(RankIndex rank, const P2pCall* calls,
                                                    uint32_t call_count,
                                                    bool in_place = false) const;
  // Returns the transport between two ranks of a node.
  LocalTransport TransportBetween(RankIndex from, RankIndex to) const {
    return LocalTransportOf(layout_, settings_, from, to);
  }
  // Returns the route of a connection. Precondition: there is a connection with that use, e.g. to
  // the next rank on a ring.
  ConnectionRoute RouteOf(uint32_t channel, RankIndex from, RankIndex to, ConnectionUse use) const;

 private:
  std::shared_ptr<const CollectiveSchedule> PlanRing(const JobCollective& collective,
                                                     Protocol protocol) const;
  std::shared_ptr<const CollectiveSchedule> PlanTree(const JobCollective& collective,
                                                     Protocol protocol) const;
  std::shared_ptr<const CollectiveSchedule> PlanNvls(const JobCollective& collective,
                                                     const ReplayChoice& choice) const;
  std::shared_ptr<const CollectiveSchedule> PlanCollnetDirect(
      const JobCollective& collective) const;
  std::shared_ptr<const CollectiveSchedule> PlanCollnetChain(const JobCollective& collective) const;
  // Holds the common parameters of schedules whose ranks exchange data in pairs, in slots of
  // Simple.
  struct ExchangePlan {
    uint64_t block_bytes = 0;
    std::vector<ChannelShare> shares;
    uint64_t slot_bytes = 0;
    MessageRule message_rule;
  };
  ExchangePlan PlanExchange(const JobCollective& collective, Algorithm algorithm) const;
  std::shared_ptr<const CollectiveSchedule> PlanPat(const JobCollective& collective) const;
  std::shared_ptr<const CollectiveSchedule> PlanDirect(const JobCollective& collective) const;
  std::shared_ptr<const CollectiveSchedule> PlanHalvingDoubling(
      const JobCollective& collective) const;
  // Returns nullptr if NCCL's choice applies.
  std::shared_ptr<const ExplicitAlgorithm> OwnAlgorithmOf(const JobCollective& collective) const;
  std::shared_ptr<const CollectiveSchedule> PlanExplicit(const JobCollective& collective) const;
  bool Suits(CollectiveKind kind, Algorithm algorithm) const;
  // Returns whether ALGO and PROTO let the tuner choose this; an algorithm that is stated does
  // without ALGO.
  bool Allows(CollectiveKind kind, const ReplayChoice& stated, const ReplayChoice& choice) const;
  bool AllowsLl128(CollectiveKind kind, Protocol protocol) const;
  // Returns the ring that NCCL takes if ALGO and PROTO leave it nothing; nullopt if it fails.
  std::optional<ReplayChoice> RingInstead(const TunedCall& call) const;
  std::vector<ChannelShare> SharesOf(const JobCollective& collective, const ReplayChoice& choice,
                                     uint32_t channel_count) const;

  NcclSettings settings_;
  CommunicatorLayout layout_;
  CommunicatorChannels channels_;
  std::shared_ptr<const RingTable> rings_;
  std::shared_ptr<const TreeTable> trees_;
  std::shared_ptr<const TreeTable> chains_;  // with CollNet
  std::shared_ptr<const HeadTable> heads_;   // nullptr if nodes differ in their numbers of GPUs
  std::optional<NcclTuner> tuner_;           // with at least two ranks
  P2pOrder p2p_order_;
  // [node * gpus_per_server + local_index]: has a rank of this communicator
  std::vector<bool> gpu_taken_;
};

}  // namespace railyard
