// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include <ns3/nstime.h>
#include <ns3/object.h>
#include <ns3/traced-callback.h>

#include "simulator/transport/nic/nic_events.h"
#include "simulator/transport/nic/nic_settings.h"

namespace railyard {

// Presents a NIC as an ns-3 object, with attributes that are named as vendors and NCCL name them,
// and with trace sources. Each NIC of a fabric has one. A transport reads the settings once, when
// it is made, and keeps the state of queues in plain records.
class Nic : public ns3::Object, private NicSettings {
 public:
  static ns3::TypeId GetTypeId();
  Nic() = default;

  const NicSettings& settings() const { return *this; }
  void SetSettings(const NicSettings& settings) { static_cast<NicSettings&>(*this) = settings; }

  // The transport calls these; they fire the trace sources.
  void NotifyTimeout(const NicTimeout& event) const { timeout_(event); }
  void NotifyCnpSent(const NicCnpSent& event) const { cnp_sent_(event); }
  void NotifyRateChanged(const NicRateChanged& event) const { rate_changed_(event); }

 private:
  void SetRecovery(int value) { recovery = static_cast<Recovery>(value); }
  int GetRecovery() const { return static_cast<int>(recovery); }
  // ns-3's accessors pass attributes by value.
  // NOLINTNEXTLINE(performance-unnecessary-value-param)
  void SetCnpInterval(ns3::Time interval) { cnp_interval_ps = interval.GetPicoSeconds(); }
  ns3::Time GetCnpInterval() const {
    return ns3::PicoSeconds(static_cast<uint64_t>(cnp_interval_ps));
  }

  ns3::TracedCallback<const NicTimeout&> timeout_;
  ns3::TracedCallback<const NicCnpSent&> cnp_sent_;
  ns3::TracedCallback<const NicRateChanged&> rate_changed_;
};

}  // namespace railyard
