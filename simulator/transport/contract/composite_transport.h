// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/transport/contract/transport.h"

namespace railyard {

// Is the base of transports that compose a flow of several flows of other transports, which are its
// parts. Losses and retransmissions of a part are reported as those of the whole flow, which is
// repaired when all its parts are.
class CompositeTransport : public Transport, public MessageSink {
 public:
  void OnPacketLost(uint32_t part, const FlowLoss& loss) final {
    const SinkRef user = UserOf(part);
    user.sink->OnPacketLost(user.number, loss);
  }
  void OnPacketRepeated(uint32_t part, uint32_t payload_bytes) final {
    const SinkRef user = UserOf(part);
    user.sink->OnPacketRepeated(user.number, payload_bytes);
  }
  void OnRetransmission(uint32_t part) final {
    const SinkRef user = UserOf(part);
    user.sink->OnRetransmission(user.number);
  }
  void OnLossRecovered(uint32_t part) final {
    if (HasUnrepairedLoss(FlowOf(part))) return;
    const SinkRef user = UserOf(part);
    user.sink->OnLossRecovered(user.number);
  }

 protected:
  // Returns the flow to which the part belongs.
  virtual FlowId FlowOf(uint32_t part) const = 0;
  // Returns the user of the flow to which the part belongs.
  virtual SinkRef UserOf(uint32_t part) const = 0;
};

}  // namespace railyard
