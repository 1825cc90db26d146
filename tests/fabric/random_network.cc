// SPDX-License-Identifier: GPL-2.0-only
#include "tests/fabric/random_network.h"

#include <algorithm>
#include <memory>

#include <gtest/gtest.h>

#include <ns3/boolean.h>
#include <ns3/double.h>
#include <ns3/enum.h>
#include <ns3/integer.h>
#include <ns3/simulator.h>
#include <ns3/uinteger.h>

#include "simulator/event_order/event_order.h"
#include "tests/fabric/switch_attributes.h"

namespace railyard::testing {
namespace {

class RandomNetwork : public PacketSink {
 public:
  explicit RandomNetwork(const RandomCase& random_case)
      : random_(random_case.seed), engine_(FabricSimulatorImpl::Get()) {
    DrawFabric();
    // If longer routes have a class for each cable, every other case uses them.
    if (random_case.seed % 2 == 0) graph_.deadlock_avoidance = DeadlockAvoidance::kHopClasses;
    DrawNetwork(random_case);
    DrawPaths();
    DrawLoad();
  }
  ~RandomNetwork() override {
    network_ = nullptr;
    ns3::Simulator::Destroy();
  }

  RandomOutcome Run() {
    engine_.Run();
    network_->CheckConservation();
    RandomOutcome outcome;
    const NetworkCounters& counters = network_->counters();
    outcome.trajectory_hash = network_->taps().trajectory_hash();
    auto& figures = outcome.figures;
    for (const uint64_t figure :
         {counters.packets, counters.packet_hops, counters.control_hops, counters.injected_bytes,
          counters.delivered_bytes, counters.replicated_bytes, counters.reduced_bytes,
          counters.ecn_marked, counters.xoff_frames, counters.xon_frames,
          static_cast<uint64_t>(counters.pfc_pause_ps), released_, release_hash_, echo_hash_,
          static_cast<uint64_t>(last_ps_), network_->live_packets()}) {
      figures.push_back(figure);
    }
    for (const uint64_t dropped : counters.dropped_packets) figures.push_back(dropped);
    for (LinkId id{0}; id < graph_.link_count(); ++id) {
      const LinkCounters link = network_->CountersOfLink(id);
      figures.push_back(link.packets);
      figures.push_back(link.dropped_packets);
      figures.push_back(static_cast<uint64_t>(link.paused_ps));
      figures.push_back(network_->IsHeld(id));
      figures.push_back(network_->buffers().AccountBytes(id));
    }
    for (const HoldReport& report : network_->hold_reports()) {
      figures.push_back(static_cast<uint64_t>(report.time_ps));
      figures.push_back(report.link);
      figures.push_back(report.cycle.size());
    }
    EXPECT_EQ(counters.injected_bytes + counters.replicated_bytes,
              counters.delivered_bytes + counters.reduced_bytes + counters.dropped_data_bytes() +
                  network_->InFlightBytes());
    outcome.general_hops = counters.general_hops;
    outcome.replicated_bytes = counters.replicated_bytes;
    outcome.reduced_bytes = counters.reduced_bytes;
    outcome.xoff_frames = counters.xoff_frames;
    outcome.ecn_marked = counters.ecn_marked;
    outcome.dropped_for_buffers =
        counters.dropped_packets[static_cast<size_t>(DropReason::kBufferFull)] +
        counters.dropped_packets[static_cast<size_t>(DropReason::kHeadroomFull)];
    outcome.holds = network_->hold_reports().size();
    for (LinkId id{0}; id < graph_.link_count(); ++id) {
      outcome.sent += network_->CountersOfLink(id).packets;
    }
    return outcome;
  }

 private:
  static constexpr uint32_t kGroup = 0;

  uint64_t Draw(uint64_t bound) { return random_() % bound; }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[Draw(values.size())];
  }

  void DrawFabric() {
    const auto switch_count = 1 + Draw(4);
    for (uint64_t i = 0; i < switch_count; ++i) {
      switches_.push_back(
          graph_.AddDevice({.name = "switch" + std::to_string(i),
                            .kind = DeviceKind::kSwitch,
                            .server = ServerIndex::kNone,
                            .local_index = -1,
                            .forwarding_latency_ps = OneOf<int64_t>({0, 100'000, 300'000})}));
    }
    // A line of switches, so that all is joined, and a ring every now and then.
    const auto cable = [&](DeviceId a, DeviceId b) {
      graph_.AddCable(a, b,
                      {Tier::kLeafSpine, OneOf<uint64_t>({100, 200, 400}) * 1'000'000'000,
                       OneOf<int64_t>({0, 5'000, 50'000, 271'000}), 1});
    };
    for (size_t i = 0; i + 1 < switches_.size(); ++i) cable(switches_[i], switches_[i + 1]);
    if (switches_.size() > 2 && Draw(2) == 0) cable(switches_.back(), switches_.front());
    const auto nic_count = 3 + Draw(8);
    for (uint64_t i = 0; i < nic_count; ++i) {
      const auto server = static_cast<int32_t>(i);
      const std::string prefix = "server" + std::to_string(i) + "/";
      const DeviceId gpu = graph_.AddDevice({.name = prefix + "gpu0",
                                             .kind = DeviceKind::kGpu,
                                             .server = ServerIndex{server},
                                             .local_index = 0,
                                             .forwarding_latency_ps = 0});
      const DeviceId nic = graph_.AddDevice({.name = prefix + "nic0",
                                             .kind = DeviceKind::kNic,
                                             .server = ServerIndex{server},
                                             .local_index = 0,
                                             .forwarding_latency_ps = 0});
      // Some hosts take less than their cable brings.
      graph_.AddCable(gpu, nic,
                      {Tier::kHost, OneOf<uint64_t>({50, 440, 440}) * 1'000'000'000, 20'000, 1});
      const DeviceId leaf = switches_[Draw(switches_.size())];
      graph_.AddCable(nic, leaf,
                      {Tier::kNicLeaf, OneOf<uint64_t>({100, 400}) * 1'000'000'000,
                       OneOf<int64_t>({0, 25'000, 145'000}), 1});
      gpus_.push_back(gpu);
      nics_.push_back(nic);
      leaves_.push_back(leaf);
    }
    // An island of the first GPUs.
    const DeviceId nvswitch = graph_.AddDevice({.name = "server0/nvswitch0",
                                                .kind = DeviceKind::kNvSwitch,
                                                .server = ServerIndex{0},
                                                .local_index = 0,
                                                .forwarding_latency_ps = 100'000});
    for (size_t i = 0; i < 3; ++i) {
      graph_.AddCable(gpus_[i], nvswitch, {Tier::kNvlink, 200'000'000'000, 200'000, 1});
    }
  }

  void DrawNetwork(const RandomCase& random_case) {
    network_ = ns3::CreateObject<FabricNetwork>();
    network_->SetAttribute("Form", ns3::EnumValue(static_cast<int>(random_case.form)));
    network_->SetAttribute("TrajectoryHash", ns3::BooleanValue(true));
    network_->SetAttribute("NetworkFlowControl",
                           ns3::EnumValue(static_cast<int>(random_case.flow_control)));
    network_->SetAttribute("CreditBytes", ns3::UintegerValue(OneOf({2'000u, 9'000u, 60'000u})));
    network_->SetAttribute("NvlinkCreditBytes",
                           ns3::UintegerValue(OneOf({5'000u, 20'000u, 65'536u})));
    network_->SetAttribute("StormThresholdPs", ns3::IntegerValue(2 * kPsPerUs));
    network_->Build(graph_, engine_);
    BufferSettings settings;
    settings.buffer_bytes = OneOf<uint64_t>({15'000, 60'000, 400'000});
    settings.alpha = OneOf({0.125, 0.5, 1.0, 8.0});
    settings.xon_offset_bytes = OneOf<uint64_t>({0, 3'000, 20'000});
    settings.headroom_scale = OneOf({0.0, 0.2, 1.0, 1.0});
    settings.ecn_kmin_bytes = OneOf<uint64_t>({0, 500, 2'000});
    settings.ecn_kmax_bytes = settings.ecn_kmin_bytes + 2'000;
    for (const DeviceId id : switches_) SetBuffer(*network_->GetSwitch(id), settings);
    network_->SetReceiveBuffers(settings);
    network_->Configure();
    network_->telemetry().Enable();
    network_->SetSink(*this);
    engine_.Register(event_order::kFault, {.name = "actions"}, &RandomNetwork::RunAction, this);
    engine_.Register(event_order::kQueuePort, {.name = "actions"}, &RandomNetwork::RunAction, this);
  }

  // From NIC or GPU to NIC or GPU, along the line of switches.
  void DrawPaths() {
    for (int i = 0; i < 12; ++i) {
      const size_t from = Draw(nics_.size());
      size_t to = Draw(nics_.size());
      if (to == from) to = (to + 1) % nics_.size();
      std::vector<LinkId> links;
      const auto go = [&](DeviceId a, DeviceId b) { links.push_back(*graph_.FindLink(a, b)); };
      if (Draw(2) == 0) go(gpus_[from], nics_[from]);
      go(nics_[from], leaves_[from]);
      const auto place = [&](DeviceId device) {
        return std::find(switches_.begin(), switches_.end(), device) - switches_.begin();
      };
      auto at = place(leaves_[from]);
      const auto end = place(leaves_[to]);
      while (at != end) {
        const auto next = at < end ? at + 1 : at - 1;
        go(switches_[static_cast<size_t>(at)], switches_[static_cast<size_t>(next)]);
        at = next;
      }
      go(leaves_[to], nics_[to]);
      if (Draw(2) == 0) go(nics_[to], gpus_[to]);
      paths_.push_back(network_->AddPath(links));
    }
    const DeviceId nvswitch = *graph_.FindDevice("server0/nvswitch0");
    for (size_t i = 1; i < 3; ++i) {
      nvlink_paths_.push_back(network_->AddPath(
          {*graph_.FindLink(gpus_[i], nvswitch), *graph_.FindLink(nvswitch, gpus_[0])}));
    }
    // And the same GPUs as a group: every one multicasts, and sends operands to the first.
    std::vector<LinkId> up_links;
    std::vector<LinkId> down_links;
    for (size_t i = 0; i < 3; ++i) {
      up_links.push_back(*graph_.FindLink(gpus_[i], nvswitch));
      down_links.push_back(*graph_.FindLink(nvswitch, gpus_[i]));
    }
    network_->reduction().AddSwitchGroup(3, up_links);
    for (const LinkId up : up_links) {
      std::vector<LinkId> fan_out = {up};
      fan_out.insert(fan_out.end(), down_links.begin(), down_links.end());
      multicast_paths_.push_back({network_->AddPath(fan_out).first, 2});
      operand_paths_.push_back(network_->AddPath({up, down_links[0]}));
    }
  }

  void DrawLoad() {
    // Times on a coarse grid, so that many things happen at the same picosecond.
    const auto time = [&] { return static_cast<int64_t>(Draw(3'000)) * 10'000; };
    for (int burst = 0; burst < 60; ++burst) {
      const int64_t at_ps = time();
      const bool is_nvlink = Draw(6) == 0;
      const PathRef path =
          is_nvlink ? nvlink_paths_[Draw(nvlink_paths_.size())] : paths_[Draw(paths_.size())];
      const auto kind =
          is_nvlink
              ? PacketKind::kNvlinkWrite
              : OneOf({PacketKind::kNetworkData, PacketKind::kNetworkData, PacketKind::kNetworkData,
                       PacketKind::kAck, PacketKind::kCnp, PacketKind::kClearToSend});
      const auto count = 1 + Draw(40);
      const auto bytes =
          IsData(kind) ? OneOf<uint16_t>({100, 1'000, 4'178}) : OneOf<uint16_t>({64, 86});
      const auto flow = static_cast<uint32_t>(burst);
      Act(at_ps, OneOf({event_order::kFault, event_order::kQueuePort}), [=, this] {
        for (uint32_t i = 0; i < count; ++i) Inject(path, flow, i, kind, bytes);
      });
    }
    for (int burst = 0; burst < 8; ++burst) {
      const PathRef path = multicast_paths_[Draw(3)];
      const auto count = static_cast<uint32_t>(1 + Draw(30));
      const auto bytes = OneOf<uint16_t>({100, 1'000, 4'178});
      const auto kind =
          Draw(4) == 0 ? PacketKind::kNvlinkReadRequest : PacketKind::kNvlinkMulticast;
      Act(time(), event_order::kQueuePort, [=, this] {
        for (uint32_t i = 0; i < count; ++i) Inject(path, kGroup, i, kind, bytes);
      });
    }
    uint32_t first_piece = 0;
    for (int burst = 0; burst < 6; ++burst) {
      const auto count = static_cast<uint32_t>(1 + Draw(30));
      const auto bytes = OneOf<uint16_t>({100, 1'000, 4'178});
      for (const PathRef path : operand_paths_) {
        Act(time(), event_order::kQueuePort, [=, this] {
          for (uint32_t i = 0; i < count; ++i) {
            Inject(path, kGroup, first_piece + i, PacketKind::kNvlinkOperand, bytes);
          }
        });
      }
      first_piece += count;
    }
    for (uint64_t i = Draw(4); i > 0; --i) {
      const auto link = static_cast<LinkId>(Draw(graph_.link_count()));
      const int64_t at_ps = time();
      Act(at_ps, event_order::kFault, [=, this] { network_->SetLinkUp(link, false); });
      Act(at_ps + 700'000, event_order::kFault, [=, this] { network_->SetLinkUp(link, true); });
    }
    for (uint64_t i = Draw(4); i > 0; --i) {
      const auto link = static_cast<LinkId>(Draw(graph_.link_count()));
      const uint64_t rate_bps = graph_.link(link).rate_bps;
      const int64_t at_ps = time();
      Act(at_ps, event_order::kFault, [=, this] { network_->SetLinkRate(link, rate_bps / 3); });
      Act(at_ps + 2'000'000, event_order::kFault,
          [=, this] { network_->SetLinkRate(link, rate_bps); });
    }
    for (uint64_t i = Draw(3); i > 0; --i) {
      const auto link = static_cast<LinkId>(Draw(graph_.link_count()));
      network_->SetLossFilter(link, [](const Packet& packet) { return packet.sequence % 7 == 3; });
    }
    DrawDelaysAndStorms();
    for (int i = 0; i < 20; ++i) {
      Act(time(), event_order::kQueuePort, [this] { network_->CheckConservation(); });
    }
  }

  void DrawDelaysAndStorms() {
    const auto time = [&] { return static_cast<int64_t>(Draw(3'000)) * 10'000; };
    for (uint64_t i = Draw(3); i > 0; --i) {
      const auto link = static_cast<LinkId>(Draw(graph_.link_count()));
      const auto unit_ps = static_cast<int64_t>(Draw(3) * 50'000);
      const int64_t at_ps = time();
      Act(at_ps, event_order::kFault, [=, this] {
        network_->SetDelayFilter(link, [unit_ps](const Packet& packet) {
          return static_cast<int64_t>(packet.sequence % 5) * unit_ps;
        });
      });
      Act(at_ps + 3'000'000, event_order::kFault,
          [=, this] { network_->SetDelayFilter(link, {}); });
    }
    for (uint64_t i = Draw(3); i > 0; --i) {
      const auto link = static_cast<LinkId>(Draw(graph_.link_count()));
      const int64_t at_ps = time();
      Act(at_ps, event_order::kFault, [=, this] { network_->SetPauseStorm(link, true); });
      Act(at_ps + 1'500'000, event_order::kFault,
          [=, this] { network_->SetPauseStorm(link, false); });
    }
  }

  void Act(int64_t time_ps, EventClass event_class, std::function<void()> action) {
    const auto id = static_cast<uint32_t>(actions_.size());
    actions_.push_back(std::move(action));
    engine_.ScheduleFabric(time_ps, event_class, id, id);
  }
  static void RunAction(void* self, uint32_t id) {
    static_cast<RandomNetwork*>(self)->actions_[id]();
  }

  void Inject(PathRef path, uint32_t flow, uint32_t sequence, PacketKind kind, uint16_t bytes) {
    const PacketId index = network_->AllocatePacket();
    Packet& packet = network_->packet(index);
    packet.flow = flow;
    packet.sequence = sequence;
    packet.path = path.first;
    packet.hop_count = path.hop_count;
    packet.kind = kind;
    packet.wire_bytes = bytes;
    packet.payload_bytes = IsData(kind) ? static_cast<uint16_t>(bytes - 82) : uint16_t{0};
    network_->Inject(index);
  }

  void OnPacketAtNic(PacketId index) override {
    const Packet& packet = network_->packet(index);
    if (packet.hop < packet.hop_count) {
      network_->SendOn(index);
    } else {
      Consume(index);
    }
  }
  void OnPacketInMemory(PacketId index) override { Consume(index); }
  void Consume(PacketId index) {
    last_ps_ = engine_.NowPs();
    const Packet& packet = network_->packet(index);
    echo_hash_ = echo_hash_ * 31 + packet.flags;
    if (IsData(packet.kind)) {
      for (const HopTelemetry& hop : network_->telemetry().Of(index)) {
        echo_hash_ = (echo_hash_ * 31 + hop.sent_bytes) * 31 + hop.backlog_bytes;
      }
      network_->Deliver(index);
    } else {
      network_->FreePacket(index);
    }
  }
  void OnPacketDropped(PacketId /*index*/, DropReason reason, LinkId link) override {
    echo_hash_ = echo_hash_ * 31 + static_cast<uint64_t>(reason) * 1'000 + link;
  }
  void OnLinkReleased(LinkId link) override {
    ++released_;
    release_hash_ = (release_hash_ * 31 + link) * 31 + static_cast<uint64_t>(engine_.NowPs());
    EXPECT_FALSE(network_->IsHeld(link));
  }

  std::mt19937_64 random_;
  FabricSimulatorImpl& engine_;
  FabricGraph graph_;
  ns3::Ptr<FabricNetwork> network_;
  std::vector<DeviceId> switches_;
  std::vector<DeviceId> gpus_;
  std::vector<DeviceId> nics_;
  std::vector<DeviceId> leaves_;
  std::vector<PathRef> paths_;
  std::vector<PathRef> nvlink_paths_;
  std::vector<PathRef> multicast_paths_;
  std::vector<PathRef> operand_paths_;
  std::vector<std::function<void()>> actions_;
  uint64_t released_ = 0;
  uint64_t release_hash_ = 0;
  uint64_t echo_hash_ = 0;
  int64_t last_ps_ = 0;
};

}  // namespace

RandomOutcome RunRandomCase(const RandomCase& random_case) {
  RandomNetwork network(random_case);
  return network.Run();
}

}  // namespace railyard::testing
