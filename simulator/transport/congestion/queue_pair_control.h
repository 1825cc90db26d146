// SPDX-License-Identifier: GPL-2.0-only
// What a congestion control hears of a queue pair, what it decides, and how a program adds one of
// its own. This header does without ns-3.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "simulator/fabric/telemetry.h"

namespace railyard {

// How fast, or how far ahead, a queue pair may send at the moment.
struct SendLimits {
  static constexpr uint64_t kNoLimit = UINT64_MAX;

  uint64_t rate_bps = kNoLimit;  // of wire bytes
  uint64_t window_bytes = kNoLimit;

  bool operator==(const SendLimits&) const = default;
};

// A queue pair as a control may know it when it is opened.
struct ControlledQueuePair {
  uint64_t line_rate_bps = 0;  // of its port
  uint64_t window_bytes = 0;   // the NIC's own limit
  uint32_t mtu_bytes = 0;
  uint32_t full_packet_wire_bytes = 0;
  // From a packet of the MTU being read from memory until its ACK is back, on an idle fabric.
  int64_t base_rtt_ps = 0;
  uint32_t hop_count = 0;  // links from the sender's memory to the receiving NIC
};

// An ACK, as its queue pair's control sees it.
struct AckInfo {
  int64_t now_ps = 0;
  int64_t rtt_ps = 0;                 // since the packet that caused it was read from memory
  uint32_t acknowledged_packets = 0;  // not known to have arrived before
  uint32_t marked_packets = 0;        // that came in marked since the last ACK was sent
  uint32_t expected_sequence = 0;
  uint32_t next_sequence = 0;  // what the queue pair sends next
  std::span<const HopTelemetry> telemetry{};
};

// The signals that a control reacts to; NICs neither make nor pass on what no control needs.
struct CongestionNeeds {
  bool cnp = false;
  bool acknowledgements = false;
  bool every_packet = false;  // acknowledged, whatever the NIC's coalescing
  bool telemetry = false;     // on acknowledgements
};

// Controls one queue pair: sets its limits when something happens to it. There are no timer
// events; a control whose timers would have run since the last call does at the next call what they
// would have done.
class QueuePairControl {
 public:
  virtual ~QueuePairControl() = default;

  // A packet is sent; called only while the rate is limited.
  virtual void OnSend(int64_t /*now_ps*/, uint32_t /*wire_bytes*/) {}
  virtual void OnAcknowledged(const AckInfo& /*ack*/) {}
  virtual void OnCnp(int64_t /*now_ps*/) {}
  // A NACK asked for a repetition.
  virtual void OnNack(int64_t /*now_ps*/) {}
  // The retransmission timer ran out.
  virtual void OnTimeout(int64_t /*now_ps*/) {}

  const SendLimits& limits() const { return limits_; }

 protected:
  // Without a call a queue pair has no limits but its port's rate and its NIC's window.
  void SetLimits(const SendLimits& limits) { limits_ = limits; }

 private:
  SendLimits limits_;
};

using QueuePairControlFactory =
    std::function<std::unique_ptr<QueuePairControl>(const ControlledQueuePair&)>;

// Adds a control, which scenarios then name in nic.congestion_control.registered. `make` is called
// once per queue pair of a run. Nothing that crosses the network under it is taken from the replay
// cache. A name that is taken is replaced.
void RegisterCongestionControl(const std::string& name, const CongestionNeeds& needs,
                               QueuePairControlFactory make);
std::vector<std::string> RegisteredCongestionControls();

}  // namespace railyard
