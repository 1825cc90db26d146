// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/nic_loader.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <ns3/string.h>

#include "simulator/diagnostics/names.h"
#include "simulator/scenario/models/model_attributes.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/transport/congestion/congestion_controls.h"
#include "simulator/transport/congestion/registered_control.h"
#include "simulator/transport/nic/nic.h"
#include "simulator/transport/tcp/net_socket_settings.h"
#include "simulator/transport/tcp/tcp_stream.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr uint32_t kIbMtuBytesMax = 4096;
// Ethernet's MTU (IEEE 802.3), the smallest that every host accepts (RFC 791), and the largest that
// switches carry.
constexpr uint32_t kEthernetMtuBytes = 1500;
constexpr uint32_t kIpv4MtuBytesMin = 576;
// Fewer than the ten segments of a first window (RFC 6928).
constexpr uint32_t kTcpAckEveryPacketsMax = 8;
constexpr uint32_t kJumboMtuBytesMax = 9216;

std::optional<ns3::ObjectFactory> RegisteredNamed(const ProtoCursor& block,
                                                  Diagnostics& diagnostics) {
  const std::string name = block.Text("registered", "");
  const std::vector<std::string> known = RegisteredCongestionControls();
  if (std::ranges::count(known, name) == 0) {
    block.Error(diagnostics, "registered",
                known.empty()
                    ? fmt::format("{} is not registered (expected the name of a congestion control "
                                  "that the program around the library has registered; this one "
                                  "has none)",
                                  Quote(name))
                    : UnknownName("registered congestion control", name, known));
    return std::nullopt;
  }
  ns3::ObjectFactory factory;
  factory.SetTypeId(RegisteredControl::GetTypeId());
  factory.Set("Name", ns3::StringValue(name));
  return factory;
}

// Returns the controls of RDMA that `block` may name.
std::vector<std::string> ControlsOfRdma(const google::protobuf::Message& block) {
  const google::protobuf::OneofDescriptor& choices = *block.GetDescriptor()->oneof_decl(0);
  std::vector<std::string> names;
  for (int i = 0; i < choices.field_count(); ++i) {
    const std::string& name = choices.field(i)->name();
    if (name != "cubic" && name != "registered") names.push_back(name);
  }
  return names;
}

std::optional<ns3::ObjectFactory> LoadCongestionControl(const ProtoCursor& nic, bool is_tcp,
                                                        Diagnostics& diagnostics) {
  if (!nic.Has("congestion_control")) return std::nullopt;
  const ProtoCursor block = nic.Child("congestion_control");
  const google::protobuf::Message& message = block.message();
  const google::protobuf::FieldDescriptor* const chosen =
      message.GetReflection()->GetOneofFieldDescriptor(message,
                                                       message.GetDescriptor()->oneof_decl(0));
  if (chosen == nullptr) {
    nic.Error(diagnostics, "congestion_control",
              is_tcp ? "is empty (expected cubic in it, e.g. { cubic {} })"
                     : fmt::format("is empty (expected {} in it, e.g. {{ dcqcn {{}} }})",
                                   JoinAlternatives(ControlsOfRdma(message))));
    return std::nullopt;
  }
  if (is_tcp != (chosen->name() == "cubic")) {
    nic.Error(diagnostics, "congestion_control",
              is_tcp
                  ? fmt::format("{} is of RDMA (expected cubic with TCP sockets)", chosen->name())
                  : fmt::format("cubic is of TCP (expected {}, or nccl.NET: \"Socket\")",
                                JoinAlternatives(ControlsOfRdma(message))));
    return std::nullopt;
  }
  if (chosen->name() == "registered") return RegisteredNamed(block, diagnostics);
  std::string name = chosen->name();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  ns3::ObjectFactory factory = CongestionControlNamed(name).value();
  const std::string type = factory.GetTypeId().GetName();
  for (const ModelAttribute& attribute :
       LoadModelAttributes(block.Child(chosen->name().c_str()), type, diagnostics)) {
    factory.Set(attribute.name, ns3::StringValue(attribute.value));
  }
  const std::string why = factory.Create<CongestionControl>()->Contradiction();
  if (!why.empty()) block.Error(diagnostics, chosen->name().c_str(), why);
  return factory;
}

NicSettings LoadTcpNic(const ProtoCursor& scenario, Diagnostics& diagnostics) {
  NicSettings settings;
  settings.is_tcp = true;
  settings.congestion_control = CongestionControlNamed("CUBIC").value();
  settings.ack_every_packets = 2;  // RFC 5681, section 4.2
  settings.window_bytes = kTcpWindowBytes;
  settings.mtu_bytes = kEthernetMtuBytes - kTcpHeaderBytesInMtu;
  if (!scenario.Has("nic")) return settings;
  const ProtoCursor nic = scenario.Child("nic");
  for (const char* field :
       {"recovery", "reorder_tolerance_packets", "cnp_interval", "link_aggregation"}) {
    if (nic.Has(field)) nic.Error(diagnostics, field, "has no effect on TCP sockets");
  }
  const NicSettings stated =
      MakeModel<Nic>(LoadModelAttributes(nic, "railyard::Nic", diagnostics))->settings();
  if (const auto control = LoadCongestionControl(nic, true, diagnostics)) {
    settings.congestion_control = *control;
  }
  settings.burst_packets = stated.burst_packets;
  if (nic.Has("ack_every_packets")) settings.ack_every_packets = stated.ack_every_packets;
  if (nic.Has("window")) settings.window_bytes = stated.window_bytes;
  if (nic.IsDoubtful("mtu_bytes")) return settings;
  if (nic.Has("mtu_bytes")) {
    if (stated.mtu_bytes < kIpv4MtuBytesMin) {
      nic.Error(diagnostics, "mtu_bytes",
                fmt::format("{} is no MTU for IP (expected {} to {}, e.g. 1500 or 9000)",
                            stated.mtu_bytes, kIpv4MtuBytesMin, kJumboMtuBytesMax));
      return settings;
    }
    settings.mtu_bytes = stated.mtu_bytes - kTcpHeaderBytesInMtu;
  }
  const uint64_t window_bytes_max = UINT16_MAX * uint64_t{settings.mtu_bytes};
  if (settings.ack_every_packets > kTcpAckEveryPacketsMax) {
    nic.Error(
        diagnostics, "ack_every_packets",
        fmt::format("{} segments may be more than CUBIC sends before it has an ACK, and delayed "
                    "ACKs have no timer here (expected 1 to {})",
                    settings.ack_every_packets, kTcpAckEveryPacketsMax));
    return settings;
  }
  const uint64_t window_bytes_min =
      std::max<uint64_t>(uint64_t{settings.ack_every_packets} * settings.mtu_bytes,
                         kSocketPieceBytesMax / settings.mtu_bytes * uint64_t{settings.mtu_bytes});
  if (settings.window_bytes < window_bytes_min || settings.window_bytes > window_bytes_max) {
    nic.Error(
        diagnostics, nic.Has("window") ? "window" : "ack_every_packets",
        fmt::format("a window of {} does not hold a piece of a message, which a receiver reads "
                    "at once, or more segments than can be distinguished (expected {} to {})",
                    FormatBytes(settings.window_bytes), FormatBytes(window_bytes_min),
                    FormatBytes(window_bytes_max)));
  }
  return settings;
}

// SRD places packets in memory as they come and repeats them one by one (Shalev et al.: "A
// Cloud-Optimized Transport Protocol for Elastic and Scalable HPC", IEEE Micro 40(6), 2020). How it
// controls congestion is not public.
std::vector<ModelAttribute> DefaultsOf(NetPlugin net) {
  if (net != NetPlugin::kAwsLibfabric) return {};
  return {{"railyard::Nic", "Recovery", "SELECTIVE_REPEAT"},
          {"railyard::Nic", "ReorderTolerancePackets", "63"}};
}

void CheckWindow(const ProtoCursor& nic, const NicSettings& settings, Diagnostics& diagnostics) {
  // The window is compared with these fields, so they must be known.
  if (nic.IsDoubtful("mtu_bytes") || nic.IsDoubtful("ack_every_packets")) return;
  if (settings.window_bytes < settings.mtu_bytes ||
      settings.window_bytes > settings.WindowBytesMax()) {
    nic.Error(
        diagnostics, "window",
        fmt::format("{} is out of range (expected {} to {})", FormatBytes(settings.window_bytes),
                    FormatBytes(settings.mtu_bytes), FormatBytes(settings.WindowBytesMax())));
  } else if (settings.window_bytes < settings.WindowBytesMin()) {
    nic.Error(diagnostics, nic.Has("ack_every_packets") ? "ack_every_packets" : "window",
              fmt::format("the window of {} is full before {} packets of {} earn an ACK",
                          FormatBytes(settings.window_bytes), settings.ack_every_packets,
                          FormatBytes(settings.mtu_bytes)));
  }
}

}  // namespace

NicSettings LoadNic(const ProtoCursor& scenario, NetPlugin net, Diagnostics& diagnostics) {
  if (net == NetPlugin::kSocket) return LoadTcpNic(scenario, diagnostics);
  std::vector<ModelAttribute> attributes = DefaultsOf(net);
  if (!scenario.Has("nic")) return MakeModel<Nic>(attributes)->settings();
  const ProtoCursor nic = scenario.Child("nic");
  const auto stated = LoadModelAttributes(nic, "railyard::Nic", diagnostics);
  attributes.insert(attributes.end(), stated.begin(), stated.end());
  NicSettings settings = MakeModel<Nic>(attributes)->settings();
  if (const auto control = LoadCongestionControl(nic, false, diagnostics)) {
    settings.congestion_control = *control;
  }
  if (!std::has_single_bit(settings.mtu_bytes) || settings.mtu_bytes > kIbMtuBytesMax) {
    nic.Error(diagnostics, "mtu_bytes",
              fmt::format("{} is not an MTU of InfiniBand (expected 256, 512, 1024, 2048 or 4096)",
                          settings.mtu_bytes));
    return settings;
  }
  CheckWindow(nic, settings, diagnostics);
  return settings;
}

NicSettings LoadNicVariant(const ProtoCursor& nic, const NicSettings& common,
                           Diagnostics& diagnostics) {
  for (const char* field :
       {"mtu_bytes", "recovery", "reorder_tolerance_packets", "link_aggregation"}) {
    if (nic.Has(field)) {
      nic.Error(diagnostics, field,
                "is of both ends of a queue pair, and so of all NICs (expected it in `nic`)");
    }
  }
  const NicSettings stated =
      MakeModel<Nic>(LoadModelAttributes(nic, "railyard::Nic", diagnostics))->settings();
  NicSettings settings = common;
  if (nic.Has("window")) settings.window_bytes = stated.window_bytes;
  if (nic.Has("ack_every_packets")) settings.ack_every_packets = stated.ack_every_packets;
  if (nic.Has("burst_packets")) settings.burst_packets = stated.burst_packets;
  if (nic.Has("cnp_interval")) settings.cnp_interval_ps = stated.cnp_interval_ps;
  if (const auto control = LoadCongestionControl(nic, false, diagnostics)) {
    settings.congestion_control = *control;
  }
  CheckWindow(nic, settings, diagnostics);
  return settings;
}

}  // namespace railyard
