// SPDX-License-Identifier: GPL-2.0-only
// gpu0 - nic0 - leaf - nic1 - gpu1 with round numbers, and the closed forms of what crosses it.
#pragma once

#include <cstdint>

#include "tests/transport/transport_fixture.h"

namespace railyard::testing {

class RdmaFixture : public TransportFixture {
 protected:
  // HOST cables: 500 Gb/s, 16 ps a byte. Wires: 400 Gb/s, 20 ps a byte. A wire is shorter than a
  // packet, so at most one packet is on it and a link can be cut under exactly one.
  static constexpr int64_t kHostBytePs = 16;
  static constexpr int64_t kWireBytePs = 20;
  static constexpr int64_t kHostDelayPs = 100'000;
  static constexpr int64_t kWireDelayPs = 1'000;
  static constexpr int64_t kNicForwardPs = 200'000;
  static constexpr int64_t kLeafForwardPs = 500'000;
  // MTU 1,024: a first packet of a message has 82 + 16 bytes of headers, others 82. They
  // serialise on the wires in:
  static constexpr uint64_t kMtu = 1'024;
  static constexpr int64_t kFullPs = (1'024 + 82) * kWireBytePs;
  static constexpr int64_t kFirstPs = (1'024 + 82 + 16) * kWireBytePs;
  static constexpr int64_t kAckPs = (82 + 4) * kWireBytePs;
  static constexpr int64_t kClearToSendPs = (64 + 82 + 16) * kWireBytePs;
  // An ACK from NIC to NIC on idle links.
  static constexpr int64_t kAckPathPs = 2 * (kAckPs + kWireDelayPs) + kLeafForwardPs;

  // From a GPU's packet being read until it starts on the wire.
  static constexpr int64_t ReadPs(int64_t wire_ps) {
    return wire_ps / kWireBytePs * kHostBytePs + kHostDelayPs + kNicForwardPs;
  }
  // From a GPU reading the first of a run of `packets` (its first takes `first_ps`, all others
  // kFullPs on a wire) until the last of them is at the other NIC. The wire from the NIC is never
  // idle; the second wire delays all by the first packet's serialisation, no other is longer.
  static constexpr int64_t RunPs(int64_t first_ps, int64_t packets) {
    return ReadPs(first_ps) + first_ps + (packets - 1) * kFullPs + kWireDelayPs + kLeafForwardPs +
           first_ps + kWireDelayPs;
  }
  // From the NIC into the GPU's memory.
  static constexpr int64_t WritePs(int64_t wire_ps) {
    return wire_ps / kWireBytePs * kHostBytePs + kHostDelayPs;
  }
  static constexpr int64_t MessagePs(int64_t packets) {
    return RunPs(kFirstPs, packets) + WritePs(packets == 1 ? kFirstPs : kFullPs);
  }
  // Returns when packet k of a message read from time 0 on starts on the wire of its NIC.
  static constexpr int64_t WireStartPs(int64_t k) {
    return ReadPs(kFirstPs) + (k == 0 ? 0 : kFirstPs + (k - 1) * kFullPs);
  }

  void SetUp() override {
    leaf_ = AddSwitch("leaf0", kLeafForwardPs);
    for (int32_t server = 0; server < 2; ++server) {
      const DeviceId gpu = AddInServer(DeviceKind::kGpu, server, 0);
      const DeviceId nic = AddInServer(DeviceKind::kNic, server, 0, kNicForwardPs);
      graph_.AddCable(gpu, nic, {Tier::kHost, 500'000'000'000, kHostDelayPs, 1});
      graph_.AddCable(nic, leaf_, {Tier::kNicLeaf, 400'000'000'000, kWireDelayPs, 1});
    }
    out_ = Link("server0/nic0", "leaf0");
    down_ = Link("leaf0", "server1/nic0");
    ack_out_ = Link("server1/nic0", "leaf0");
    ack_down_ = Link("leaf0", "server0/nic0");
    to_memory_ = Link("server1/nic0", "server1/gpu0");
  }

  // One queue pair from gpu0 to gpu1, of connection 7.
  void Connect(NicSettings nic) {
    nic.mtu_bytes = kMtu;
    timeout_ps_ = nic.LocalAckTimeoutPs();
    BuildTransports(nic);
    queue_pair_ = Open(7, GpuIndex{0}, GpuIndex{1}, 99);
  }
  // Packet k of a message read from `read_ps` on is lost on its NIC's wire, and nothing else: the
  // link is down for one picosecond half-way through its serialisation.
  void LosePacketOnce(int64_t k, int64_t read_ps = 0) {
    const int64_t cut_ps = read_ps + WireStartPs(k) + kFullPs / 2;
    Down(out_, cut_ps, cut_ps + 1);
  }

  DeviceId leaf_{0};
  LinkId out_{0};
  LinkId down_{0};
  LinkId ack_out_{0};
  LinkId ack_down_{0};
  LinkId to_memory_{0};
  FlowId queue_pair_;
  int64_t timeout_ps_ = 0;
};

}  // namespace railyard::testing
