// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/transport/contract/message_sink.h"

namespace railyard {

// Of what makes one connection of several flows, queue pairs or streams: what becomes of a part's
// packets is told as the connection's.
class PartsListener : public MessageSink {
 public:
  void OnPacketLost(uint32_t part, LinkId link) final {
    listener_.OnPacketLost(ConnectionOf(part), link);
  }
  void OnPacketRepeated(uint32_t part, uint32_t payload_bytes) final {
    listener_.OnPacketRepeated(ConnectionOf(part), payload_bytes);
  }
  void OnRetransmission(uint32_t part) final { listener_.OnRetransmission(ConnectionOf(part)); }
  void OnLossRecovered(uint32_t part) final { listener_.OnLossRecovered(ConnectionOf(part)); }

 protected:
  // `listener` must outlive this.
  explicit PartsListener(MessageSink& listener) : listener_(listener) {}
  PartsListener(const PartsListener&) = delete;
  PartsListener& operator=(const PartsListener&) = delete;
  ~PartsListener() override = default;

  virtual uint32_t ConnectionOf(uint32_t part) const = 0;

  MessageSink& listener_;
};

}  // namespace railyard
