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

// In the order in which they happen within one picosecond. Departures come first: whoever looks at
// a port knows that what ends now has ended, and what follows has begun.
enum class EventClass : uint8_t {
  kDeparture = 0,     // a packet's last bit leaves its port         id: link
  kFault = 1,         // a link changes state                       id: fault transition
  kArrival = 2,       // last bit of a packet at a link's far end   id: link
  kPauseFrame = 3,    // a flow-control frame takes effect          id: 2 x paused link, + 1 for XON
  kPort = 4,          // a sending port may serve its next packet    id: port
  kTimer = 5,         // retransmission timer of a queue pair        id: queue pair
  kRouting = 6,       // switches learn of a topology change         id: fault transition
  kPost = 7,          // a proxy hands a message to a queue pair     id: connection
  kChannel = 8,       // a channel's CTA starts its next slice       id: channel run
  kOperation = 9,     // a rank's stream starts its next operation   id: stream
  kHoldCheck = 10,    // has a link been held for too long?          id: link
  kLateArrival = 11,  // a link with extra delay lets packets go      id: link
  kLoad = 12,         // background traffic posts its next message    id: flow
  kLook = 13,         // somebody looks whether anything goes on      id: 0
  kCopy = 14,         // a thread has copied to or from a kernel socket   id: stream and direction
  kNs3 = 15,          // an ordinary ns-3 event                      id: insertion order, as in ns-3
};
inline constexpr int kEventClassCount = 16;

// Runs one event. `context` is what was registered; `target` what was scheduled. The time is
// FabricSimulatorImpl::NowPs().
using EventHandler = void (*)(void* context, uint32_t target);

}  // namespace railyard
