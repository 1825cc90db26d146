// SPDX-License-Identifier: GPL-2.0-only
// Defines the numbers of queues. A queue pair has two: that of its data, from source to
// destination, and that of its grants, which flow the other way. Packets carry the number of their
// queue (Packet::flow).
#pragma once

#include "simulator/transport/contract/transport.h"
#include "simulator/units/identifier.h"

namespace railyard {

using QueueId = Identifier<struct QueueIdTag>;

constexpr QueueId DataQueueOf(FlowId queue_pair) { return QueueId{2 * queue_pair}; }
constexpr QueueId GrantQueueOf(FlowId queue_pair) { return QueueId{2 * queue_pair + 1}; }
constexpr FlowId QueuePairOf(QueueId queue) { return FlowId{queue / 2}; }
constexpr QueueId OtherQueueOf(QueueId queue) { return QueueId{queue ^ 1}; }
constexpr bool IsDataQueue(QueueId queue) { return queue % 2 == 0; }

}  // namespace railyard
