// SPDX-License-Identifier: GPL-2.0-only
// Defines the arguments of the trace sources of NICs (railyard::Nic).
#pragma once

#include <cstdint>

namespace railyard {

struct NicTimeout {
  int64_t time_ps;
  uint32_t queue_pair;
};
struct NicCnpSent {
  int64_t time_ps;
  uint32_t queue_pair;
};
struct NicRateChanged {
  int64_t time_ps;
  uint32_t queue_pair;
  uint64_t rate_bps;  // SendLimits::kNoLimit: line rate
};

}  // namespace railyard
