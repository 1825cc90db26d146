// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/nic/nic.h"

#include <ns3/boolean.h>
#include <ns3/enum.h>
#include <ns3/uinteger.h>

#include "simulator/fabric/enum_attribute.h"
#include "simulator/transport/congestion/congestion_controls.h"

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(Nic);

// A list of attributes. NOLINTNEXTLINE(readability-function-size)
ns3::TypeId Nic::GetTypeId() {
  const NicSettings defaults;
  // ns-3's accessors need members of this class instead of members of its base.
  const auto u32 = [](uint32_t NicSettings::*member) {
    return ns3::MakeUintegerAccessor(static_cast<uint32_t Nic::*>(member));
  };
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::Nic")
          .SetParent<ns3::Object>()
          .SetGroupName("Railyard")
          .AddConstructor<Nic>()
          .AddAttribute("MtuBytes",
                        "Path MTU in bytes: payload of a full packet (InfiniBand Architecture "
                        "Specification 1.7, 256 to 4096; NCCL uses the ports' active MTU); with "
                        "TCP sockets Ethernet's, 1500 unless stated (IEEE 802.3).",
                        ns3::UintegerValue(defaults.mtu_bytes), u32(&NicSettings::mtu_bytes),
                        ns3::MakeUintegerChecker<uint32_t>(256, 9216))
          .AddAttribute(
              "WindowBytes",
              "Bytes a queue pair may have sent and not yet seen acknowledged (twice "
              "400 Gb/s x 5 us, above the round trip of a loaded two-tier fabric); of a TCP "
              "stream the receiver's buffer, 3 MiB unless stated (half of Linux's tcp_rmem).",
              ns3::UintegerValue(defaults.window_bytes),
              ns3::MakeUintegerAccessor(static_cast<uint64_t Nic::*>(&NicSettings::window_bytes)),
              ns3::MakeUintegerChecker<uint64_t>(1))
          .AddAttribute(
              "AckEveryPackets",
              "Packets after which an ACK comes at the latest, besides every message's last "
              "(assumed: vendors do not publish their coalescing); TCP 2 unless stated "
              "(RFC 5681, section 4.2).",
              ns3::UintegerValue(defaults.ack_every_packets), u32(&NicSettings::ack_every_packets),
              ns3::MakeUintegerChecker<uint32_t>(1, 65'536))
          .AddAttribute("IbTimeout",
                        "Local ACK timeout T: 4.096 us x 2^T (InfiniBand Architecture "
                        "Specification 1.7, 9.7.5.1.3; NCCL_IB_TIMEOUT).",
                        ns3::UintegerValue(defaults.ib_timeout), u32(&NicSettings::ib_timeout),
                        ns3::MakeUintegerChecker<uint32_t>(1, 31))
          .AddAttribute("IbRetryCount",
                        "Retries of a request before its queue pair breaks, 0 to 7 "
                        "(InfiniBand Architecture Specification 1.7, 9.7; NCCL_IB_RETRY_CNT).",
                        ns3::UintegerValue(defaults.ib_retry_cnt), u32(&NicSettings::ib_retry_cnt),
                        ns3::MakeUintegerChecker<uint32_t>(0, 7))
          .AddAttribute("BurstPackets",
                        "Packets a queue pair sends in its turn: the arbiter's quantum (1 is the "
                        "fairest; vendors do not publish theirs).",
                        ns3::UintegerValue(defaults.burst_packets),
                        u32(&NicSettings::burst_packets),
                        ns3::MakeUintegerChecker<uint32_t>(1, 65'536))
          .AddAttribute(
              "Recovery",
              "Treatment of packets beyond a gap: they are dropped (go-back-N, InfiniBand "
              "Architecture Specification 1.7, 9.7), or kept while the sender fills the "
              "gap (Mittal et al., SIGCOMM 2018).",
              ns3::EnumValue(static_cast<int>(defaults.recovery)),
              MakeIntEnumAccessor(&Nic::SetRecovery, &Nic::GetRecovery),
              ns3::MakeEnumChecker(static_cast<int>(Recovery::kGoBackN), "GO_BACK_N",
                                   static_cast<int>(Recovery::kSelectiveRepeat),
                                   "SELECTIVE_REPEAT"))
          .AddAttribute("ReorderTolerancePackets",
                        "Packets beyond a missing one that do not make it a lost one: "
                        "for fabrics that reorder (0: none is allowed, as specified for "
                        "InfiniBand; at most 63).",
                        ns3::UintegerValue(defaults.reorder_tolerance_packets),
                        u32(&NicSettings::reorder_tolerance_packets),
                        ns3::MakeUintegerChecker<uint32_t>(0, 63))
          .AddAttribute("CongestionControl",
                        "Type of CongestionControl for all queue pairs, with its attributes in "
                        "brackets (NoCongestionControl: none, as InfiniBand by default).",
                        ns3::ObjectFactoryValue(*CongestionControlNamed("NONE")),
                        ns3::MakeObjectFactoryAccessor(static_cast<ns3::ObjectFactory Nic::*>(
                            &NicSettings::congestion_control)),
                        ns3::MakeObjectFactoryChecker())
          .AddAttribute(
              "CnpInterval",
              "Shortest time between two CNPs of a queue pair (Zhu et al., SIGCOMM 2015, "
              "section 3.1: 50 us).",
              ns3::TimeValue(ns3::PicoSeconds(static_cast<uint64_t>(defaults.cnp_interval_ps))),
              ns3::MakeTimeAccessor(&Nic::SetCnpInterval, &Nic::GetCnpInterval),
              ns3::MakeTimeChecker(ns3::Time(0)))
          .AddAttribute(
              "LinkAggregation",
              "The ports of a NIC are one bonded device (IEEE 802.1AX), which hashes "
              "queue pairs to ports; else each is a device of its own, and NCCL merges "
              "them (on: as Alibaba HPN has it, SIGCOMM 2024).",
              ns3::BooleanValue(defaults.link_aggregation),
              ns3::MakeBooleanAccessor(static_cast<bool Nic::*>(&NicSettings::link_aggregation)),
              ns3::MakeBooleanChecker())
          .AddTraceSource("Timeout", "A queue pair's retransmission timer ran out.",
                          ns3::MakeTraceSourceAccessor(&Nic::timeout_),
                          "railyard::NicTimeoutCallback")
          .AddTraceSource("CnpSent", "A CNP was made for a queue pair that received marked data.",
                          ns3::MakeTraceSourceAccessor(&Nic::cnp_sent_),
                          "railyard::NicCnpSentCallback")
          .AddTraceSource("RateChanged", "A queue pair's congestion control gave it another rate.",
                          ns3::MakeTraceSourceAccessor(&Nic::rate_changed_),
                          "railyard::NicRateChangedCallback");
  return type_id;
}

}  // namespace railyard
