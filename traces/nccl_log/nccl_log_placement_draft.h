// SPDX-License-Identifier: GPL-2.0-only
// Holds intermediate state that the passes of the placement (traces/nccl_log/nccl_log_placement.h)
// fill in one after the other. It begins with the statements of each process's lines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/nccl_log/nccl_log_calls.h"
#include "traces/nccl_log/nccl_log_placement.h"
#include "traces/trace/import_report.h"

namespace railyard {

struct PlacementDraft {
  // All three arguments must outlive this.
  PlacementDraft(const LoggedCalls& logged_calls, ImportReport& import_report,
                 Diagnostics& findings);

  const CommunicatorHandle& Handle(uint32_t handle) const { return logged.handles[handle]; }
  Endpoint& EndpointOf(uint32_t handle);
  // Names the endpoint in findings and in sentences of the report.
  std::string Describe(const Endpoint& endpoint) const;
  SourceLocation PlaceOf(const Endpoint& endpoint) const;
  void Assume(std::string sentence) { report.assumed.push_back(std::move(sentence)); }

  // Adds a group, which is a set of handles that are considered one communicator. Its size and name
  // are those of the first handle.
  uint32_t NewGroup(const CommunicatorHandle& first);
  void Put(uint32_t handle, uint32_t group);
  // Puts the handle into the group of the key; the first handle of a key begins a group.
  template <typename Key>
  void PutByKey(uint32_t handle, std::map<Key, uint32_t>& groups,
                const std::type_identity_t<Key>& key) {
    const auto [entry, is_new] = groups.try_emplace(key, 0);
    if (is_new) entry->second = NewGroup(Handle(handle));
    Put(handle, entry->second);
  }

  const LoggedCalls& logged;
  ImportReport& report;
  Diagnostics& diagnostics;
  Placement placement;
  std::vector<std::optional<uint32_t>> rank_of;  // in the communicator, by handle
  std::vector<bool> crowded;  // by group: contains handles of several communicators
};

}  // namespace railyard
