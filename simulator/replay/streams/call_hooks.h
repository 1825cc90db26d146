// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <functional>

#include "simulator/replay/streams/call_table.h"
#include "simulator/units/job_ids.h"

namespace railyard {

// Holds functions that are called when calls and collectives begin and end; an empty one is not
// called. They must be set before the first call begins.
struct CallHooks {
  // Is called for each call that ends, simulated or replayed, in the order in which the ends become
  // known.
  std::function<void(const Call& call, int64_t begin_ps, int64_t end_ps)> on_call_end{};
  // Is called when a collective's first rank begins and when its last rank has ended.
  std::function<void(CollectiveIndex collective, bool has_ended)> on_collective{};
  // Is called when no call is left, possibly more than once. If it is empty,
  // ns3::Simulator::Stop() is called instead.
  std::function<void()> on_all_ended{};
};

}  // namespace railyard
