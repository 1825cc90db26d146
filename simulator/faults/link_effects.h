// SPDX-License-Identifier: GPL-2.0-only
// Applies the combined effect of active faults to links. If several faults act on one link, it is
// down while any of them takes it down, sends at the lowest rate, loses the packets that any of
// them loses, and delays packets by the sum of the delays.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/faults/fault_spec.h"
#include "simulator/faults/packet_loss.h"

namespace railyard {

class LinkEffects {
 public:
  // All references must outlive this, and this must outlive the last packet.
  LinkEffects(const FabricGraph& graph, const std::vector<FaultSpec>& faults,
              FabricNetwork& network);

  // Begins or ends a fault now.
  void Begin(FaultIndex fault);
  void End(FaultIndex fault);

  // Returns the fault whose loss model lost the packet that is being reported on `link`, if there
  // is one.
  std::optional<FaultIndex> FaultOfBitError(LinkId link) const;
  // Returns the fault that holds `link` down, the last one to begin if there are several; if the
  // link is up again, the last one that held it down; nullopt if there was none.
  std::optional<FaultIndex> LastFaultOfDownLink(LinkId link) const;

 private:
  struct Loss {
    FaultIndex fault{};
    PacketLoss model;
    // A fault keeps the last two of its intervals, because an arrival may be examined a forwarding
    // latency late.
    FaultInterval interval;
    FaultInterval before;
  };
  struct OnLink {
    std::vector<FaultIndex> cutting;  // active faults that hold the link down
    uint32_t storm_count = 0;
    std::optional<FaultIndex> last_down_fault{};
    std::vector<FaultIndex> degrading;  // active faults
    std::vector<FaultIndex> delaying;
    std::vector<Loss> losses;  // of all faults that were ever active
    uint64_t delayed_packets = 0;
  };

  void SetDown(LinkId link, FaultIndex fault, bool down);
  void SetDegraded(LinkId link, FaultIndex fault, bool degraded);
  void SetLossy(LinkId link, FaultIndex fault, bool lossy);
  void SetDelayed(LinkId link, FaultIndex fault, bool delayed);
  void SetStorm(LinkId link, bool storms);
  void Set(FaultIndex fault, bool holds);
  bool IsLost(LinkId link, const Packet& packet);
  int64_t ExtraDelayPs(LinkId link);

  const FabricGraph& graph_;
  const std::vector<FaultSpec>& faults_;
  FabricNetwork& network_;
  std::unordered_map<LinkId, OnLink> on_link_;
  // These fields describe the last loss by a loss model.
  LinkId lossy_link_ = LinkId::kNone;
  int64_t loss_ps_ = -1;
  FaultIndex lossy_fault_{};
};

}  // namespace railyard
