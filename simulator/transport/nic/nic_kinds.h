// SPDX-License-Identifier: GPL-2.0-only
// Holds the NICs of a fabric as ns-3 objects, and what the NICs of a kind have in common: their
// settings and their congestion control. Queues store the number of their NIC's kind, so that a
// packet finds it without its device.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "simulator/transport/congestion/congestion_control_base.h"
#include "simulator/transport/nic/nic.h"
#include "simulator/transport/nic/nic_settings.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Holds the settings of a group of NICs. A queue pair uses the time-out, retries, window and
// congestion control of its sender's NIC, and the ACKs and CNPs of its receiver's NIC.
struct NicKind {
  NicSettings settings;
  uint32_t window_packets = 0;
  ns3::Ptr<CongestionControl> control{};
  CongestionControl::Needs needs{};
  bool is_never_replayed = false;  // for a reason that the control gives
};

// Makes the NICs of a fabric. Those in none of `variants` have `settings`. Returns them by device;
// an element is null if the device is no NIC.
std::vector<ns3::Ptr<Nic>> MakeNics(const FabricGraph& graph, const NicSettings& settings,
                                    std::span<const NicVariant> variants);

class NicKinds {
 public:
  // NICs in none of `variants` use `settings`. `nics` are those that MakeNics() has made for them;
  // if it is empty, they are made. Preconditions: no NIC is in two variants, and there are at most
  // kNicVariantsMax.
  NicKinds(const FabricGraph& graph, const NicSettings& settings,
           std::span<const NicVariant> variants, std::span<const ns3::Ptr<Nic>> nics = {});

  const NicKind& operator[](uint8_t kind) const { return kinds_[kind]; }
  uint8_t KindOf(DeviceId nic) const { return kind_of_device_[nic]; }
  // Returns the NICs by device; an element is null if the device is no NIC.
  std::span<const ns3::Ptr<Nic>> nics() const { return nics_; }
  // Returns whether the control of any kind needs the telemetry of switches.
  bool needs_telemetry() const { return needs_telemetry_; }

  // Adds a queue pair to the controls of all kinds, with the window of each. Only its sender's
  // control is called for it later, but every control numbers all queue pairs.
  void Open(ControlledQueuePair queue_pair) const;
  // Returns the names of the controls' types, each once, joined by " and ".
  std::string ControlNames() const;
  // Returns the reason of the first congestion control that has one, else an empty text.
  std::string WhyNeverReplayed() const;

 private:
  void Add(const NicSettings& settings);

  std::vector<NicKind> kinds_;
  std::vector<uint8_t> kind_of_device_;
  std::vector<ns3::Ptr<Nic>> nics_;
  bool needs_telemetry_ = false;
};

}  // namespace railyard
