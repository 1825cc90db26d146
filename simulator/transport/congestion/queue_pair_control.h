// SPDX-License-Identifier: GPL-2.0-only
// Declares the interface of a congestion control for one queue pair, and its registration by a
// program that uses the library. This header does not depend on ns-3.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "simulator/fabric/tables/telemetry.h"

namespace railyard {

// Holds the current limits of a queue pair's rate and window.
struct SendLimits {
  static constexpr uint64_t kNoLimit = UINT64_MAX;

  uint64_t rate_bps = kNoLimit;  // of wire bytes
  uint64_t window_bytes = kNoLimit;

  bool operator==(const SendLimits&) const = default;
};

// Holds the properties of a queue pair that its control knows when it is opened.
struct ControlledQueuePair {
  uint64_t line_rate_bps = 0;  // of its port
  uint64_t window_bytes = 0;   // the NIC's own limit
  uint32_t mtu_bytes = 0;
  uint32_t full_packet_wire_bytes = 0;
  // The time from reading a packet of the MTU from memory to the arrival of its ACK, on an idle
  // fabric.
  int64_t base_rtt_ps = 0;
  uint32_t hop_count = 0;  // links from the sender's memory to the receiving NIC
};

// Describes an ACK as the queue pair's control sees it.
struct AckInfo {
  int64_t now_ps = 0;
  int64_t rtt_ps = 0;                 // since the packet that caused it was read from memory
  uint32_t acknowledged_packets = 0;  // not known to have arrived before
  uint32_t marked_packets = 0;        // that arrived marked since the last ACK was sent
  uint32_t expected_sequence = 0;     // the receiver's
  uint32_t next_sequence = 0;         // of the next packet that the queue pair sends
  std::span<const HopTelemetry> telemetry{};
};

// Names the signals that a control reacts to. NICs do not generate or forward signals that no
// control needs. A control whose window can be smaller than the number of packets per ACK must need
// `every_packet`: otherwise the sender waits for its retransmission timer.
struct CongestionNeeds {
  bool cnp = false;
  bool acknowledgements = false;
  bool every_packet = false;  // is acknowledged, regardless of the NIC's coalescing
  bool telemetry = false;     // on acknowledgements
};

// Controls one queue pair: it sets the limits in response to the callbacks. There are no timer
// events: each call must first execute the timer expirations since the last call.
class QueuePairControl {
 public:
  virtual ~QueuePairControl() = default;

  // Called when a packet is sent, but only while the rate is limited.
  virtual void OnSend(int64_t /*now_ps*/, uint32_t /*wire_bytes*/) {}
  virtual void OnAcknowledged(const AckInfo& /*ack*/) {}
  virtual void OnCnp(int64_t /*now_ps*/) {}
  // Called when a NACK requests a retransmission.
  virtual void OnNack(int64_t /*now_ps*/) {}
  // Called when the retransmission timer expires.
  virtual void OnTimeout(int64_t /*now_ps*/) {}

  const SendLimits& limits() const { return limits_; }

 protected:
  // Sets the limits. Until it is called, the port's rate and the NIC's window are the only limits.
  void SetLimits(const SendLimits& limits) { limits_ = limits; }

 private:
  SendLimits limits_;
};

using QueuePairControlFactory =
    std::function<std::unique_ptr<QueuePairControl>(const ControlledQueuePair&)>;

// Registers a control under a name for nic.congestion_control.registered in scenarios. `make` is
// called once per queue pair of a run. Traffic under the control is never taken from the replay
// cache. A control with the same name is replaced.
void RegisterCongestionControl(const std::string& name, const CongestionNeeds& needs,
                               QueuePairControlFactory make);
// Returns the names of all registered controls.
std::vector<std::string> RegisteredCongestionControls();

}  // namespace railyard
