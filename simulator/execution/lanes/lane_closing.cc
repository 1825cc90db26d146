// SPDX-License-Identifier: GPL-2.0-only
// Programs that are ended in the middle, and what is left of them.
#include "simulator/diagnostics/check.h"
#include "simulator/execution/lanes/lane_executor.h"

namespace railyard {

std::vector<uint32_t> LaneExecutor::Close(uint32_t part) {
  std::vector<uint32_t> closed = table_.Close(part);
  if (failover_) failover_->Forget(part);
  for (const uint32_t id : closed) claimants_.erase(id);
  for (uint32_t id = 0; id < lanes_.size(); ++id) {
    const Program& program = active_channels_[lane_programs_[id].channel].program;
    if (table_.executed(program.communicator).part == part) lanes_[id].in_use = false;
  }
  std::erase_if(still_lanes_, [this](uint32_t id) { return !lanes_[id].in_use; });
  return closed;
}

}  // namespace railyard
