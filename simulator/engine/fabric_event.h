// SPDX-License-Identifier: GPL-2.0-only
// Declares fabric events, the plain records of which a simulation consists. ns-3 events run in
// addition to them.
//
// The total order of events is intrinsic: (time, class, entity id). No insertion counter takes
// part, so a result cannot depend on when an event was scheduled or in which form. The pair (class,
// id) must be unique among the events of one picosecond, except for stale ones their handler
// ignores.
#pragma once

#include <compare>
#include <cstdint>

namespace railyard {

// Identifies a class of events. Its value is its priority: among the events of one picosecond,
// those with a lower value run first. Clients choose a value and register it
// (FabricSimulatorImpl::Register).
enum class EventClass : uint8_t {
  kNs3 = 63,  // ordinary ns-3 events, in the order of their insertion
};
inline constexpr int kEventClassCount = 64;

// States what a pending event of a class means for the state of the simulation.
enum class PendingMeans : uint8_t {
  kUnderWay,  // something is in progress
  kNothing,   // it will have no effect, or its effect is known already
  kObserver,  // an observer will examine the run, and may end it
  kChange,    // the conditions of the simulation will change
  kAnything,  // not known
};

class StateOwner;  // simulator/state/state_registry.h

// States where the state is that events of a class change. While it is unknown, which is the
// default, nothing is replayed.
struct EventState {
  const StateOwner* owner = nullptr;
  // Says why nothing affects the future while no such event is pending; used without an owner.
  const char* why_none = "";

  bool is_known() const { return owner != nullptr || *why_none != '\0'; }
};

struct EventTraits {
  const char* name = "";  // of the events, in the plural: "arrivals"
  PendingMeans pending = PendingMeans::kUnderWay;
  EventState state{};
};

// Marks a place in the total order of events, between those before it and itself.
struct EventPlace {
  int64_t time_ps = 0;
  uint64_t tie = 0;  // class and id; 0 is before all events of the picosecond

  auto operator<=>(const EventPlace&) const = default;
};

// Runs one event. `context` was given at the registration, `target` when the event was scheduled.
// The time is FabricSimulatorImpl::NowPs().
using EventHandler = void (*)(void* context, uint32_t target);

}  // namespace railyard
