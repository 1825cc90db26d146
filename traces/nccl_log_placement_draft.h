// SPDX-License-Identifier: GPL-2.0-only
// What the passes of the placement (traces/nccl_log_placement.h) fill in one after the other. It
// begins with what the lines of each process say by themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/import_report.h"
#include "traces/nccl_log_calls.h"
#include "traces/nccl_log_placement.h"

namespace railyard {

struct PlacementDraft {
  // All three outlive this.
  PlacementDraft(const LoggedCalls& logged_calls, ImportReport& import_report,
                 Diagnostics& findings);

  const CommunicatorHandle& Handle(uint32_t handle) const { return logged.handles[handle]; }
  Endpoint& EndpointOf(uint32_t handle);
  // For findings and sentences.
  std::string Describe(const Endpoint& endpoint) const;
  SourceLocation PlaceOf(const Endpoint& endpoint) const;
  void Assume(std::string sentence) { report.assumed.push_back(std::move(sentence)); }

  // A group is what is taken for one communicator; `name` may be empty.
  uint32_t NewGroup(uint32_t size, const std::string& name);
  void Put(uint32_t handle, uint32_t group);

  const LoggedCalls& logged;
  ImportReport& report;
  Diagnostics& diagnostics;
  Placement placement;
  std::vector<std::optional<uint32_t>> rank_of;  // in the communicator, by handle
  std::vector<bool> crowded;  // by group: holds handles of more than one communicator
};

}  // namespace railyard
