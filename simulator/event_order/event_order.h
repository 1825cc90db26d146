// SPDX-License-Identifier: GPL-2.0-only
// Defines the order of events of one picosecond. Departures come first, so that all other events
// see a port's state after a packet has left it and the next has begun. Other clients may register
// priorities in the gaps.
#pragma once

#include "simulator/engine/fabric_event.h"

namespace railyard::event_order {

//                                                          what happens, and the id of its event
inline constexpr EventClass kDeparture{0};         // a packet's last bit leaves its port: link
inline constexpr EventClass kFault{3};             // a fault begins or ends: fault and which
inline constexpr EventClass kArrival{6};           // a packet's last bit is at the far end: link
inline constexpr EventClass kFlowEnd{7};           // a flow's last byte leaves: bundle of flows
inline constexpr EventClass kFlowArrival{8};       // a flow's message arrives: pipe
inline constexpr EventClass kPauseFrame{9};        // a pause frame takes effect: channel and XON
inline constexpr EventClass kFlowAnswer{10};       // a grant or an acknowledgement arrives: flow
inline constexpr EventClass kLoadStorePort{12};    // a GPU's port may send: port
inline constexpr EventClass kQueuePort{13};        // a NIC's port may serve a queue: port
inline constexpr EventClass kAggregationPort{14};  // a NIC's port may send an operand: port
inline constexpr EventClass kQueueTimer{15};       // a queue's timer runs out: queue
inline constexpr EventClass kRouting{18};          // switches learn of a change: fault and which
inline constexpr EventClass kPost{21};             // a proxy hands over a message: connection
inline constexpr EventClass kChannel{24};          // a lane starts its next slice: lane
inline constexpr EventClass kOperation{27};        // a rank's call begins or goes on: call
inline constexpr EventClass kHoldCheck{30};        // has a link been held too long?: channel
inline constexpr EventClass kLateArrival{33};      // a link with extra delay lets packets go: link
inline constexpr EventClass kLoad{36};             // background traffic is due: flow
inline constexpr EventClass kLook{39};             // a watchdog looks: 0
inline constexpr EventClass kCopy{42};             // a thread has copied: stream and direction
inline constexpr EventClass kFlowRates{45};        // flows' rates change: 0

}  // namespace railyard::event_order
