// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_placement_draft.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace railyard {
namespace {

// A process drives several devices if its communicators name several. The device of an
// Init line counts before the [DEV] of a call, which is the calling thread's device of the moment.
void FindEndpoints(PlacementDraft& draft) {
  for (uint32_t p = 0; p < draft.logged.processes.size(); ++p) {
    const LogProcess& process = draft.logged.processes[p];
    const bool all_have_init =
        std::all_of(process.handles.begin(), process.handles.end(),
                    [&](uint32_t h) { return draft.Handle(h).init_device.has_value(); });
    const auto device_of = [&](uint32_t handle) {
      return all_have_init                      ? draft.Handle(handle).init_device
             : draft.Handle(handle).call_device ? draft.Handle(handle).call_device
                                                : draft.Handle(handle).init_device;
    };
    std::map<std::optional<uint32_t>, uint32_t> endpoint_of_device;
    for (const uint32_t handle : process.handles) {
      const auto device = device_of(handle);
      const auto [entry, is_new] = endpoint_of_device.try_emplace(
          device, static_cast<uint32_t>(draft.placement.endpoints.size()));
      if (is_new) draft.placement.endpoints.push_back({.process = p, .device = device, .rank = {}});
      draft.placement.endpoint_of[handle] = entry->second;
    }
  }
}

// The rank that all `Init timings` of the process and device for this size agree on.
std::optional<uint32_t> RankFromTimings(uint32_t handle, PlacementDraft& draft) {
  const auto& timings = draft.logged.processes[draft.Handle(handle).process].timings;
  const auto& device = draft.EndpointOf(handle).device;
  std::optional<uint32_t> rank;
  for (auto stated = timings.lower_bound({draft.Handle(handle).rank_count, std::nullopt});
       stated != timings.end() && stated->first.first == draft.Handle(handle).rank_count;
       ++stated) {
    const auto& stated_device = stated->first.second;
    if (device && stated_device && *device != *stated_device) continue;
    if (!stated->second || (rank && *rank != *stated->second)) return std::nullopt;
    rank = stated->second;
  }
  return rank;
}

void FindHandleRanks(PlacementDraft& draft) {
  for (uint32_t h = 0; h < draft.logged.handles.size(); ++h) {
    draft.rank_of[h] = draft.Handle(h).rank;
    if (!draft.rank_of[h]) draft.rank_of[h] = RankFromTimings(h, draft);
  }
}

}  // namespace

PlacementDraft::PlacementDraft(const LoggedCalls& logged_calls, ImportReport& import_report,
                               Diagnostics& findings)
    : logged(logged_calls), report(import_report), diagnostics(findings) {
  const size_t handles = logged.handles.size();
  placement.endpoint_of.resize(handles);
  placement.communicator_of.resize(handles);
  placement.communicator_rank_of.resize(handles);
  placement.unplaced.resize(handles);
  rank_of.resize(handles);
  FindEndpoints(*this);
  FindHandleRanks(*this);
}

Endpoint& PlacementDraft::EndpointOf(uint32_t handle) {
  return placement.endpoints[placement.endpoint_of[handle]];
}

std::string PlacementDraft::Describe(const Endpoint& endpoint) const {
  const LogProcess& process = logged.processes[endpoint.process];
  return endpoint.device ? fmt::format("{}:{} [{}]", process.host, process.pid, *endpoint.device)
                         : fmt::format("{}:{}", process.host, process.pid);
}

SourceLocation PlacementDraft::PlaceOf(const Endpoint& endpoint) const {
  const LogProcess& process = logged.processes[endpoint.process];
  return {.file = report.files[process.first_file].path,
          .line = static_cast<int>(std::min<uint64_t>(process.first_line, INT32_MAX))};
}

uint32_t PlacementDraft::NewGroup(const CommunicatorHandle& first) {
  const auto index = static_cast<uint32_t>(placement.communicators.size());
  JoinedCommunicator group;
  group.size = first.rank_count;
  group.name = first.comm_id.empty() ? fmt::format("comm{}", index) : first.comm_id;
  placement.communicators.push_back(std::move(group));
  crowded.push_back(false);
  return index;
}

void PlacementDraft::Put(uint32_t handle, uint32_t group) {
  placement.communicators[group].handles.push_back(handle);
  placement.communicator_of[handle] = group;
}

}  // namespace railyard
