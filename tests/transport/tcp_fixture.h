// SPDX-License-Identifier: GPL-2.0-only
// gpu0 - nic0 - leaf - nic1 - gpu1 at 100 Gb/s, and TCP streams between them.
#pragma once

#include <cstdint>

#include "simulator/transport/congestion/congestion_controls.h"
#include "simulator/transport/tcp/tcp_stream.h"
#include "tests/transport/transport_fixture.h"

namespace railyard::testing {

class TcpFixture : public TransportFixture {
 protected:
  static constexpr int64_t kWireBytePs = 80;
  static constexpr int64_t kHostBytePs = 16;
  static constexpr int64_t kWireDelayPs = 5'000'000;
  static constexpr uint32_t kSegment = 1'448;  // MTU 1,500
  static constexpr int64_t kSegmentWireBytes = int64_t{kSegment} + 90;
  static constexpr int64_t kSegmentPs = kSegmentWireBytes * kWireBytePs;

  void SetUp() override {
    const DeviceId leaf = AddSwitch("leaf0");
    for (int32_t server = 0; server < 2; ++server) {
      const DeviceId gpu = AddInServer(DeviceKind::kGpu, server, 0);
      const DeviceId nic = AddInServer(DeviceKind::kNic, server, 0);
      graph_.AddCable(gpu, nic, {Tier::kHost, 500'000'000'000, 0, 1});
      graph_.AddCable(nic, leaf, {Tier::kNicLeaf, 100'000'000'000, kWireDelayPs, 1});
    }
    out_ = Link("server0/nic0", "leaf0");
    ack_out_ = Link("server1/nic0", "leaf0");
  }

  static NicSettings TcpNic() {
    NicSettings nic;
    nic.is_tcp = true;
    nic.mtu_bytes = kSegment;
    nic.ack_every_packets = 2;
    nic.window_bytes = kTcpWindowBytes;
    nic.congestion_control = CongestionControlNamed("CUBIC").value();
    return nic;
  }
  // From a segment being read until its ACK is back, on idle links: from memory to memory.
  static int64_t RoundTripPs() {
    constexpr int64_t kBytePs = 2 * kHostBytePs + 2 * kWireBytePs;
    return (kSegmentWireBytes + 90) * kBytePs + 4 * kWireDelayPs;
  }

  LinkId out_{0};
  LinkId ack_out_{0};
};

}  // namespace railyard::testing
