// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <span>

#include "simulator/execution/connections/connection_table.h"
#include "simulator/transport/contract/message_size.h"
#include "simulator/transport/load_store/nvlink_groups.h"

namespace railyard {

// Handles the sums and copies that NVSwitches make for a lane (NVLink SHARP). A group of the lane's
// connections acts as one flow, which opens when it is first used.
class SwitchSums {
 public:
  // `sums` receives callbacks with the number of the group's first connection, `stores` with that
  // of each connection. All references must outlive this object.
  SwitchSums(NvlinkGroups& groups, ConnectionTable& table, MessageSink& sums, MessageSink& stores)
      : groups_(groups), table_(table), sums_(sums), stores_(stores) {}

  // Requests the sum of the operands that the connections' senders have left in their memories. If
  // there are results, parts of the sum are copied to their receivers as they arrive, and Send()
  // sends the rest.
  void Request(std::span<const ConnectionId> operands, std::span<const ConnectionId> results,
               const MessageSize& size);
  // Opens the group whose sender's stores the switch copies to all receivers, if it is not open.
  // Send() requires an open group.
  void OpenResults(std::span<const ConnectionId> results);
  // Stores a message, or the rest of a requested sum, to all receivers.
  void Send(std::span<const ConnectionId> results, const MessageSize& size);

 private:
  NvlinkGroups& groups_;
  ConnectionTable& table_;
  MessageSink& sums_;
  MessageSink& stores_;
};

}  // namespace railyard
