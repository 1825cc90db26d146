// SPDX-License-Identifier: GPL-2.0-only
// The tables of a small fabric without a network around them, for tests that construct one part of
// a fabric alone: two NICs on a switch, every link at 100 Gb/s (80 ps a byte) with 1 ns of
// propagation.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ns3/simulator.h>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/fabric/buffer/channel_accounts.h"
#include "simulator/fabric/tables/fabric_tables.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard::testing {

class TablesFixture : public ::testing::Test {
 protected:
  static constexpr uint64_t kRateBps = 100'000'000'000;
  static constexpr int64_t kPsPerByte = 80;
  static constexpr int64_t kPropagationPs = 1'000;

  void SetUp() override {
    AddDevices();
    tables_.Attach(graph_, engine());
    tables_.ResetRows();
    for (LinkId link{0}; link < graph_.link_count(); ++link) {
      tables_.links[link].delay_ps = graph_.link(link).propagation_ps;
    }
    accounts_.Reset(tables_.channel_count());
    engine().Register(kAction, {.name = "actions"}, &TablesFixture::RunAction, this);
  }
  void TearDown() override { ns3::Simulator::Destroy(); }

  virtual void AddDevices() {
    left_ = AddDevice("server0/nic0", DeviceKind::kNic, 0, 0);
    right_ = AddDevice("server1/nic0", DeviceKind::kNic, 1, 0);
    leaf_ = AddDevice("leaf", DeviceKind::kSwitch, -1, -1);
    from_left_ = AddCable(left_, leaf_, Tier::kNicLeaf);
    from_right_ = AddCable(right_, leaf_, Tier::kNicLeaf);
    to_left_ = graph_.ReverseLink(from_left_);
    to_right_ = graph_.ReverseLink(from_right_);
  }
  DeviceId AddDevice(const std::string& name, DeviceKind kind, int32_t server,
                     int32_t local_index) {
    return graph_.AddDevice({.name = name,
                             .kind = kind,
                             .server = server < 0 ? ServerIndex::kNone : ServerIndex{server},
                             .local_index = local_index});
  }
  // Returns the link from `from` to `to`.
  LinkId AddCable(DeviceId from, DeviceId to, Tier tier) {
    const uint32_t cable = graph_.AddCable(from, to, {tier, kRateBps, kPropagationPs, 1});
    return graph_.cables()[cable].forward;
  }

  static FabricSimulatorImpl& engine() { return FabricSimulatorImpl::Get(); }
  static constexpr EventClass kAction{2};
  void At(int64_t time_ps, std::function<void()> action) {
    const auto id = static_cast<uint32_t>(actions_.size());
    actions_.push_back(std::move(action));
    engine().ScheduleFabric(time_ps, kAction, id, id);
  }

  // A packet that is on `link` or waits for it.
  PacketId MakePacket(LinkId link, uint32_t wire_bytes,
                      PacketKind kind = PacketKind::kNetworkData) {
    const PacketId index = tables_.packets.Allocate();
    Packet& packet = tables_.packets[index];
    packet.link = link;
    packet.kind = kind;
    packet.wire_bytes = static_cast<uint16_t>(wire_bytes);
    return index;
  }
  // Makes a packet that waits for `egress` in the device it came to by `ingress`.
  PacketId MakePacketFrom(VirtualChannelId ingress, LinkId egress, uint32_t wire_bytes) {
    const PacketId index = MakePacket(egress, wire_bytes);
    tables_.packets[index].ingress = ingress;
    return index;
  }

  FabricGraph graph_;
  FabricTables tables_;
  ChannelAccounts accounts_;
  DeviceId left_{0};
  DeviceId right_{0};
  DeviceId leaf_{0};
  LinkId from_left_{0};
  LinkId from_right_{0};
  LinkId to_left_{0};
  LinkId to_right_{0};

 private:
  static void RunAction(void* self, uint32_t index) {
    static_cast<TablesFixture*>(self)->actions_[index]();
  }

  std::vector<std::function<void()>> actions_;
};

}  // namespace railyard::testing
