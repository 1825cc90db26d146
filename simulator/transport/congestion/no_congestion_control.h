// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/transport/congestion/congestion_control.h"

namespace railyard {

// Queue pairs send at line rate within the NIC's window, whatever happens: InfiniBand without
// congestion control, or a fabric that relies on flow control alone.
class NoCongestionControl final : public CongestionControl {
 public:
  static ns3::TypeId GetTypeId();

  Needs needs() const override { return {}; }
  bool Forgets() const override { return true; }
  bool HasForgotten(uint32_t /*queue_pair*/) const override { return true; }

 private:
  void OnOpen(uint32_t /*queue_pair*/) override {}
};

}  // namespace railyard
