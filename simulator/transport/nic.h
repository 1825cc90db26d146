// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <ns3/object.h>

#include "simulator/transport/nic_settings.h"

namespace railyard {

// A RoCE v2 NIC as ns-3 sees it: its attributes, named as vendors and NCCL name them. What it does
// with packets is RdmaTransport, whose per-queue state is plain; a transport reads the settings
// once, when it is made, and all its NICs share them.
class Nic : public ns3::Object, private NicSettings {
 public:
  static ns3::TypeId GetTypeId();
  Nic() = default;

  const NicSettings& settings() const { return *this; }
  void SetSettings(const NicSettings& settings) { static_cast<NicSettings&>(*this) = settings; }
};

}  // namespace railyard
