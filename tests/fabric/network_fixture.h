// SPDX-License-Identifier: GPL-2.0-only
// A network over a fabric made by hand, on the real engine. The test is the network's sink.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ns3/simulator.h>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/fabric/fabric_network.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard::testing {

class NetworkFixture : public ::testing::Test, public PacketSink {
 protected:
  struct Arrived {
    int64_t time_ps;
    uint32_t flow;
    uint32_t sequence;
    bool operator==(const Arrived&) const = default;
  };
  struct Dropped {
    int64_t time_ps;
    uint32_t flow;
    uint32_t sequence;
    DropReason reason;
    LinkId link;
    bool operator==(const Dropped&) const = default;
  };

  void TearDown() override {
    network_ = nullptr;
    ns3::Simulator::Destroy();
  }

  // The fabric is complete: the network is built over it.
  void BuildNetwork() {
    network_ = ns3::CreateObject<FabricNetwork>();
    network_->Build(graph_, engine());
    network_->SetSink(*this);
    engine().Register(kAction, {.name = "actions"}, &NetworkFixture::RunAction, this);
  }

  static FabricSimulatorImpl& engine() { return FabricSimulatorImpl::Get(); }
  FabricNetwork& network() { return *network_; }

  // Before faults, which have clients of their own.
  static constexpr EventClass kAction{2};
  // `action` happens at that picosecond, before all but departures.
  void At(int64_t time_ps, std::function<void()> action) {
    const auto id = static_cast<uint32_t>(actions_.size());
    actions_.push_back(std::move(action));
    engine().ScheduleFabric(time_ps, kAction, id, id);
  }
  void Down(LinkId link, int64_t from_ps, int64_t until_ps) {
    At(from_ps, [this, link] { network().SetLinkUp(link, false); });
    if (until_ps != kNeverPs) At(until_ps, [this, link] { network().SetLinkUp(link, true); });
  }

  DeviceId AddSwitch(const std::string& name, int64_t forwarding_latency_ps = 0) {
    return graph_.AddDevice({.name = name,
                             .kind = DeviceKind::kSwitch,
                             .server = ServerIndex::kNone,
                             .local_index = -1,
                             .forwarding_latency_ps = forwarding_latency_ps});
  }
  DeviceId AddInServer(DeviceKind kind, int32_t server, int32_t local_index,
                       int64_t forwarding_latency_ps = 0) {
    const std::string prefix = "server" + std::to_string(server) + "/";
    const std::string stem = kind == DeviceKind::kGpu   ? "gpu"
                             : kind == DeviceKind::kNic ? "nic"
                                                        : "nvswitch";
    return graph_.AddDevice({.name = prefix + stem + std::to_string(local_index),
                             .kind = kind,
                             .server = ServerIndex{server},
                             .local_index = local_index,
                             .forwarding_latency_ps = forwarding_latency_ps});
  }
  LinkId Link(const std::string& from, const std::string& to) const {
    return graph_.FindLink(graph_.FindDevice(from).value(), graph_.FindDevice(to).value()).value();
  }

  // Injects a packet of `wire_bytes`, `payload_bytes` of them payload, now.
  uint32_t Inject(PathRef path, uint32_t sequence, uint32_t wire_bytes, uint32_t payload_bytes = 0,
                  PacketKind kind = PacketKind::kNetworkData, uint8_t flags = 0) {
    const PacketId index = network().AllocatePacket();
    network().packet(index) = {.flow = 0,
                               .sequence = sequence,
                               .path = path.first,
                               .wire_bytes = static_cast<uint16_t>(wire_bytes),
                               .payload_bytes = static_cast<uint16_t>(payload_bytes),
                               .kind = kind,
                               .hop = 0,
                               .hop_count = path.hop_count,
                               .flags = flags};
    network().Inject(index);
    return index;
  }

  // Injected bytes are delivered, dropped or in flight.
  void ExpectConservation() {
    const NetworkCounters& counters = network().counters();
    EXPECT_EQ(counters.injected_bytes,
              counters.delivered_bytes + counters.dropped_data_bytes() + network().InFlightBytes());
  }

  void OnPacketAtNic(PacketId index) override {
    const Packet& packet = network().packet(index);
    at_nic_.push_back({engine().NowPs(), packet.flow, packet.sequence});
    if (IsData(packet.kind)) {
      network().Deliver(index);
    } else {
      network().FreePacket(index);
    }
  }
  void OnPacketInMemory(PacketId index) override {
    const Packet& packet = network().packet(index);
    at_gpu_.push_back({engine().NowPs(), packet.flow, packet.sequence});
    network().Deliver(index);
  }
  void OnPacketDropped(PacketId index, DropReason reason, LinkId link) override {
    NoteDropped(index, reason, link);
  }
  void NoteDropped(PacketId index, DropReason reason, LinkId link) {
    const Packet& packet = network().packet(index);
    dropped_.push_back({engine().NowPs(), packet.flow, packet.sequence, reason, link});
  }

  FabricGraph graph_;
  std::vector<Arrived> at_nic_;
  std::vector<Arrived> at_gpu_;
  std::vector<Dropped> dropped_;

 private:
  static void RunAction(void* self, uint32_t index) {
    static_cast<NetworkFixture*>(self)->actions_[index]();
  }

  ns3::Ptr<FabricNetwork> network_;
  std::vector<std::function<void()>> actions_;
};

}  // namespace railyard::testing
