// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/transport/connections/rail_scheduler.h"
#include "simulator/units/units.h"

namespace railyard {

// Holds the settings of NCCL's network plug-in for InfiniBand and RoCE. The names and defaults are
// those of its environment variables, without NCCL_ (src/transport/net_ib, 2.30: connect.cc,
// p2p_resiliency.cc, p2p_resiliency_recovery.cc).
struct NetIbSettings {
  uint32_t ib_qps_per_connection = 1;  // per device
  // If true, a message is split over all queue pairs of a connection. If false, it uses as many
  // queue pairs as there are devices, in turn.
  bool ib_split_data_on_qps = false;
  // Corresponds to IB_RESILIENCY_PORT_FAILOVER.
  bool port_failover = false;
  int64_t failover_probe_delay_ps = 10 * kPsPerMs;
  // Corresponds to IB_RESILIENCY_PORT_RECOVERY.
  bool port_recovery = false;
  int64_t recovery_start_delay_ps = 200 * kPsPerMs;
  int64_t recovery_alive_msg_timeout_ps = 4'000 * kPsPerMs;
  int64_t recovery_ack_timeout_ps = 5'000 * kPsPerMs;
  uint32_t recovery_attempts_max = 5;
  // Is set if Amazon's plug-in takes this one's place. It has one queue pair per device.
  std::optional<RailSettings> rails{};
};

}  // namespace railyard
