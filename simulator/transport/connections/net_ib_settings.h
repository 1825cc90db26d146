// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/units/units.h"

namespace railyard {

// How NCCL's network plug-in for InfiniBand and RoCE uses queue pairs. Names and defaults are its
// variables' without NCCL_ (src/transport/net_ib, 2.30: connect.cc, p2p_resiliency.cc,
// p2p_resiliency_recovery.cc).
struct NetIbSettings {
  uint32_t ib_qps_per_connection = 1;  // and device
  // A message goes over all queue pairs of a connection; else over as many as there are devices, in
  // turn.
  bool ib_split_data_on_qps = false;
  // Of IB_RESILIENCY_PORT_FAILOVER.
  bool port_failover = false;
  int64_t failover_probe_delay_ps = 10 * kPsPerMs;
  // Of IB_RESILIENCY_PORT_RECOVERY.
  bool port_recovery = false;
  int64_t recovery_start_delay_ps = 200 * kPsPerMs;
  int64_t recovery_alive_msg_timeout_ps = 4'000 * kPsPerMs;
  int64_t recovery_ack_timeout_ps = 5'000 * kPsPerMs;
  uint32_t recovery_attempts_max = 5;
};

}  // namespace railyard
