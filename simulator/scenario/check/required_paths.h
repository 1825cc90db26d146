// SPDX-License-Identifier: GPL-2.0-only
// Checks that a fabric joins the GPUs that communicators connect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/text_proto/text_proto.h"
#include "simulator/transport/nic/nic_settings.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/measures/nic_reach.h"
#include "topologies/routing/routing.h"
#include "traces/trace/trace.h"
#include "workloads/nccl/nccl_planner.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

inline constexpr size_t kUnjoinedReportedMax = 8;
inline constexpr size_t kUnjoinedCountedMax = 10'000;

// Examines pairs; each Require function examines a pair once. A pair that the fabric does not join
// is an error at the field of the scenario's fabric that states the cabling; the error names the
// first communicator that needs the pair. At most kUnjoinedReportedMax errors are reported.
class RequiredPaths {
 public:
  // The scenario, `graph` and `nccl` must outlive this.
  RequiredPaths(const ProtoCursor& scenario, const FabricGraph& graph, const NcclSettings& nccl,
                const NicSettings& nic, Diagnostics& diagnostics);

  // Sets the communicator of the following requirements. Must be called first.
  void SetCommunicator(const TraceCommunicator& communicator) { communicator_ = &communicator; }
  // Returns true after kUnjoinedCountedMax errors. A caller may stop then.
  bool IsEnough() const { return unjoined_ >= kUnjoinedCountedMax; }
  // Reports the number of errors that were not reported, if any.
  void ReportRest();
  // Adds an error at the same field that does not concern a pair.
  void Error(std::string what) { fabric_.Error(diagnostics_, source_, std::move(what)); }

  // Requires the path within their server that NCCL takes between two of the communicator's ranks.
  void RequireInServer(const NcclPlanner& planner, RankIndex from, RankIndex to);
  void RequireNvlink(DeviceId a, DeviceId b);
  // Requires an NVSwitch that is cabled to all of the communicator's GPUs on the server, for
  // reduction and multicast.
  void RequireSharedNvSwitch(ServerIndex server);
  // Requires a NIC with a cable, and returns whether the GPU has one.
  bool RequireNic(DeviceId gpu);
  // Requires NICs, and a path between them.
  void RequireNetwork(DeviceId from, DeviceId to, ConnectionUse use);
  // Requires paths from all GPUs of `from` to those of `to` on other servers. All must have NICs.
  void RequirePaths(const std::vector<DeviceId>& from, const std::vector<DeviceId>& to,
                    ConnectionUse use);

 private:
  bool HasAllPaths();
  bool RequireShortDetours();
  void RequirePath(DeviceId from, DeviceId to, ConnectionUse use);
  void RequirePathsOfPorts(DeviceId from, DeviceId to, const std::string& ends);
  std::string_view Remedy(DeviceId from, DeviceId to, ConnectionUse use) const;
  void Report(DeviceId a, DeviceId b, std::string what);
  const std::string& NameOf(DeviceId device) const { return graph_.device(device).name; }

  const ProtoCursor fabric_;
  const char* const source_;
  const FabricGraph& graph_;
  const NcclSettings& nccl_;
  const bool link_aggregation_;
  Diagnostics& diagnostics_;
  const EcmpRouting routing_;
  NicReach reach_;
  const TraceCommunicator* communicator_ = nullptr;
  std::set<std::pair<const TraceCommunicator*, int32_t>> islands_;  // examined, by server
  // The pairs that have been examined, by the GPUs at both ends.
  std::set<std::pair<DeviceId, DeviceId>> joined_in_server_;
  std::set<std::pair<DeviceId, DeviceId>> joined_by_nvlink_;
  std::set<std::pair<DeviceId, DeviceId>> joined_by_paths_;
  std::optional<bool> has_all_paths_;
  std::optional<bool> has_short_detours_;
  std::set<std::pair<DeviceId, DeviceId>> reported_;
  size_t unjoined_ = 0;
};

}  // namespace railyard
