// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/port/switch.h"

#include <ns3/boolean.h>
#include <ns3/double.h>
#include <ns3/uinteger.h>

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(Switch);

// A list of attributes. NOLINTNEXTLINE(readability-function-size)
ns3::TypeId Switch::GetTypeId() {
  using Settings = BufferSettings;
  constexpr double kAlphaMin = 1.0 / 128;
  constexpr double kAlphaMax = 8;
  constexpr uint64_t kBytesMax = uint64_t{1} << 31;
  const Settings defaults;
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::Switch")
          .SetParent<ns3::Object>()
          .SetGroupName("Railyard")
          .AddConstructor<Switch>()
          .AddAttribute(
              "BufferBytes",
              "Packet memory shared by all ports, headroom not included, in bytes. Default: "
              "Spectrum-3 and Tomahawk 3 (12.8 Tb/s) have 64 MB.",
              ns3::UintegerValue(defaults.buffer_bytes),
              ns3::MakeUintegerAccessor(&Switch::Set<&Settings::buffer_bytes, uint64_t>,
                                        &Switch::Get<&Settings::buffer_bytes, uint64_t>),
              ns3::MakeUintegerChecker<uint64_t>(1, kBytesMax))
          .AddAttribute(
              "Alpha",
              "Dynamic threshold: a port may take this many times the memory that is left; rounded "
              "to 128ths. Chips offer powers of two from 1/128 to 8. Default: a shift of 3 in "
              "switch-mmu.cc of alibaba-edu/High-Precision-Congestion-Control.",
              ns3::DoubleValue(defaults.alpha),
              ns3::MakeDoubleAccessor(&Switch::Set<&Settings::alpha, double>,
                                      &Switch::Get<&Settings::alpha, double>),
              ns3::MakeDoubleChecker<double>(kAlphaMin, kAlphaMax))
          .AddAttribute(
              "LosslessData",
              "True: an ingress port above its share sends pause frames (PFC, IEEE 802.1Qbb). "
              "False: a packet that finds its egress queue above its share is dropped.",
              ns3::BooleanValue(defaults.lossless_data),
              ns3::MakeBooleanAccessor(&Switch::Set<&Settings::lossless_data, bool>,
                                       &Switch::Get<&Settings::lossless_data, bool>),
              ns3::MakeBooleanChecker())
          .AddAttribute(
              "HeadroomBytes",
              "Memory of each ingress port, in bytes, for what still arrives after its pause frame "
              "was sent. 0: what cable, pipeline and frames need in the worst case.",
              ns3::UintegerValue(defaults.headroom_bytes),
              ns3::MakeUintegerAccessor(&Switch::Set<&Settings::headroom_bytes, uint64_t>,
                                        &Switch::Get<&Settings::headroom_bytes, uint64_t>),
              ns3::MakeUintegerChecker<uint64_t>(0, kBytesMax))
          .AddAttribute("HeadroomScale",
                        "The headroom, given or computed, times this; 0 takes it away.",
                        ns3::DoubleValue(defaults.headroom_scale),
                        ns3::MakeDoubleAccessor(&Switch::Set<&Settings::headroom_scale, double>,
                                                &Switch::Get<&Settings::headroom_scale, double>),
                        ns3::MakeDoubleChecker<double>(0, 16))
          .AddAttribute("MtuBytes",
                        "Largest packet on the wire that the computed headroom is for, in bytes. "
                        "Default: the usual jumbo MTU.",
                        ns3::UintegerValue(defaults.mtu_bytes),
                        ns3::MakeUintegerAccessor(&Switch::Set<&Settings::mtu_bytes, uint32_t>,
                                                  &Switch::Get<&Settings::mtu_bytes, uint32_t>),
                        ns3::MakeUintegerChecker<uint32_t>(64, UINT16_MAX))
          .AddAttribute(
              "XonOffsetBytes",
              "An ingress port's sender goes on when the port is this far below its threshold, in "
              "bytes, or empty. Default: resume_offset in switch-mmu.cc of "
              "alibaba-edu/High-Precision-Congestion-Control.",
              ns3::UintegerValue(defaults.xon_offset_bytes),
              ns3::MakeUintegerAccessor(&Switch::Set<&Settings::xon_offset_bytes, uint64_t>,
                                        &Switch::Get<&Settings::xon_offset_bytes, uint64_t>),
              ns3::MakeUintegerChecker<uint64_t>(0, kBytesMax))
          .AddAttribute("EcnEnabled",
                        "Egress ports mark packets of data as having met congestion (RFC 3168, by "
                        "RED on the queue of the moment).",
                        ns3::BooleanValue(defaults.ecn_enabled),
                        ns3::MakeBooleanAccessor(&Switch::Set<&Settings::ecn_enabled, bool>,
                                                 &Switch::Get<&Settings::ecn_enabled, bool>),
                        ns3::MakeBooleanChecker())
          .AddAttribute(
              "EcnKminBytes",
              "Queue above which marking begins, in bytes for a port of 25 Gb/s, in proportion for "
              "others. Default: DCQCN's in the HPCC paper (Li et al., SIGCOMM 2019, section 5.1).",
              ns3::UintegerValue(defaults.ecn_kmin_bytes),
              ns3::MakeUintegerAccessor(&Switch::Set<&Settings::ecn_kmin_bytes, uint64_t>,
                                        &Switch::Get<&Settings::ecn_kmin_bytes, uint64_t>),
              ns3::MakeUintegerChecker<uint64_t>(0, kBytesMax))
          .AddAttribute(
              "EcnKmaxBytes",
              "Queue above which every packet is marked, in bytes for a port of 25 Gb/s, in "
              "proportion for others. Default: as for EcnKminBytes.",
              ns3::UintegerValue(defaults.ecn_kmax_bytes),
              ns3::MakeUintegerAccessor(&Switch::Set<&Settings::ecn_kmax_bytes, uint64_t>,
                                        &Switch::Get<&Settings::ecn_kmax_bytes, uint64_t>),
              ns3::MakeUintegerChecker<uint64_t>(0, kBytesMax))
          .AddAttribute(
              "EcnPmax",
              "Share of packets marked as the queue comes to EcnKmaxBytes, linear from 0 at "
              "EcnKminBytes. Default: as for EcnKminBytes.",
              ns3::DoubleValue(defaults.ecn_pmax),
              ns3::MakeDoubleAccessor(&Switch::Set<&Settings::ecn_pmax, double>,
                                      &Switch::Get<&Settings::ecn_pmax, double>),
              ns3::MakeDoubleChecker<double>(0, 1));
  return type_id;
}

}  // namespace railyard
