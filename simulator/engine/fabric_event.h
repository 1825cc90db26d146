// SPDX-License-Identifier: GPL-2.0-only
// Fabric events: the plain records that carry a simulation (ns-3 events run beside them).
//
// The total order of events is intrinsic: (time, class, entity id). No insertion counter takes
// part, so a result cannot depend on when an event was scheduled or in which form. The pair (class,
// id) must be unique among the events of one picosecond, except for stale ones their handler
// ignores.
#pragma once

#include <cstdint>

namespace railyard {

// A class of events: its value is its priority. Among the events of one picosecond those with a
// lower value happen first. Clients choose a value and register it (FabricSimulatorImpl::Register).
enum class EventClass : uint8_t {
  kNs3 = 63,  // ordinary ns-3 events, in the order of their insertion
};
inline constexpr int kEventClassCount = 64;

// The meaning of a pending event of a class for the state of the simulation.
enum class PendingMeans : uint8_t {
  kUnderWay,  // something is in progress
  kNothing,   // it passes without effect, or its effect is known already
  kObserver,  // an observer will look at the run, and may end it
  kChange,    // the conditions of the simulation will change
  kAnything,  // not known
};

struct EventTraits {
  const char* name = "";  // of the events, in the plural: "arrivals"
  PendingMeans pending = PendingMeans::kUnderWay;
};

// Runs one event. `context` is what was registered; `target` what was scheduled. The time is
// FabricSimulatorImpl::NowPs().
using EventHandler = void (*)(void* context, uint32_t target);

}  // namespace railyard
