// SPDX-License-Identifier: GPL-2.0-only
// NICs on one switch. Arrivals are counted, not listed.
#pragma once

#include <string>
#include <vector>

#include <ns3/callback.h>
#include <ns3/double.h>
#include <ns3/enum.h>
#include <ns3/integer.h>
#include <ns3/uinteger.h>

#include "tests/fabric/network_fixture.h"
#include "tests/fabric/switch_attributes.h"

namespace railyard::testing {

class StarFixture : public NetworkFixture {
 protected:
  static constexpr uint64_t kRate = 400'000'000'000;

  // Adds a NIC on the switch "leaf", which is made with the first.
  void AddNic(uint64_t rate_bps = kRate, int64_t propagation_ps = 1'000) {
    if (nics_.empty()) leaf_ = AddSwitch("leaf", 0);
    const auto server = static_cast<int32_t>(nics_.size());
    nics_.push_back(AddInServer(DeviceKind::kNic, server, 0));
    graph_.AddCable(nics_.back(), leaf_, {Tier::kNicLeaf, rate_bps, propagation_ps, 1});
  }
  void BuildStar(const BufferSettings& settings) {
    BuildNetwork();
    SetBuffer(*network().GetSwitch(leaf_), settings);
    network().Configure();
    network().TraceConnectWithoutContext("PauseSent",
                                         ns3::MakeCallback(&StarFixture::OnPause, this));
    network().TraceConnectWithoutContext("EcnMarked",
                                         ns3::MakeCallback(&StarFixture::OnMark, this));
  }
  LinkId Uplink(size_t nic) const { return *graph_.FindLink(nics_[nic], leaf_); }
  LinkId Downlink(size_t nic) const { return *graph_.FindLink(leaf_, nics_[nic]); }
  PathRef PathTo(size_t from, size_t to) { return network().AddPath({Uplink(from), Downlink(to)}); }
  // Packets that enter a path's first queue together.
  struct Burst {
    uint32_t count = 0;
    uint32_t wire_bytes = 0;
    uint32_t flow = 0;
  };
  void InjectMany(PathRef path, const Burst& burst) {
    for (uint32_t i = 0; i < burst.count; ++i) {
      const PacketId index = network().AllocatePacket();
      Packet& packet = network().packet(index);
      packet.flow = burst.flow;
      packet.sequence = i;
      packet.path = path.first;
      packet.hop_count = path.hop_count;
      packet.kind = PacketKind::kNetworkData;
      packet.wire_bytes = static_cast<uint16_t>(burst.wire_bytes);
      packet.payload_bytes = static_cast<uint16_t>(burst.wire_bytes - 82);
      network().Inject(index);
    }
  }
  uint64_t DroppedPackets(DropReason reason) {
    return network().counters().dropped_packets[static_cast<size_t>(reason)];
  }
  virtual void OnPause(const PauseSent& event) { pauses_.push_back(event); }
  virtual void OnMark(const EcnMarked& /*event*/) {}

  DeviceId leaf_{0};
  std::vector<DeviceId> nics_;
  std::vector<PauseSent> pauses_;
};

}  // namespace railyard::testing
