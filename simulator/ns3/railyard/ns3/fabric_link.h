// SPDX-License-Identifier: GPL-2.0-only
// Represents one direction of a cable of a fabric as an ns-3 object with trace sources. Links that
// nobody traces cost nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <ns3/data-rate.h>
#include <ns3/object.h>
#include <ns3/traced-callback.h>

#include "railyard/ns3/trace_events.h"

namespace railyard {

// Has the attributes Name and DataRate. Its trace source PacketReceived fires when a packet's
// arrival at the link's far end is processed, which is after the forwarding latency of a switch or
// host there; PacketLost fires for packets that the link itself loses.
class FabricLink : public ns3::Object {
 public:
  static ns3::TypeId GetTypeId();
  FabricLink() = default;

  const std::string& name() const { return name_; }

  // Only the fabric calls these.
  void Describe(const std::string& name, uint64_t rate_bps, std::function<void()> add_tap);
  // Starts the notifications of packets.
  void AddTap() const { add_tap_(); }
  void NotifyPacket(const PacketEvent& event) const {
    event.reason.empty() ? received_(event) : lost_(event);
  }
  bool is_traced() const { return is_traced_; }

 private:
  std::string GetName() const { return name_; }
  ns3::DataRate GetDataRate() const { return ns3::DataRate(rate_bps_); }
  void OnConnect();

  std::string name_;
  uint64_t rate_bps_ = 0;
  std::function<void()> add_tap_;
  bool is_traced_ = false;
  ns3::TracedCallback<const PacketEvent&> received_;
  ns3::TracedCallback<const PacketEvent&> lost_;
};

}  // namespace railyard
