// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/check/packet_check.h"

#include <string>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/transport/stacks/network_stacks.h"
#include "workloads/job/job_parts.h"

namespace railyard {
namespace {

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

// Names what has no packets, and what would be right.
struct WithoutPackets {
  std::string what;     // "flow mode"
  std::string instead;  // "mode: PACKET"
};

void RefuseWhatNeedsPackets(const ProtoCursor& scenario, const WithoutPackets& without,
                            Diagnostics& diagnostics) {
  const protos::Scenario& message = MessageOf(scenario);
  if (message.network().has_load_balancing() &&
      message.network().load_balancing() != protos::Network::ECMP) {
    scenario.Child("network").Error(
        diagnostics, "load_balancing",
        fmt::format("switches choose links by packet or flowlet, and {} has none (expected ECMP, "
                    "or {})",
                    without.what, without.instead));
  }
  if (message.network().trajectory_hash()) {
    scenario.Child("network").Error(
        diagnostics, "trajectory_hash",
        fmt::format("the hash is over arrivals of packets, and {} has none (expected false, or {})",
                    without.what, without.instead));
  }
  if (message.nccl().collnet_enable() == 1) {
    scenario.Child("nccl").Error(
        diagnostics, "COLLNET_ENABLE",
        fmt::format("switches of the network add up packets, and {} has none (expected 0, or {})",
                    without.what, without.instead));
  }
  for (int i = 0; i < scenario.Size("faults"); ++i) {
    const protos::Fault::Kind kind = message.faults(i).kind();
    if (!NeedsPackets(kind)) continue;
    scenario.Child("faults", i)
        .Error(
            diagnostics, "kind",
            fmt::format("{} acts on packets, and {} has none (expected {}, or a scenario without "
                        "it)",
                        protos::Fault::Kind_Name(kind), without.what, without.instead));
  }
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
}

}  // namespace

bool AsksForFlows(const ProtoCursor& scenario) {
  return MessageOf(scenario).mode() == protos::Scenario::FLOW;
}

void CheckFlowMode(const ProtoCursor& scenario, NetPlugin net, const FabricGraph* fabric,
                   const Job* job, Diagnostics& diagnostics) {
  const protos::Scenario& message = MessageOf(scenario);
  CheckNetwork(scenario, net, diagnostics);
  RefuseWhatNeedsPackets(scenario, {.what = "flow mode", .instead = "mode: PACKET"}, diagnostics);
  constexpr const char* kExpected = "(expected mode: PACKET, or a scenario without it)";
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

void CheckTransport(const ProtoCursor& scenario, const Job* job, Diagnostics& diagnostics) {
  const protos::Scenario& message = MessageOf(scenario);
  const NetworkStackTraits* const traits = FindNetworkStackTraits(message.transport());
  if (traits == nullptr || traits->sends_packets) return;
  const std::string transport = fmt::format("transport {}", Quote(message.transport()));
  RefuseWhatNeedsPackets(scenario, {.what = transport, .instead = "transport: \"rdma\""},
                         diagnostics);
  for (const char* field : {"congestion_control", "window"}) {
    if (!message.has_nic() || !scenario.Child("nic").Has(field)) continue;
    scenario.Child("nic").Error(
        diagnostics, field,
        fmt::format("is of queue pairs, and {} has none (expected transport: \"rdma\", or a "
                    "scenario without it)",
                    transport));
  }
  if (job != nullptr && ToleratesLoss(*job)) {
    scenario.Error(diagnostics, "transport",
                   fmt::format("{} loses no packets, so a loss_tolerance has no effect (expected "
                               "\"rdma\", or no loss_tolerance)",
                               Quote(message.transport())));
  }
}

}  // namespace railyard
