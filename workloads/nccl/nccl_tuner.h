// SPDX-License-Identifier: GPL-2.0-only
// Implements NCCL's tuning model: a latency and a bandwidth for every algorithm and protocol, by
// which NCCL chooses between them (src/graph/tuning.cc, ncclTopoTuneModel and ncclTopoGetAlgoTime).
// The times are NCCL's expectation. They select the algorithm and protocol and never determine how
// long a collective takes.
//
// Tuner plug-ins are left out. NcclPlanner applies NCCL_ALGO and NCCL_PROTO.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "traces/trace/trace.h"
#include "workloads/nccl/communicator_layout.h"

namespace railyard {

// Holds the outcome of NCCL's graph search for one pattern, before it duplicates channels.
struct SearchedGraph {
  uint32_t channel_count = 0;  // 0 if the pattern was not found
  double intra_gb_per_s = 0;   // of one channel within a server
  double inter_gb_per_s = 0;   // of one channel between servers
};

struct TunerPlatform {
  GpuGeneration generation = GpuGeneration::kHopper;
  CollectiveLibrary library = CollectiveLibrary::kNccl;
  CommunicatorCpu cpu = CommunicatorCpu::kIntel;
  bool nvlink = true;  // joins the GPUs of a server; else PCIe does
  SearchedGraph ring;
  SearchedGraph tree;
  SearchedGraph nvls;
  SearchedGraph collnet;               // without channels if no switch can reduce
  double net_latency_us = 0;           // as the network plug-in states it for its NICs
  bool same_rings = false;             // every server has the same order of GPUs
  bool tree_meets_nic_on_one = false;  // NCCL_TOPO_PATTERN_TREE: one GPU has all of a channel's NIC
                                       // traffic
};

// Returns NCCL's cost of a post to the network, before Simple triples it (getNetOverhead).
double NetOverheadUs(CommunicatorCpu cpu);

struct TunedCommunicator {
  uint32_t rank_count = 0;
  uint32_t node_count = 0;
  uint32_t channel_count = 0;  // after duplication
};

struct TunedCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint64_t bytes = 0;  // the larger of input and output, as nccl-tests counts it
  Datatype datatype = Datatype::kFloat32;
  // True if the switch can reduce this type with this operation (ncclNvlsSupported).
  bool nvls_reduces = true;
};

class NcclTuner {
 public:
  // Holds a cell of the table that NCCL prints when it starts.
  struct Model {
    double latency_us = 0;
    double gb_per_s = 0;  // 0 if not available
  };
  struct Choice {
    Algorithm algorithm = Algorithm::kRing;
    Protocol protocol = Protocol::kSimple;
  };

  // `version` is encoded as by ncclGetVersion, `pat_enable` as NCCL_PAT_ENABLE. If nodes differ in
  // size, their average counts, as in NCCL. Precondition: at least two ranks.
  NcclTuner(const TunerPlatform& platform, const TunedCommunicator& communicator, uint32_t version,
            uint32_t pat_enable = 2);

  // Returns the model of a choice. Precondition: `kind` is one of the five collectives that are
  // tuned: AllReduce, AllGather, ReduceScatter, Broadcast, Reduce.
  Model ModelOf(CollectiveKind kind, Algorithm algorithm, Protocol protocol) const;
  // Returns the time that NCCL expects the call to take; nullopt if the choice is not available.
  std::optional<double> TimeUs(const TunedCall& call, Algorithm algorithm, Protocol protocol) const;
  // Returns the protocol that the library chooses by a call's size alone; nullopt if the expected
  // times decide.
  std::optional<Protocol> ProtocolBySize(const TunedCall& call) const;
  // Returns the fastest available choice that `algorithm` and `protocol` (kUnstated allows any)
  // allow, or nullopt.
  std::optional<Choice> Choose(const TunedCall& call, Algorithm algorithm, Protocol protocol) const;

 private:
  // Holds the maximum rates of a channel in GB/s: Ring with LL128, Tree with LL128, Tree.
  struct ChannelCaps {
    double ring_ll128 = 0;
    double tree_ll128 = 0;
    double tree = 0;
  };
  ChannelCaps ChannelCapsGbPerS() const;
  double LlCapGbPerS() const;
  double RingLlShare(CollectiveKind kind) const;
  double RingGbPerS(CollectiveKind kind, int protocol) const;
  double TreeGbPerS(int protocol) const;
  double NvlsGbPerS(CollectiveKind kind) const;
  double NvlsTreeGbPerS() const;
  double PatGbPerS() const;
  double CollnetGbPerS(CollectiveKind kind, Algorithm algorithm) const;
  double RingNetworkSteps(CollectiveKind kind) const;
  double LatencyUs(CollectiveKind kind, Algorithm algorithm, int protocol) const;
  bool IsAvailable(CollectiveKind kind, Algorithm algorithm, int protocol) const;
  double StepCount(CollectiveKind kind) const;
  // Returns whether the rules for Blackwell of 2.32 and later apply.
  bool HasBlackwellRules() const;
  // Returns how many columns of the tree's correction by size apply to an algorithm.
  int CorrectionsOf(Algorithm algorithm, int index) const;
  double RingPlateau(CollectiveKind kind, uint64_t bytes) const;
  double NodeBandwidth(const SearchedGraph& graph) const;
  double NvlsIntraGbPerS(CollectiveKind kind) const;

  TunerPlatform platform_;
  TunedCommunicator communicator_;
  uint32_t version_;
  uint32_t pat_enable_;
  uint32_t ranks_per_node_;
  int nodes_index_;  // into the tables by node count: 1, 2, more
};

}  // namespace railyard
