// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/check/flow_check.h"

#include <string>

#include <fmt/format.h>

#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/transport/stacks/network_stacks.h"
#include "workloads/job/job_parts.h"

namespace railyard {
namespace {

constexpr const char* kExpected = "(expected mode: PACKET, or a scenario without it)";

const protos::Scenario& MessageOf(const ProtoCursor& scenario) {
  return scenario.As<protos::Scenario>();
}

// The cost of these faults depends on what is lost or held back, and on the timers that notice.
bool NeedsPackets(protos::Fault::Kind kind) {
  switch (kind) {
    case protos::Fault::LINK_DOWN:
    case protos::Fault::SWITCH_REBOOT:
    case protos::Fault::LOSS:
    case protos::Fault::DELAY:
    case protos::Fault::PAUSE_STORM:
      return true;
    default:
      return false;
  }
}

// An unknown name has been reported.
bool HasNoFlowMode(const std::string& transport) {
  const NetworkStackTraits* const traits = FindNetworkStackTraits(transport);
  return traits != nullptr && !traits->has_flow_mode;
}

void CheckNetwork(const ProtoCursor& scenario, NetPlugin net, Diagnostics& diagnostics) {
  const protos::Scenario& message = MessageOf(scenario);
  if (net != NetPlugin::kIb) {
    const ProtoCursor nccl = scenario.Child("nccl");
    nccl.Error(diagnostics, nccl.Has("NET") ? "NET" : "IB_DISABLE",
               "flow mode has RDMA over InfiniBand or RoCE only (expected NET: \"IB\", or mode: "
               "PACKET)");
  } else if (HasNoFlowMode(message.transport())) {
    scenario.Error(diagnostics, "transport",
                   "flow mode has \"rdma\" only (expected that, or mode: PACKET)");
  }
  if (message.network().has_load_balancing() &&
      message.network().load_balancing() != protos::Network::ECMP) {
    scenario.Child("network").Error(
        diagnostics, "load_balancing",
        "switches choose links by packet or flowlet, and flow mode has none (expected ECMP, or "
        "mode: PACKET)");
  }
  if (message.nccl().collnet_enable() == 1) {
    scenario.Child("nccl").Error(diagnostics, "COLLNET_ENABLE",
                                 "switches of the network add up packets, and flow mode has none "
                                 "(expected 0, or mode: PACKET)");
  }
}

}  // namespace

bool AsksForFlows(const ProtoCursor& scenario) {
  return MessageOf(scenario).mode() == protos::Scenario::FLOW;
}

void CheckFlowMode(const ProtoCursor& scenario, NetPlugin net, const FabricGraph* fabric,
                   const Job* job, Diagnostics& diagnostics) {
  const protos::Scenario& message = MessageOf(scenario);
  CheckNetwork(scenario, net, diagnostics);
  for (int i = 0; i < scenario.Size("faults"); ++i) {
    const protos::Fault::Kind kind = message.faults(i).kind();
    if (!NeedsPackets(kind)) continue;
    scenario.Child("faults", i)
        .Error(diagnostics, "kind",
               fmt::format("{} acts on packets, and flow mode has none {}",
                           protos::Fault::Kind_Name(kind), kExpected));
  }
  if (message.has_nic_failover()) {
    scenario.Error(diagnostics, "nic_failover",
                   fmt::format("flow mode has no failed NICs {}", kExpected));
  }
  if (fabric != nullptr && fabric->circuits) {
    scenario.Error(diagnostics, "fabric",
                   fmt::format("its routes change with its circuits, and those of flows do not {}",
                               kExpected));
  }
  if (job != nullptr && ToleratesLoss(*job)) {
    scenario.Error(diagnostics, "mode",
                   "FLOW loses nothing, so a loss_tolerance has no effect (expected PACKET, or no "
                   "loss_tolerance)");
  }
}

}  // namespace railyard
