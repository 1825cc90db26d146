// SPDX-License-Identifier: GPL-2.0-only
#include <ns3/boolean.h>
#include <ns3/enum.h>
#include <ns3/integer.h>
#include <ns3/uinteger.h>

#include "simulator/fabric/enum_attribute.h"
#include "simulator/fabric/fabric_network.h"

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(FabricNetwork);

// A list of attributes. NOLINTNEXTLINE(readability-function-size)
ns3::TypeId FabricNetwork::GetTypeId() {
  constexpr uint64_t kBytesMax = uint64_t{1} << 30;
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::FabricNetwork")
          .SetParent<ns3::Object>()
          .SetGroupName("Railyard")
          .AddConstructor<FabricNetwork>()
          .AddAttribute(
              "Form",
              "Events of ports. SHORT: one event per hop wherever that is exact. GENERAL: "
              "departures are always events; for verification, results are the same.",
              ns3::EnumValue(static_cast<int>(PortForm::kShort)),
              MakeIntEnumAccessor(&FabricNetwork::Set<&FabricSettings::form, int>,
                                  &FabricNetwork::Get<&FabricSettings::form, int>),
              ns3::MakeEnumChecker(static_cast<int>(PortForm::kShort), "SHORT",
                                   static_cast<int>(PortForm::kGeneral), "GENERAL"))
          .AddAttribute("TrajectoryHash",
                        "Every arrival of a packet enters a hash, the result's trajectory_hash.",
                        ns3::BooleanValue(false),
                        ns3::MakeBooleanAccessor(
                            &FabricNetwork::Set<&FabricSettings::hashes_trajectory, bool>,
                            &FabricNetwork::Get<&FabricSettings::hashes_trajectory, bool>),
                        ns3::MakeBooleanChecker())
          .AddAttribute(
              "Seed", "Seed of the draws by which packets are marked.", ns3::UintegerValue(1),
              ns3::MakeUintegerAccessor(&FabricNetwork::Set<&FabricSettings::seed, uint64_t>,
                                        &FabricNetwork::Get<&FabricSettings::seed, uint64_t>),
              ns3::MakeUintegerChecker<uint64_t>())
          .AddAttribute(
              "NetworkFlowControl",
              "Flow control of links between NICs and switches. PFC: pause frames (RoCE). CREDITS: "
              "link-level credits (InfiniBand). NONE: switches and NICs drop.",
              ns3::EnumValue(static_cast<int>(FlowControl::kPfc)),
              MakeIntEnumAccessor(&FabricNetwork::Set<&FabricSettings::flow_control, int>,
                                  &FabricNetwork::Get<&FabricSettings::flow_control, int>),
              ns3::MakeEnumChecker(static_cast<int>(FlowControl::kPfc), "PFC",
                                   static_cast<int>(FlowControl::kCredits), "CREDITS",
                                   static_cast<int>(FlowControl::kNone), "NONE"))
          .AddAttribute(
              "LoadBalancing",
              "Choice of switches among equal-cost links for a packet of data. ECMP: by a "
              "hash of switch and queue pair. FLOWLET: drawn anew after a pause "
              "(LetFlow, Vanini et al., NSDI 2017). ADAPTIVE: the least queued. SPRAYING: "
              "drawn for each packet (Dixit et al., INFOCOM 2013).",
              ns3::EnumValue(static_cast<int>(LoadBalancing::kEcmp)),
              MakeIntEnumAccessor(&FabricNetwork::Set<&FabricSettings::load_balancing, int>,
                                  &FabricNetwork::Get<&FabricSettings::load_balancing, int>),
              ns3::MakeEnumChecker(static_cast<int>(LoadBalancing::kEcmp), "ECMP",
                                   static_cast<int>(LoadBalancing::kFlowlet), "FLOWLET",
                                   static_cast<int>(LoadBalancing::kAdaptive), "ADAPTIVE",
                                   static_cast<int>(LoadBalancing::kSpraying), "SPRAYING"))
          .AddAttribute("FlowletGapPs",
                        "Pause after which a queue pair's next packet may take another link, with "
                        "FLOWLET, in ps. Default, assumed: 20 us, by which two paths may "
                        "differ: 1 MB queued at 400 Gb/s.",
                        ns3::IntegerValue(20 * kPsPerUs),
                        ns3::MakeIntegerAccessor(
                            &FabricNetwork::Set<&FabricSettings::flowlet_gap_ps, int64_t>,
                            &FabricNetwork::Get<&FabricSettings::flowlet_gap_ps, int64_t>),
                        ns3::MakeIntegerChecker<int64_t>(0, kPsPerSecond))
          .AddAttribute(
              "CreditBytes",
              "Receive buffer behind each link between NICs and switches, with CREDITS, in "
              "bytes. Default, assumed: 400 Gb/s times 5 us, above the round trip of a cable in a "
              "hall; vendors do not publish it.",
              ns3::UintegerValue(256 << 10),
              ns3::MakeUintegerAccessor(
                  &FabricNetwork::Set<&FabricSettings::credit_bytes, uint32_t>,
                  &FabricNetwork::Get<&FabricSettings::credit_bytes, uint32_t>),
              ns3::MakeUintegerChecker<uint32_t>(1, kBytesMax))
          .AddAttribute(
              "NvlinkCreditBytes",
              "Receive buffer behind each NVLink (each lane of a bundle), in bytes; 0: no limit. "
              "Default, assumed: 25 GB/s times 2.6 us, four times the round trip from GPU to "
              "NVSwitch; NVIDIA does not publish it.",
              ns3::UintegerValue(64 << 10),
              ns3::MakeUintegerAccessor(
                  &FabricNetwork::Set<&FabricSettings::nvlink_credit_bytes, uint32_t>,
                  &FabricNetwork::Get<&FabricSettings::nvlink_credit_bytes, uint32_t>),
              ns3::MakeUintegerChecker<uint32_t>(0, kBytesMax / 64))
          .AddAttribute(
              "PcieCreditBytes",
              "Receive buffer behind each link to a PCIe switch or host bridge, in bytes; 0: no "
              "limit. Default, assumed: 27.5 GB/s times 2.4 us, above the round trip between two "
              "of them; vendors do not publish it.",
              ns3::UintegerValue(64 << 10),
              ns3::MakeUintegerAccessor(
                  &FabricNetwork::Set<&FabricSettings::pcie_credit_bytes, uint32_t>,
                  &FabricNetwork::Get<&FabricSettings::pcie_credit_bytes, uint32_t>),
              ns3::MakeUintegerChecker<uint32_t>(0, kBytesMax))
          .AddAttribute(
              "PauseResponsePs",
              "Time from a pause frame's last bit to no further packet being started, in ps. "
              "Default: the 614.4 ns that IEEE 802.1Q-2018, 36.1.3.3 allows.",
              ns3::IntegerValue(614'400),
              ns3::MakeIntegerAccessor(
                  &FabricNetwork::Set<&FabricSettings::pause_response_ps, int64_t>,
                  &FabricNetwork::Get<&FabricSettings::pause_response_ps, int64_t>),
              ns3::MakeIntegerChecker<int64_t>(0, kPsPerSecond))
          .AddAttribute(
              "StormThresholdPs",
              "Time after which a paused link, or one without credit, is reported, in ps. Default: "
              "100 ms, of the order of the detection times of switches' PFC watchdogs.",
              ns3::IntegerValue(100 * kPsPerMs),
              ns3::MakeIntegerAccessor(
                  &FabricNetwork::Set<&FabricSettings::storm_threshold_ps, int64_t>,
                  &FabricNetwork::Get<&FabricSettings::storm_threshold_ps, int64_t>),
              ns3::MakeIntegerChecker<int64_t>(1, 1'000'000 * kPsPerSecond))
          .AddTraceSource("PacketDropped", "A packet was lost; the counters include it.",
                          ns3::MakeTraceSourceAccessor(&FabricNetwork::packet_dropped_),
                          "railyard::PacketDroppedCallback")
          .AddTraceSource("LinkStateChanged", "A direction of a link went down or came back.",
                          ns3::MakeTraceSourceAccessor(&FabricNetwork::link_state_changed_),
                          "railyard::LinkStateChangedCallback")
          .AddTraceSource("PauseSent",
                          "A switch or NIC decided to send a pause frame, XOFF or XON.",
                          ns3::MakeTraceSourceAccessor(&FabricNetwork::pause_sent_),
                          "railyard::PauseSentCallback")
          .AddTraceSource("EcnMarked", "A switch marked a packet that joins an egress queue.",
                          ns3::MakeTraceSourceAccessor(&FabricNetwork::ecn_marked_),
                          "railyard::EcnMarkedCallback");
  return type_id;
}

}  // namespace railyard
