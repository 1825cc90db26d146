// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>

#include "simulator/transport/congestion/congestion_control_base.h"

namespace railyard {

// Applies no congestion control: queue pairs always send at line rate within the NIC's window, as
// on InfiniBand without congestion control or on a fabric that relies on flow control alone.
class NoCongestionControl final : public CongestionControl {
 public:
  static ns3::TypeId GetTypeId();

  Needs needs() const override { return {}; }
  std::string WhyNeverReplayed() const override { return {}; }
  void Visit(FlowId /*queue_pair*/, StateArchive& /*archive*/) override {}

 private:
  void OnOpen(FlowId /*queue_pair*/) override {}
};

}  // namespace railyard
