// SPDX-License-Identifier: GPL-2.0-only
// Visits the state of a network without packets, or of some of its links without packets. The form
// of a port is in no snapshot, because no result depends on it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "simulator/fabric/buffer/channel_accounts.h"
#include "simulator/fabric/buffer/pause_frames.h"
#include "simulator/fabric/buffer/shared_buffers.h"
#include "simulator/fabric/flow_accounts.h"
#include "simulator/fabric/in_network/in_network_reduction.h"
#include "simulator/fabric/link/hold_monitor.h"
#include "simulator/fabric/link/link_delays.h"
#include "simulator/fabric/link/link_states.h"
#include "simulator/fabric/tables/fabric_tables.h"
#include "simulator/fabric/tables/network_counters.h"
#include "simulator/fabric/tables/telemetry_table.h"
#include "simulator/state/state_archive.h"
#include "simulator/state/state_registry.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

class NetworkState final : public StateOwner {
 public:
  // Refers to the objects that have the state.
  struct Objects {
    FabricTables& tables;
    const ChannelAccounts& accounts;
    const SharedBuffers& buffers;
    PauseFrames& pause_frames;
    LinkStates& states;
    const LinkDelays& delays;
    const HoldMonitor& holds;
    const TelemetryTable& telemetry;
    InNetworkReduction& reduction;
    const FlowAccounts& flows;
  };
  // The objects must outlive this.
  explicit NetworkState(const Objects& objects) : network_(objects) {}

  // Sets a number that identifies the active faults. Networks under different faults are in
  // different states.
  void SetConditions(uint64_t conditions) { conditions_ = conditions; }
  uint64_t conditions() const { return conditions_; }

  // Visits the counters and all state that decides the future when no packet is in flight.
  std::string state_name() const override { return "the network's queues and links"; }
  void Visit(StateArchive& archive) override;
  std::string WhyNeverReplayed() const override;
  // Visits only these NVLinks, which must be all NVLinks of a set of GPUs that no NVLink joins to
  // other GPUs. If the archive adds, no packet may have been lost on them.
  void VisitNvlinks(std::span<const LinkId> links, StateArchive& archive);
  // Visits only the links between GPUs, their NICs and one switch.
  void VisitNicLinks(std::span<const LinkId> links, StateArchive& archive);
  void VisitCounters(StateArchive& archive);

 private:
  void CheckBuffers(StateArchive& archive) const;
  void VisitLink(LinkId id, StateArchive& archive);
  void VisitPortOf(LinkId id, StateArchive& archive);
  void VisitHistory(LinkId id, StateArchive& archive);
  // Visits the settings of the buffer that the link ends in, or its limit of credit.
  void VisitReceiverOf(LinkId id, StateArchive& archive);
  NetworkCounters SumOverNvlinks(std::span<const LinkId> links) const;

  Objects network_;
  uint64_t conditions_ = 0;
};

}  // namespace railyard
