// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/net_ib_loader.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>

#include <fmt/format.h>

#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/units/units.h"
#include "traces/trace/nccl_version.h"
#include "workloads/nccl/aws_libfabric.h"

namespace railyard {
namespace {

constexpr uint32_t kQueuePairsMax = 128;  // NCCL_IB_MAX_QPS
constexpr uint32_t kDelayMsMax = 1'000'000;
constexpr uint32_t kFirstMergeVersion = 22000;

constexpr const char* kQps = "IB_QPS_PER_CONNECTION";
constexpr const char* kSplit = "IB_SPLIT_DATA_ON_QPS";
constexpr const char* kFailover = "IB_RESILIENCY_PORT_FAILOVER";
constexpr const char* kProbeDelay = "IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY";
constexpr const char* kRecovery = "IB_RESILIENCY_PORT_RECOVERY";
constexpr const char* kStartDelay = "IB_RESILIENCY_PORT_RECOVERY_START_DELAY";
constexpr const char* kAliveTimeout = "IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT";
constexpr const char* kAckTimeout = "IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT";
constexpr const char* kAttemptsMax = "IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX";

// The first version (as ncclGetVersion) that has a variable.
struct Since {
  const char* field;
  uint32_t version;
  const char* text;
};
constexpr std::array<Since, 8> kSince = {{{kSplit, 21800, "2.18"},
                                          {kFailover, 22900, "2.29"},
                                          {kProbeDelay, 22900, "2.29"},
                                          {kRecovery, 23000, "2.30"},
                                          {kStartDelay, 23000, "2.30"},
                                          {kAliveTimeout, 23000, "2.30"},
                                          {kAckTimeout, 23000, "2.30"},
                                          {kAttemptsMax, 23000, "2.30"}}};

// The most ports that a NIC of a GPU has.
size_t PortsMax(const FabricGraph& fabric) {
  size_t ports = 0;
  for (const DeviceId gpu : fabric.gpus()) {
    if (const auto nic = fabric.NicOfGpu(gpu)) {
      ports = std::max(ports, fabric.WiresOfNic(*nic).size());
    }
  }
  return ports;
}

bool HasDirectCables(const FabricGraph& fabric) {
  for (const DeviceId gpu : fabric.gpus()) {
    const auto nic = fabric.NicOfGpu(gpu);
    if (!nic) continue;
    for (const LinkId wire : fabric.WiresOfNic(*nic)) {
      if (fabric.link(wire).tier == Tier::kDirect) return true;
    }
  }
  return false;
}

void CheckPorts(const ProtoCursor& scenario, NetPlugin net, uint32_t version,
                const FabricGraph& fabric, Diagnostics& diagnostics) {
  const ProtoCursor nic = scenario.Child("nic");
  const auto refuse = [&](const std::string& what) {
    nic.Error(diagnostics, "link_aggregation", what);
  };
  if (PortsMax(fabric) < 2) {
    refuse("has no effect on NICs of one port (expected a fabric whose NICs have several)");
  } else if (net == NetPlugin::kIb && version < kFirstMergeVersion) {
    refuse(
        fmt::format("NCCL merges the ports of a NIC from 2.20 on, the job's is {} (expected "
                    "link_aggregation: true)",
                    NcclVersionText(version)));
  } else if (IsValiant(fabric.routing)) {
    refuse(
        fmt::format("false has no place on {} routes, whose detours are not of ports (expected "
                    "true, or a fabric with other routes)",
                    RoutingPolicyName(fabric.routing)));
  } else if (HasDirectCables(fabric)) {
    refuse(
        "false has no place where NICs are cabled to each other (expected true, or switches "
        "between them)");
  }
  // Packets that EFA sprays keep their port.
  if (net != NetPlugin::kIb || !scenario.Has("network")) return;
  const auto& network = scenario.Child("network").As<protos::Network>();
  if (network.has_load_balancing() && network.load_balancing() != protos::Network::ECMP) {
    scenario.Child("network").Error(
        diagnostics, "load_balancing",
        "takes packets to either port of a NIC (expected ECMP, or nic.link_aggregation: true)");
  }
}

// `fields` without `switch_field`, an error each.
void RequireSwitch(const ProtoCursor& nccl, const char* switch_field, bool is_on,
                   std::initializer_list<const char*> fields, Diagnostics& diagnostics) {
  for (const char* field : fields) {
    if (is_on || !nccl.Has(field)) continue;
    nccl.Error(diagnostics, field, fmt::format("has no effect without {}: true", switch_field));
  }
}

}  // namespace

bool AwsLibfabricAggregates(const FabricGraph& fabric) {
  return PortsMax(fabric) < 2 || IsValiant(fabric.routing) || HasDirectCables(fabric);
}

NetIbSettings LoadNetIb(const ProtoCursor& scenario, NetPlugin net, uint32_t version,
                        const NicSettings& nic, const FabricGraph* fabric,
                        Diagnostics& diagnostics) {
  NetIbSettings settings;
  if (net == NetPlugin::kAwsLibfabric) {
    const AwsLibfabricStripes stripes = AwsLibfabricStripesOf(version);
    settings.rails = {.stripe_bytes = stripes.bytes, .takes_all_rails = stripes.are_on_all_rails};
  }
  // Before 2.18 a message went over all queue pairs; 2.18 and 2.19 have the variable, default 1.
  settings.ib_split_data_on_qps = version < 22000;
  const bool is_stated = scenario.Has("nic") && scenario.Child("nic").Has("link_aggregation");
  if (is_stated && !nic.link_aggregation && fabric != nullptr) {
    CheckPorts(scenario, net, version, *fabric, diagnostics);
  }
  if (!scenario.Has("nccl")) return settings;
  const ProtoCursor nccl = scenario.Child("nccl");
  for (const Since& since : kSince) {
    if (!nccl.Has(since.field) || version >= since.version || nccl.IsDoubtful("version")) continue;
    nccl.Error(diagnostics, since.field,
               fmt::format("NCCL has it from {} on, the job's is {}", since.text,
                           NcclVersionText(version)));
  }
  const auto delay_ps = [&](const char* field, int64_t default_ps, uint32_t min) {
    const auto default_ms = static_cast<uint64_t>(default_ps / kPsPerMs);
    return static_cast<int64_t>(nccl.Number(diagnostics, field, default_ms, min, kDelayMsMax)) *
           kPsPerMs;
  };
  const size_t ports = nic.link_aggregation || fabric == nullptr ? 1 : PortsMax(*fabric);
  const auto qps_max = static_cast<uint32_t>(kQueuePairsMax / std::max<size_t>(1, ports));
  settings.ib_qps_per_connection =
      static_cast<uint32_t>(nccl.Number(diagnostics, kQps, 1, 1, qps_max));
  settings.ib_split_data_on_qps = nccl.Flag(kSplit, settings.ib_split_data_on_qps);
  if (nccl.Has(kSplit) && settings.ib_qps_per_connection == 1) {
    nccl.Error(
        diagnostics, kSplit,
        fmt::format("has no effect on one queue pair a device (expected {} of 2 or more)", kQps));
  }
  settings.port_failover = nccl.Flag(kFailover, false);
  settings.failover_probe_delay_ps = delay_ps(kProbeDelay, settings.failover_probe_delay_ps, 0);
  settings.port_recovery = nccl.Flag(kRecovery, false);
  settings.recovery_start_delay_ps = delay_ps(kStartDelay, settings.recovery_start_delay_ps, 0);
  settings.recovery_alive_msg_timeout_ps =
      delay_ps(kAliveTimeout, settings.recovery_alive_msg_timeout_ps, 1);
  settings.recovery_ack_timeout_ps = delay_ps(kAckTimeout, settings.recovery_ack_timeout_ps, 1);
  settings.recovery_attempts_max = static_cast<uint32_t>(
      nccl.Number(diagnostics, kAttemptsMax, settings.recovery_attempts_max, 1, 1'000'000));
  if (settings.port_failover && nic.link_aggregation) {
    nccl.Error(diagnostics, kFailover,
               "has no effect where a NIC is one device (expected nic.link_aggregation: false, "
               "whose ports NCCL merges)");
  }
  RequireSwitch(nccl, kFailover, settings.port_failover, {kProbeDelay, kRecovery}, diagnostics);
  RequireSwitch(nccl, kRecovery, settings.port_recovery,
                {kStartDelay, kAliveTimeout, kAckTimeout, kAttemptsMax}, diagnostics);
  return settings;
}

}  // namespace railyard
